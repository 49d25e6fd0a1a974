//! A profile: fitted step-time parameters.

use super::Page;
use crate::catalog::{Catalog, CatalogError, ModelKind};
use crate::report::format::number;
use crate::report::provenance::standing;

pub(super) fn describe(catalog: &Catalog, name: &str) -> Result<String, CatalogError> {
    let profiles = catalog.profile_tables(name)?;
    let mut pages = Vec::new();
    for profile in profiles {
        let mut page = Page::new(format!(
            "{}: {} {} on {}",
            profile.name, profile.engine, profile.versions, profile.gpu
        ));
        page.line("standing", standing(profile.standing));
        if let Some(last) = &profile.until_version {
            page.line("versions", format!("up to {last}"));
        }
        page.line("held-out error", profile.held_out_error.as_deref().unwrap_or("never scored"));
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
                standing(values.standing)
            );
            page.line(values.weight_dtype.name(), text);
            if let Some(kind) = values.models {
                page.line("for", kind.name());
            }
            if values.models.is_some_and(ModelKind::has_experts) {
                let (memory, alike) = (number(values.expert_memory), number(values.expert_correlation));
                page.line(
                    "",
                    format!("experts are read at {memory} of that; two tokens pick one with a correlation of {alike}"),
                );
            }
            if values.throttle > 0.0 {
                let lost = number(values.throttle * 100.0);
                page.line(
                    "",
                    format!("compute falls by up to {lost} % under sustained load (power-limited clock)"),
                );
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
