//! A finite job that nobody waits for: how long a fleet takes, and how large it must be for a window.

use super::size;
use crate::engine::EngineError;
use crate::experiment::{Estimate, Point, saturate};
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
    /// together last about as long as one answer, are not in it.
    pub hours: f64,
    /// The run of the saturated replica.
    pub point: Point,
}

/// The smallest fleet that does the job in time, by the lower bound of a replica's saturated throughput:
/// without an objective every replica is full to the end, so that throughputs add up. `None` where it
/// would take more than `max_gpus` GPUs, or nothing completes.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn size_job(one: &Scenario, job: Job, max_gpus: u32) -> Result<Option<JobFleet>, EngineError> {
    let Some(saturation) = saturate(&size::saturated(one))? else {
        return Ok(None);
    };
    let saturated_per_s = saturation.completed_per_s;
    let lower = saturated_per_s.lower();
    let needed = libm::ceil(job.requests / (job.window_h * SECONDS_PER_HOUR * lower));
    if lower <= 0.0 || needed * f64::from(one.gpus) > f64::from(max_gpus) {
        return Ok(None);
    }
    let replicas = (needed as u32).max(1);
    Ok(Some(JobFleet {
        replicas,
        gpus: replicas * one.gpus,
        saturated_per_s,
        hours: job.requests / (f64::from(replicas) * saturated_per_s.mean) / SECONDS_PER_HOUR,
        point: saturation.point,
    }))
}
