//! What the step times of a server rest on, in the words of every output.

use super::Serving;
use crate::catalog::Standing;
use crate::cost::Graphs;

/// The key of a fit's range that says how many GPUs its servers had.
const TENSOR_PARALLEL: &str = "tensor_parallel_size";

impl Serving {
    /// Of its step times: estimated as soon as any part of them is.
    #[must_use]
    pub fn standing(&self) -> Standing {
        if self.not_fitted().is_empty() { self.profile.standing } else { Standing::Estimated }
    }

    /// What no measured server stands behind, whatever the profile was fitted on.
    #[must_use]
    pub fn not_fitted(&self) -> Vec<String> {
        let parts = [
            ("data-parallel ranks", self.ranks() > 1),
            ("pipeline stages", self.pipeline_parallel_size > 1),
            ("speculation", self.speculative.is_some()),
            ("steps without CUDA graphs", self.graphs == Some(Graphs::Off)),
        ];
        let parts = parts.into_iter().filter(|(_, is_there)| *is_there).map(|(part, _)| part.to_owned());
        self.tensor_parallelism_beyond_the_fit().into_iter().chain(parts).collect()
    }

    /// Its tensor parallelism, where the fitted servers had none such: `tensor parallelism of 4 (only 1)`.
    fn tensor_parallelism_beyond_the_fit(&self) -> Option<String> {
        let size = self.tensor_parallel_size;
        let [low, high] = self.profile.fitted_range(TENSOR_PARALLEL)?;
        if (low..=high).contains(&f64::from(size)) {
            return None;
        }
        let fitted = if low < high { format!("{low} to {high}") } else { low.to_string() };
        Some(format!("tensor parallelism of {size} (only {fitted})"))
    }

    /// Why an estimate is no more than a guess: what of its kernels was not measured on this GPU, in words. Empty where
    /// tables of it say all that its kernels reach, and of what was fitted.
    #[must_use]
    pub fn guessed(&self) -> Vec<String> {
        if self.profile.standing != Standing::Estimated || self.profile.fit.is_some() {
            return Vec::new();
        }
        let weights = self.model.weights(self.weight_dtype);
        self.hardware.kernels_not_measured(&self.profile.engine, weights)
    }

    /// `calibrated on qwen3-14b, not on llama-3.1-8b, under vllm 0.23`.
    #[must_use]
    pub fn foundation(&self) -> String {
        let Self { profile, model, .. } = self;
        let mut text = profile.standing.name().to_owned();
        if profile.standing == Standing::Estimated {
            return if profile.fit.is_some() { text } else { self.estimate() };
        }
        match profile.fitted_models() {
            [] => {}
            models => text += &format!(" on {}", models.join(", ")),
        }
        if profile.is_fitted_elsewhere(&model.name) {
            text += &format!(", not on {},", model.name);
        }
        text += &format!(" under {} {}", profile.engine, profile.versions);
        if !profile.is_scored() {
            text += ", never scored";
        }
        text
    }

    /// What an estimate is made of.
    fn estimate(&self) -> String {
        let guessed = self.guessed();
        if !guessed.is_empty() {
            return format!("guessed: {}; host times are priors", guessed.join(", "));
        }
        let whose = if self.profile.engine == "vllm" { "" } else { " under vllm" };
        format!("estimated: kernels by tables of this GPU{whose}, host times are priors")
    }

    /// Whose the profile's held-out error is, where it is not that of what is simulated:
    /// `of qwen3-14b, not of llama-3.1-8b; data-parallel ranks are not fitted`.
    #[must_use]
    pub fn error_is_of(&self) -> Option<String> {
        let model = &self.model.name;
        let elsewhere = self.profile.scored_elsewhere(model).map(|of| format!("of {of}, not of {model}"));
        let parts = self.not_fitted();
        let not_fitted = (!parts.is_empty()).then(|| format!("{} not fitted", parts.join(", ")));
        let all: Vec<String> = elsewhere.into_iter().chain(not_fitted).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
