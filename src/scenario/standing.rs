//! What the step times of a server rest on, in the words of every output.

use super::Serving;
use crate::catalog::Standing;
use crate::cost::Graphs;

impl Serving {
    /// Of its step times: estimated as soon as any part of them is.
    #[must_use]
    pub fn standing(&self) -> Standing {
        if self.not_fitted().is_empty() { self.profile.standing } else { Standing::Estimated }
    }

    /// What no measured server stands behind, whatever the profile was fitted on.
    #[must_use]
    pub fn not_fitted(&self) -> Vec<&'static str> {
        let parts = [
            ("data-parallel ranks", self.ranks() > 1),
            ("pipeline stages", self.pipeline_parallel_size > 1),
            ("speculation", self.speculative.is_some()),
            ("steps without CUDA graphs", self.graphs == Some(Graphs::Off)),
        ];
        parts.into_iter().filter(|(_, is_there)| *is_there).map(|(part, _)| part).collect()
    }

    /// `calibrated on qwen3-14b, not on llama-3.1-8b, under vllm 0.23`.
    #[must_use]
    pub fn foundation(&self) -> String {
        let Self { profile, model, .. } = self;
        let mut text = profile.standing.name().to_owned();
        if profile.standing == Standing::Estimated {
            return text;
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
