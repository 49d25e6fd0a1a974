//! What the profile's own error does to the answer.
//!
//! Near saturation a few per cent of a step's time move TTFT a hundredfold, so a sampling interval alone
//! would claim a precision that the model does not have.

use super::search::{Effort, Search};
use super::{CapacityError, LoadAxis, estimate_of};
use crate::catalog::Profile;
use crate::engine::Server;
use crate::experiment::sweep::Progress;
use crate::scenario::Scenario;

/// The estimate with every step longer and shorter by the profile's error.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// The error as a fraction.
    pub error: f64,
    /// Whose error it is, where not that of what is simulated.
    pub error_is_of: Option<String>,
    /// The estimate with steps longer by it, and shorter.
    pub low: f64,
    pub high: f64,
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
    let error = match profile.largest_held_out_error() {
        Some(error) if error < 1.0 => error,
        Some(error) => {
            let note = format!(
                "no band from calibration: profile {} was off by {:.0} % on measurements it had not seen{}",
                profile.name,
                error * 100.0,
                serving.error_is_of().map_or(String::new(), |of| format!(" ({of})"))
            );
            return Ok((None, Some(note)));
        }
        None => {
            let note = format!("no band from calibration: {}", unknown_error(profile));
            return Ok((None, Some(note)));
        }
    };
    let estimate_with = |factor: f64| -> Result<Option<f64>, CapacityError> {
        let scaled = |load: f64| at(load).map(|scenario| with_steps_scaled(scenario, factor));
        let search = Search::new(axis, &scaled, effort, base.run.replications, progress).stretched(stretch);
        let found = search.run(Some(estimate / factor), false)?;
        Ok(estimate_of(&found, axis).0.map(|estimate| estimate.mean))
    };
    let (low, high) = (estimate_with(1.0 + error)?, estimate_with(1.0 - error)?);
    Ok(match (low, high) {
        // Both are searched with noise of their own; where it is larger than the error, the estimate is an end.
        (Some(low), Some(high)) => {
            let (low, high) = (low.min(estimate), high.max(estimate));
            (Some(Band { error, error_is_of: serving.error_is_of(), low, high }), None)
        }
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

/// Why nobody knows how far `profile` is off.
pub(in crate::experiment) fn unknown_error(profile: &Profile) -> String {
    let why = if profile.is_scored() {
        "has its held-out error in words only"
    } else {
        "was never scored on measurements it had not seen"
    };
    format!("profile {} {why}, so how far the answer is off is not known", profile.name)
}

/// `scenario` with every step so many times as long.
pub(in crate::experiment) fn with_steps_scaled(mut scenario: Scenario, factor: f64) -> Scenario {
    if let Server::Llm(server) = &mut scenario.system.server {
        server.cost = server.cost.scaled(factor);
        server.pipeline = server.pipeline.as_ref().map(|pipeline| pipeline.scaled(factor));
        server.speculation = server.speculation.as_ref().map(|speculation| speculation.scaled(factor));
    }
    scenario
}
