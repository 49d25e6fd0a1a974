//! A finite job that nobody waits for: how long a fleet takes, and how large it must be for a window.

use super::size::{self, Unmet};
use crate::engine::EngineError;
use crate::experiment::alone::alone;
use crate::experiment::{Estimate, Point, run_point, saturate};
use crate::scenario::Scenario;

const SECONDS_PER_HOUR: f64 = 3600.0;

/// So much work, to be done within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    pub requests: f64,
    pub window_h: f64,
}

/// The fleet that does it.
#[derive(Clone, Debug)]
pub struct JobFleet {
    pub replicas: u32,
    pub gpus: u32,
    /// Completed requests per second of one replica that is never idle.
    pub saturated_per_s: Estimate,
    /// From the first request to the last answer, all replicas busy throughout; ramp and drain, which
    /// together last about as long as one answer, are not in it. At least as long as one answer.
    pub hours: f64,
    /// The run of the saturated replica.
    pub point: Point,
}

/// The smallest fleet that does the job in time, by the lower bound of a replica's saturated throughput:
/// without an objective every replica is full to the end, so that throughputs add up. Or why none of at most
/// `max_gpus` GPUs does.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn size_job(
    one: &Scenario,
    job: Job,
    max_gpus: u32,
) -> Result<Result<JobFleet, Unmet>, EngineError> {
    let beyond = || Ok(Err(format!("not within {max_gpus} GPUs").into()));
    let Some(saturation) = saturate(&size::saturated(one))? else {
        return beyond();
    };
    let window_s = job.window_h * SECONDS_PER_HOUR;
    let saturated_per_s = saturation.completed_per_s;
    let lower = saturated_per_s.lower();
    // With a replica for each request more of them would have nothing to do.
    let needed = libm::ceil(job.requests / (window_s * lower)).min(libm::ceil(job.requests)).max(1.0);
    let busy_s = job.requests / (needed * saturated_per_s.mean);
    let answer_s = answer_alone_s(one, &saturation.point, busy_s)?;
    if let Some(answer_s) = answer_s.filter(|answer_s| *answer_s > window_s) {
        let [answer_s, window_s] = [answer_s, window_s].map(|seconds| format!("{seconds:.3}"));
        let reason = format!(
            "no number of GPUs does it: one answer alone takes {answer_s} s on average, the window is {window_s} s"
        );
        return Ok(Err(reason.into()));
    }
    if lower <= 0.0 || needed * f64::from(one.gpus) > f64::from(max_gpus) {
        return beyond();
    }
    let replicas = needed as u32;
    Ok(Ok(JobFleet {
        replicas,
        gpus: replicas * one.gpus,
        saturated_per_s,
        hours: busy_s.max(answer_s.unwrap_or(0.0)) / SECONDS_PER_HOUR,
        point: saturation.point,
    }))
}

/// What an answer takes on average on a replica that has nothing else to do. `None` where a fleet is busy for longer
/// than one takes when saturated, which is longer still.
fn answer_alone_s(one: &Scenario, saturated: &Point, busy_s: f64) -> Result<Option<f64>, EngineError> {
    if size::mean_e2e_s(saturated).is_some_and(|e2e_s| e2e_s < busy_s) {
        return Ok(None);
    }
    Ok(size::mean_e2e_s(&run_point(&alone(one))?))
}
