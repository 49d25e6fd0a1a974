//! An estimated profile, as a file that `calibration/profiles` can hold: where one's own fit by hand starts.

use std::fmt::Write as _;

use crate::calibrate::Parameter;
use crate::catalog::{ModelKind, Profile, ProfileValues};

/// The tables of values, one for each weight dtype and kind of model, that the estimate stands for.
pub(super) fn toml(profiles: &[Profile]) -> String {
    let Some(Profile { gpu, engine, .. }) = profiles.first() else {
        return String::new();
    };
    let mut out = format!(
        "# Estimated: kernel fractions of the GPU with prior host constants; nothing is fitted to this engine on it.\n\
         # As calibration/profiles/{gpu}-{engine}.toml (or named by hardware.profile = \"path.toml\") it takes the place\n\
         # of the estimate; change there what you know better.\n\
         gpu = {gpu:?}\nengine = {engine:?}\n"
    );
    for profile in profiles {
        for values in &profile.values {
            out.push_str(&table(profile, values));
        }
    }
    out
}

fn table(profile: &Profile, values: &ProfileValues) -> String {
    let mut out = format!("\n[[values]]\nweight_dtype = {:?}\n", values.weight_dtype.name());
    // Writing to a string cannot fail.
    if let Some(kind) = values.models {
        let _ = writeln!(out, "models = {:?}", kind.key());
    }
    let _ = writeln!(out, "standing = \"estimated\"\nversions = {}", quoted(&profile.versions));
    let has_experts = values.models.is_none_or(ModelKind::has_experts);
    for parameter in Parameter::of_values(has_experts) {
        let _ = writeln!(out, "{} = {:?}", parameter.key(), without_noise(parameter.value_in(values)));
    }
    let _ = writeln!(out, "source = {}", quoted(&profile.source));
    out
}

/// Ten decimals: what products and units add beyond them is not in the data.
fn without_noise(value: f64) -> f64 {
    const DECIMALS: f64 = 1e10;
    libm::rint(value * DECIMALS) / DECIMALS
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
