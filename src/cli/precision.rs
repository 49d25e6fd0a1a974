//! Whether a result became as precise as asked, said beside it.

use super::console::Console;
use crate::experiment::precision::{Precision, Reached};

/// Of one point.
pub(super) fn say_precision(reached: &Reached, precision: Precision, console: &Console) {
    match reached.relative {
        Ok(relative) if reached.meets(precision) => console.note(&format!(
            "{} is within {:.1} % after {} replications",
            reached.quantity,
            relative * 100.0,
            reached.replications
        )),
        Ok(relative) => console.warning(&format!(
            "{} is within {:.1} %, not {:.1} %, after {} replications, the most allowed (--max-replications)",
            reached.quantity,
            relative * 100.0,
            precision.relative * 100.0,
            reached.replications
        )),
        Err(reason) => console.warning(&format!("{}: no precision was reached: {reason}", reached.quantity)),
    }
}

/// Of many points: the least precise of those that have a number, and how many have none.
pub(super) fn say_least(all: &[Reached], precision: Precision, console: &Console) {
    let of = |reached: &&Reached| reached.relative.unwrap_or(f64::NEG_INFINITY);
    let worst = all.iter().filter(|reached| reached.relative.is_ok()).max_by(|a, b| of(a).total_cmp(&of(b)));
    if let Some(worst) = worst {
        say_precision(worst, precision, console);
    }
    let none = all.iter().filter(|reached| reached.relative.is_err()).count();
    if none > 0 {
        console.note(&format!("{none} of {} points have no steady state to be precise about", all.len()));
    }
}
