//! What the profile's own error does to the answer.
//!
//! Near saturation a few per cent of a step's time move TTFT a hundredfold, so a sampling interval alone
//! would claim a precision that the model does not have.

use super::search::{Effort, Search};
use super::{CapacityError, LoadAxis, estimate_of};
use crate::engine::Server;
use crate::experiment::sweep::Progress;
use crate::scenario::Scenario;

/// The estimate with every step longer and shorter by the profile's error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The error as a fraction.
    pub error: f64,
    /// The estimate with steps longer by it, and shorter.
    pub low: f64,
    pub high: f64,
}

/// The largest of the percentages in a profile's held-out error in words, as a fraction: `TTFT 13 %,
/// TPOT 3.3 %` is 0.13. `None` if there is no percentage in it.
#[must_use]
pub fn held_out_error(words: &str) -> Option<f64> {
    let mut largest: Option<f64> = None;
    for before in words.split('%').take(words.matches('%').count()) {
        let number: f64 = before.split_whitespace().next_back()?.parse().ok()?;
        largest = Some(largest.map_or(number, |other| other.max(number)));
    }
    largest.map(|percent| percent / 100.0).filter(|error| (0.0..1.0).contains(error))
}

/// The band about `estimate`, or why there is none; neither for a synthetic server, whose service times
/// are what the scenario says.
pub(super) fn band(
    base: &Scenario,
    axis: &LoadAxis,
    at: &(dyn Fn(f64) -> Result<Scenario, CapacityError> + Sync),
    effort: Effort,
    stretch: u64,
    estimate: f64,
    progress: &dyn Progress,
) -> Result<(Option<Band>, Option<String>), CapacityError> {
    let Some(serving) = &base.serving else {
        return Ok((None, None));
    };
    let profile = &serving.profile;
    let Some(error) = profile.held_out_error.as_deref().and_then(held_out_error) else {
        let note = format!(
            "no band from calibration: profile {} was never scored on measurements it had not seen, so how \
             far the answer is off is not known",
            profile.name
        );
        return Ok((None, Some(note)));
    };
    let estimate_with = |factor: f64| -> Result<Option<f64>, CapacityError> {
        let scaled = |load: f64| at(load).map(|scenario| with_steps_scaled(scenario, factor));
        let search = Search::new(axis, &scaled, effort, base.run.replications, progress).stretched(stretch);
        let found = search.run(Some(estimate / factor), false)?;
        Ok(estimate_of(&found, axis).0.map(|estimate| estimate.mean))
    };
    let (low, high) = (estimate_with(1.0 + error)?, estimate_with(1.0 - error)?);
    Ok(match (low, high) {
        (Some(low), Some(high)) => (Some(Band { error, low, high }), None),
        _ => {
            let note = format!(
                "no band from calibration: with steps {:.1} % longer or shorter no load meets the objectives \
                 with equality",
                error * 100.0
            );
            (None, Some(note))
        }
    })
}

fn with_steps_scaled(mut scenario: Scenario, factor: f64) -> Scenario {
    if let Server::Llm(server) = &mut scenario.system.server {
        server.cost = server.cost.scaled(factor);
        server.pipeline = server.pipeline.as_ref().map(|pipeline| pipeline.scaled(factor));
        server.speculation = server.speculation.as_ref().map(|speculation| speculation.scaled(factor));
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::held_out_error;

    #[test]
    fn the_largest_error_counts() {
        assert_eq!(held_out_error("TTFT 13 %, TPOT 3.3 % (concurrency curves)"), Some(0.13));
        let largest = held_out_error("TTFT mean 1.4 %, p99 2.8 %; TPOT mean 2.3 %");
        assert!(largest.is_some_and(|error| (error - 0.028).abs() < 1e-12), "{largest:?}");
        assert_eq!(held_out_error("never scored"), None);
        assert_eq!(held_out_error("100 %"), None);
    }
}
