//! What `knee calibrate` prints: the parameters, how well they are known, and the errors.

use crate::calibrate::{Calibration, Fit, Status};
use crate::report::format::{counted, number};
use crate::report::table::{Columns, Look, Tone, labelled};
use crate::validate::ErrorRow;

/// A fitted profile for people.
#[must_use]
pub fn fit(calibration: &Calibration, look: Look) -> String {
    let mut lines = Vec::new();
    for fit in &calibration.fits {
        let Calibration { gpu, engine, .. } = calibration;
        let loads = fit.fitted.len();
        let name =
            format!("{engine} on {gpu}, {} weights, {}", fit.weights.dtype.name(), fit.weights.kind.name());
        lines.push(format!(
            "{}: {} figures of {}",
            look.paint(Tone::Strong, &name),
            fit.figures,
            counted(loads as u64, "measured load")
        ));
        lines.extend(labelled("standing", fit.standing.name()));
        lines.push(String::new());
        lines.extend(parameters(fit));
        lines.push(String::new());
        lines.extend(errors(fit));
        if let Some(how) = &fit.held_out {
            lines.extend(labelled("held out", how));
        }
        for warning in &fit.warnings {
            lines.extend(look.paint_all(Tone::Bad, labelled("mind", warning)));
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

fn parameters(fit: &Fit) -> Vec<String> {
    let header = ["parameter", "value", "+/-", "kernel or prior", "status"].map(str::to_owned);
    let mut columns = Columns::words_last(&header, 1);
    for one in &fit.parameters {
        let error = one.standard_error.filter(|_| one.status != Status::NotIdentified);
        columns.row(&[
            one.parameter.key().to_owned(),
            number(one.value),
            error.map_or_else(|| "-".to_owned(), number),
            number(one.prior),
            one.status.name().to_owned(),
        ]);
    }
    columns.lines()
}

fn errors(fit: &Fit) -> Vec<String> {
    let header = ["figure", "fit median %", "worst %", "held-out median %", "worst %", "worst held-out load"]
        .map(str::to_owned);
    let mut columns = Columns::words_last(&header, 1);
    let dash = || "-".to_owned();
    let median = |row: Option<&ErrorRow>| row.map_or_else(dash, |row| format!("{:.1}", row.median_percent));
    let worst = |row: Option<&ErrorRow>| row.map_or_else(dash, |row| format!("{:+.1}", row.worst_percent));
    for figure in crate::validate::Figure::ALL {
        let of = |rows: &[ErrorRow]| rows.iter().find(|row| row.figure == figure).cloned();
        let (fitted, held_out) = (of(&fit.errors), of(&fit.held_out_errors));
        if fitted.is_none() && held_out.is_none() {
            continue;
        }
        columns.row(&[
            figure.name().to_owned(),
            median(fitted.as_ref()),
            worst(fitted.as_ref()),
            median(held_out.as_ref()),
            worst(held_out.as_ref()),
            held_out.map_or_else(dash, |row| row.worst_cell),
        ]);
    }
    columns.lines()
}
