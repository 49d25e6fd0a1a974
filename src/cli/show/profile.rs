//! A profile: fitted step-time parameters.

use std::path::Path;

use super::Page;
use crate::catalog::{Catalog, CatalogError, Dtype, Profile};
use crate::report::format::number;
use crate::report::provenance::standing;

pub(super) fn describe(catalog: &Catalog, name: &str) -> Result<String, CatalogError> {
    let profiles = of_name(catalog, name)?;
    let mut pages = Vec::new();
    for profile in profiles {
        let mut page = Page::new(format!(
            "{}: {} {} on {}",
            profile.name, profile.engine, profile.versions, profile.gpu
        ));
        page.line("standing", standing(profile.standing));
        page.line("held-out error", profile.held_out_error.as_deref().unwrap_or("never scored"));
        for values in &profile.values {
            let text = format!(
                "compute {}, weights {}, KV {}, attention {} of the peaks; {} us per layer, {} us per sequence, front \
                 end {} ms ({})",
                number(values.compute),
                number(values.memory),
                number(values.kv_memory),
                number(values.attention_compute),
                number(values.overhead_per_layer_s * 1e6),
                number(values.per_sequence_s * 1e6),
                number(values.front_end_s * 1e3),
                standing(values.standing)
            );
            page.line(values.weight_dtype.name(), text);
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

/// The profile's entries, one for each weight dtype it was fitted for. The catalog hands a profile out only for a
/// GPU and an engine, so each pair is asked.
fn of_name(catalog: &Catalog, name: &str) -> Result<Vec<Profile>, CatalogError> {
    let mut found: Vec<Profile> = Vec::new();
    let mut refusal = None;
    for gpu in catalog.hardware_names() {
        let gpu = catalog.hardware(&gpu)?;
        for (engine, _) in catalog.engine_versions() {
            for dtype in Dtype::ALL {
                match catalog.profile(name, &gpu, &engine, dtype, Path::new("")) {
                    Ok(profile) if profile.name == name => found.push(profile),
                    Ok(_) => {}
                    Err(error) => refusal = refusal.or(Some(error)),
                }
            }
        }
    }
    match refusal {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}
