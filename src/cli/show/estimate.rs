//! An estimated profile, as a file that `calibration/profiles` can hold: where one's own fit by hand starts.

use std::fmt::Write as _;

use crate::catalog::{Profile, ProfileValues};

/// The tables of values, one for each weight dtype, that the estimate stands for.
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
    let mut out = format!(
        "\n[[values]]\nweight_dtype = {:?}\nstanding = \"estimated\"\nversions = {}\n",
        values.weight_dtype.name(),
        quoted(&profile.versions)
    );
    for (key, value) in [
        ("compute", values.compute),
        ("memory", values.memory),
        ("expert_memory", values.expert_memory),
        ("half_tokens", values.half_tokens),
        ("kv_memory", values.kv_memory),
        ("fp8_kv_memory", values.fp8_kv_memory),
        ("attention_compute", values.attention_compute),
        ("overhead_per_layer_us", values.overhead_per_layer_s * 1e6),
        ("prefill_launch_per_layer_us", values.prefill_launch_per_layer_s * 1e6),
        ("per_sequence_us", values.per_sequence_s * 1e6),
        ("front_end_ms", values.front_end_s * 1e3),
        ("throttle", values.throttle),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{key} = {:?}", without_noise(value));
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
