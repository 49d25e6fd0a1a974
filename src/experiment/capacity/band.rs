//! What the profile's own error does to the answer.
//!
//! Near saturation a few per cent of a step's time move TTFT a hundredfold, so a sampling interval alone
//! would claim a precision that the model does not have.
//!
//! A server that is slower in everything by a factor is the same server under so many times the load, whose
//! answers have so much less time. So one load tells: where the curve would be met with equality is read off
//! the curve that is there, moved by what the same users see at that load with steps longer and shorter.

use super::crossing::{load_at_level, log_ratio};
use super::search::{FEW, Found};
use super::{CapacityError, LoadAxis};
use crate::catalog::Profile;
use crate::engine::Server;
use crate::experiment::point::Point;
use crate::experiment::replicate::replicate;
use crate::experiment::saturation::saturate;
use crate::scenario::{RunLength, Scenario, Warmup};

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
    found: &Found,
    estimate: f64,
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
    let estimate_with = |factor: f64| moved(axis, at, found, estimate, factor);
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

/// The estimate if every step takes `factor` times as long; `None` if nothing meets the objectives then.
fn moved(
    axis: &LoadAxis,
    at: &dyn Fn(f64) -> Result<Scenario, CapacityError>,
    found: &Found,
    estimate: f64,
    factor: f64,
) -> Result<Option<f64>, CapacityError> {
    let under = |load: f64| if axis.is_rate() { load / factor } else { load };
    let scaled = |load: f64| at(load).map(|scenario| with_steps_scaled(scenario, factor));
    let Some(crossing) = found.crossing.as_ref().filter(|crossing| crossing.load.mean == estimate) else {
        // Bound by stability, so by what it completes when saturated.
        let limit = |scenario: &Scenario| {
            saturate(scenario).map(|found| found.map(|saturation| saturation.completed_per_s.mean))
        };
        let (own, with) = (limit(&at(estimate)?)?, limit(&scaled(estimate)?)?);
        return Ok(own.zip(with).map(|(own, with)| estimate * with / own));
    };
    let Some((load, point)) = nearest(found, estimate) else { return Ok(None) };
    let mut scenario = scaled(under(load))?;
    scenario.run = point.scenario.run.clone();
    if axis.is_rate() {
        // The same requests, so that everything else takes so many times as long too.
        if let RunLength::DurationS(seconds) = &mut scenario.run.length {
            *seconds *= factor;
        }
        if let Warmup::Seconds(seconds) = &mut scenario.run.warmup {
            *seconds *= factor;
        }
    }
    let few = FEW.min(point.runs.len() as u32);
    scenario.run.replications = few;
    let runs = replicate(&scenario, Vec::new(), few)?;
    let with = Point::new(Vec::new(), scenario, runs);
    let level = |point: &Point| log_ratio(point, &crossing.objective, few as usize);
    let moved = level(&with).zip(level(point)).and_then(|(with, own)| {
        let from = load_at_level(&found.points, load, crossing, 0.0)?;
        let to = load_at_level(&found.points, load, crossing, own - with)?;
        Some(under(estimate + to - from))
    });
    Ok(moved.filter(|load| *load > 0.0))
}

/// Of the two loads that the estimate lies between, the one that holds.
fn nearest(found: &Found, estimate: f64) -> Option<(f64, &Point)> {
    let below = found.points.iter().rfind(|(load, _)| *load <= estimate)?;
    Some((below.0, &below.1))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::experiment::Silent;
    use crate::experiment::capacity::search::{Effort, Search};
    use crate::experiment::capacity::{capacity, estimate_of};
    use crate::scenario::{Document, Override};

    /// The band is read off one load; a search of its own finds the same.
    #[test]
    fn the_band_is_where_slower_and_faster_servers_have_their_capacity() {
        let changes = [
            Override::new("class.chat.input_tokens", "{ constant = 512 }"),
            Override::new("class.chat.output_tokens", "{ exponential = { mean = 200 } }"),
            Override::new("class.chat.slo", "{ ttft_p95_ms = 200 }"),
            Override::new("run.requests", "4000"),
        ];
        let document = Document::load("chat-h100").and_then(|document| document.with_overrides(&changes));
        let (document, catalog) = (document.expect("a scenario"), Catalog::new(None));
        let found = capacity(&document, &catalog, None, Effort::default(), &Silent).expect("a capacity");
        let (estimate, band) = (found.estimate.expect("an estimate"), found.band.expect("a band"));
        assert!(band.low < estimate.mean && estimate.mean < band.high, "{band:?} about {estimate:?}");
        for (factor, banded) in [(1.0 + band.error, band.low), (1.0 - band.error, band.high)] {
            let at = |load: f64| {
                let scenario = found.axis.scenario(&document, &catalog, load)?;
                Ok(with_steps_scaled(scenario, factor))
            };
            let search = Search::new(&found.axis, &at, Effort::default(), 5, &Silent);
            let searched = search.run(true).expect("a search");
            let searched = estimate_of(&searched, &found.axis).0.expect("an estimate").mean;
            assert!((banded / searched - 1.0).abs() < 0.015, "{factor}: {banded} against {searched}");
        }
    }
}
