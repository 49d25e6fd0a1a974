//! The profile's file: what was fitted, how well it is known, on what, and with which error.

use std::fmt::Write as _;

use super::{Calibration, Fit, Fitted, Parameter};
use crate::catalog::AllReduce;
use crate::units::distinct;
use crate::validate::{ErrorRow, Figure, Load, Scored, error_words};

/// `calibration` as the text of a profile; `command`: how it was asked for.
#[must_use]
pub fn profile_toml(calibration: &Calibration, command: &str) -> String {
    let mut out = String::new();
    let Calibration { gpu, engine, fits } = calibration;
    line(&mut out, "# Fitted by `knee calibrate`; the command is in [values.fit].");
    line(&mut out, &format!("gpu = {gpu:?}\nengine = {engine:?}"));
    for fit in fits {
        values(&mut out, fit);
        record(&mut out, fit, command);
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn values(out: &mut String, fit: &Fit) {
    let values = &fit.values;
    line(out, "\n[[values]]");
    line(out, &format!("weight_dtype = {:?}", fit.weights.dtype.name()));
    line(out, &format!("models = {:?}", fit.weights.kind.key()));
    line(out, &format!("standing = {:?}", fit.standing.name()));
    line(out, &format!("versions = {}", text(&versions(fit))));
    for parameter in Parameter::of_values(fit.weights.kind.has_experts()) {
        let value = parameter.value_in(values);
        line(out, &format!("{} = {}", parameter.key(), digits(value)));
    }
    if !values.all_reduce.is_empty() {
        let points: Vec<String> = values.all_reduce.iter().map(all_reduce).collect();
        line(out, &format!("all_reduce = [{}]", points.join(", ")));
    }
    if let Some(error) = error_words(&fit.held_out_errors) {
        let how = fit.held_out.as_deref().unwrap_or("held out");
        line(out, &format!("held_out_error = {}", text(&format!("{error} ({how})"))));
    }
    line(out, &format!("source = {}", text(&source(fit))));
    line(out, &format!("note = {}", text(&fit.warnings.join("; "))));
}

fn all_reduce(point: &AllReduce) -> String {
    let large = if point.large_from_bytes.is_finite() {
        let (startup_us, from_kib) = (point.large_startup_s * 1e6, point.large_from_bytes / 1024.0);
        format!(", large_startup_us = {}, large_from_kib = {}", digits(startup_us), digits(from_kib))
    } else {
        String::new()
    };
    format!(
        "{{ gpus = {}, startup_us = {}, bus_gb_per_s = {}{large} }}",
        point.gpus,
        digits(point.startup_s * 1e6),
        digits(point.bus_bytes_per_s / 1e9)
    )
}

fn record(out: &mut String, fit: &Fit, command: &str) {
    let cells = &fit.fitted;
    line(out, "[values.fit]");
    line(out, &format!("command = {}", text(command)));
    line(out, &format!("data = {}", list(&distinct(cells.iter().map(|one| &one.cell.measurement.name)))));
    line(
        out,
        &format!("models = {}", list(&distinct(cells.iter().map(|one| &one.cell.serving().model.name)))),
    );
    if !fit.held_out_models.is_empty() {
        line(out, &format!("held_out_models = {}", list(&fit.held_out_models)));
    }
    line(out, &format!("cells_fitted = {}", cells.len()));
    line(out, &format!("cells_held_out = {}", fit.held_out_cells));
    if let Some(how) = &fit.held_out {
        line(out, &format!("held_out = {}", text(how)));
    }
    line(out, "[values.fit.valid_range]");
    range(out, cells, "input_tokens", |one| Some(one.cell.mean_input_tokens));
    range(out, cells, "output_tokens", |one| Some(one.cell.mean_output_tokens));
    range(out, cells, "concurrency", |one| match one.cell.load {
        Load::Users(users) => Some(f64::from(users)),
        Load::Recorded | Load::RatePerS(_) | Load::AllAtOnce => None,
    });
    range(out, cells, "rate_per_s", |one| one.cell.offered_per_s());
    range(out, cells, "tensor_parallel_size", |one| Some(f64::from(one.cell.serving().tensor_parallel_size)));
    parameters(out, fit, "standard_error", |one| one.standard_error.map(digits));
    parameters(out, fit, "prior", |one| Some(digits(one.prior)));
    parameters(out, fit, "status", |one| Some(text(one.status.name())));
    errors(out, "fit_error_percent", &fit.errors);
    errors(out, "held_out_error_percent", &fit.held_out_errors);
}

fn range(out: &mut String, cells: &[Scored], key: &str, of: impl Fn(&Scored) -> Option<f64>) {
    let values: Vec<f64> = cells.iter().filter_map(of).collect();
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    if let (Some(least), Some(most)) = (least, most) {
        line(out, &format!("{key} = [{}, {}]", digits(least), digits(most)));
    }
}

fn parameters(out: &mut String, fit: &Fit, table: &str, of: impl Fn(&Fitted) -> Option<String>) {
    line(out, &format!("[values.fit.{table}]"));
    for one in &fit.parameters {
        if let Some(value) = of(one) {
            line(out, &format!("{} = {value}", one.parameter.key()));
        }
    }
}

fn errors(out: &mut String, table: &str, rows: &[ErrorRow]) {
    line(out, &format!("[values.fit.{table}]"));
    for row in rows {
        line(out, &format!("{} = {:.1}", figure_key(row.figure), row.median_percent));
    }
}

/// The figure's column without its unit: an error is in per cent.
fn figure_key(figure: Figure) -> &'static str {
    figure.column().trim_end_matches("_ms").trim_end_matches("_per_s")
}

fn list(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| text(name.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

fn versions(fit: &Fit) -> String {
    let version = |one: &Scored| {
        let engine = &one.cell.serving().engine;
        engine.asked_version.clone().unwrap_or_else(|| engine.version.clone())
    };
    distinct(fit.fitted.iter().map(version)).join(", ")
}

fn source(fit: &Fit) -> String {
    let sources = fit.fitted.iter().map(|one| one.cell.measurement.source.as_str());
    let sources = distinct(sources.filter(|source| !source.is_empty()));
    let whose = if sources.is_empty() { String::new() } else { format!(" of {}", sources.join("; ")) };
    format!("end-to-end fit to {} measured loads{whose}", fit.fitted.len())
}

/// A TOML string.
fn text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// Four significant digits: more are noise.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0.0".to_owned();
    }
    let mut out = String::new();
    let decimals = (3 - libm::floor(libm::log10(value.abs())) as i32).clamp(1, 12) as usize;
    // Writing to a string cannot fail.
    let _ = write!(out, "{value:.decimals$}");
    let short = out.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
