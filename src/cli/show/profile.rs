//! A profile: fitted step-time parameters.

use std::path::Path;

use super::Page;
use super::hardware::all_reduce;
use crate::catalog::{Catalog, CatalogError, ModelKind, Profile, Standing};
use crate::report::format::number;

pub(super) fn describe(catalog: &Catalog, name: &str) -> Result<String, CatalogError> {
    let profiles = catalog.tables_of_profile(name, Path::new(""))?;
    let mut pages = Vec::new();
    for profile in profiles {
        let mut page = Page::new(format!(
            "{}: {} {} on {}",
            profile.name, profile.engine, profile.versions, profile.gpu
        ));
        page.line("standing", standing(&profile));
        if let Some(last) = &profile.until_version {
            page.line("versions", format!("up to {last}"));
        }
        if !profile.fitted_models().is_empty() {
            page.line("fitted on", profile.fitted_models().join(", "));
        }
        page.line("held-out error", profile.held_out_error.as_deref().unwrap_or("never scored"));
        if profile.is_scored() && profile.scored_models() != profile.fitted_models() {
            page.line("", format!("scored on {}", profile.scored_models().join(", ")));
        }
        for values in &profile.values {
            let text = format!(
                "compute {} (half of it at {} tokens), weights {}, KV {} (fp8 {}), attention {} of the peaks; {} us per \
                 layer (steps with prompts at least {}), {} us per sequence, front end {} ms ({})",
                number(values.compute),
                number(values.half_tokens),
                number(values.memory),
                number(values.kv_memory),
                number(values.fp8_kv_memory),
                number(values.attention_compute),
                number(values.overhead_per_layer_s * 1e6),
                number(values.prefill_launch_per_layer_s * 1e6),
                number(values.per_sequence_s * 1e6),
                number(values.front_end_s * 1e3),
                values.standing.name()
            );
            page.line(values.weight_dtype.name(), text);
            if let Some(kind) = values.models {
                page.line("for", kind.name());
            }
            if values.models.is_some_and(ModelKind::has_experts) {
                let text = format!(
                    "experts: compute {} (half of it at {} rows, and at {} columns on a GPU), read at {} of the rate of \
                     weights; two tokens pick one with a correlation of {}",
                    number(values.expert_compute),
                    number(values.expert_half_tokens),
                    number(values.expert_half_width),
                    number(values.expert_memory),
                    number(values.expert_correlation)
                );
                page.line("", text);
            }
            if values.throttle > 0.0 {
                let lost = number(values.throttle * 100.0);
                page.line(
                    "",
                    format!("compute falls by up to {lost} % under sustained load (power-limited clock)"),
                );
            }
            for point in &values.all_reduce {
                page.line("all-reduce", all_reduce(point));
            }
            if !values.note.is_empty() {
                page.line("", &values.note);
            }
        }
        page.line("source", &profile.source);
        pages.push(page.text());
    }
    Ok(pages.join("\n"))
}

/// A fit whose error nobody knows is told from one that was scored.
fn standing(profile: &Profile) -> String {
    let never = profile.standing != Standing::Estimated && !profile.is_scored();
    format!("{}{}", profile.standing.name(), if never { ", never scored" } else { "" })
}
