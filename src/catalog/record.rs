//! What a profile rests on: the record of its fit, and how far it was off where it was scored.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::files::File;
use super::{CatalogError, Profile, Standing};

/// What `knee calibrate` writes down of a fit. Maps are by the key of a profile's values, or by figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitRecord {
    pub command: String,
    /// Names of the measurements fitted.
    pub data: Vec<String>,
    pub models: Vec<String>,
    /// Models whose measurements were held out and scored; empty: those fitted.
    #[serde(default)]
    pub held_out_models: Vec<String>,
    pub cells_fitted: usize,
    pub cells_held_out: usize,
    /// How cells were held out, in words.
    pub held_out: Option<String>,
    /// Smallest and largest of what was fitted: tokens, users, GPUs.
    pub valid_range: BTreeMap<String, [f64; 2]>,
    pub standard_error: BTreeMap<String, f64>,
    /// Kernel value or prior from which each fitted parameter started.
    pub prior: BTreeMap<String, f64>,
    pub status: BTreeMap<String, String>,
    /// Medians of absolute errors, per cent.
    pub fit_error_percent: BTreeMap<String, f64>,
    #[serde(default)]
    pub held_out_error_percent: BTreeMap<String, f64>,
}

/// A profile that is further off, as a fraction, in the median of the loads it had not seen is not calibrated
/// (`knee calibrate` says the same of a fit).
const MOST_HELD_OUT_ERROR: f64 = 0.5;

impl Profile {
    /// The largest of its held-out errors as a fraction; `None` if none is on record.
    #[must_use]
    pub fn largest_held_out_error(&self) -> Option<f64> {
        self.held_out_error_percent.values().copied().reduce(f64::max).map(|percent| percent / 100.0)
    }

    /// Whether it was scored on measurements that its fit had not seen.
    #[must_use]
    pub fn is_scored(&self) -> bool {
        self.held_out_error.is_some() || !self.held_out_error_percent.is_empty()
    }

    /// The best that its held-out error lets it be called, whatever its file says.
    pub(super) fn standing_at_most(&self) -> Standing {
        match self.largest_held_out_error() {
            Some(error) if error > MOST_HELD_OUT_ERROR => Standing::Estimated,
            _ if self.is_scored() => Standing::Calibrated,
            _ => Standing::Fitted,
        }
    }

    /// Models that it was fitted on; empty if that is not on record, or nothing was.
    #[must_use]
    pub fn fitted_models(&self) -> &[String] {
        self.fit.as_ref().map_or(&[], |fit| fit.models.as_slice())
    }

    /// Smallest and largest of `key` that it was fitted on; `None` if that is not on record.
    #[must_use]
    pub fn fitted_range(&self, key: &str) -> Option<[f64; 2]> {
        self.fit.as_ref()?.valid_range.get(key).copied()
    }

    /// Models that its held-out error is of; empty if that is not on record, or there is none.
    #[must_use]
    pub fn scored_models(&self) -> &[String] {
        match &self.fit {
            Some(fit) if self.is_scored() && fit.held_out_models.is_empty() => &fit.models,
            Some(fit) if self.is_scored() => &fit.held_out_models,
            _ => &[],
        }
    }

    /// Whether fitted, and on other models than `model`.
    #[must_use]
    pub fn is_fitted_elsewhere(&self, model: &str) -> bool {
        let models = self.fitted_models();
        self.standing != Standing::Estimated && !models.is_empty() && !models.iter().any(|one| one == model)
    }

    /// The models that its held-out error is of, where `model` is not among them; such as `qwen3-14b`.
    #[must_use]
    pub fn scored_elsewhere(&self, model: &str) -> Option<String> {
        let models = self.scored_models();
        (!models.is_empty() && !models.iter().any(|one| one == model)).then(|| models.join(", "))
    }
}

/// No simulation is further off.
const PERCENT: (f64, f64) = (0.0, 1e6);

/// What is written down of a fit: figures that nothing simulates with, and that are shown.
pub(super) fn check(
    held_out_error_percent: &BTreeMap<String, f64>,
    fit: Option<&FitRecord>,
    file: &File,
) -> Result<(), CatalogError> {
    let errors = |key: &str, errors: &BTreeMap<String, f64>| {
        errors.iter().try_for_each(|(figure, percent)| {
            file.within(&format!("values.{key}.{figure}"), *percent, PERCENT).map(|_| ())
        })
    };
    errors("held_out_error_percent", held_out_error_percent)?;
    let Some(fit) = fit else { return Ok(()) };
    errors("fit.held_out_error_percent", &fit.held_out_error_percent)?;
    errors("fit.fit_error_percent", &fit.fit_error_percent)?;
    for (parameter, error) in &fit.standard_error {
        file.not_negative(&format!("values.fit.standard_error.{parameter}"), *error)?;
    }
    for (parameter, prior) in &fit.prior {
        file.finite(&format!("values.fit.prior.{parameter}"), *prior)?;
    }
    for (of, [least, most]) in &fit.valid_range {
        let key = format!("values.fit.valid_range.{of}");
        file.finite(&key, *least)?;
        if file.finite(&key, *most)? < *least {
            let message = format!("`{key}` is [{least}, {most}]; expected the smaller first");
            return Err(file.invalid_at(&key, |_| true, &message));
        }
    }
    Ok(())
}
