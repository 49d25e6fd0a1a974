//! A finite job that nobody waits for: how long a fleet takes, and how large it must be for a window.
//!
//! All of it is there from the start. What a saturated replica completes bounds the fleet from below; how long one takes is
//! simulated, because a batch that fills and one that empties complete less: of a window of a few answers that is most.

use super::size::{self, Unmet};
use crate::engine::EngineError;
use crate::experiment::alone::{alone, under};
use crate::experiment::replicate::replicate;
use crate::experiment::{Estimate, Point, refused_share, run_point, saturate};
use crate::metrics::RunMode;
use crate::scenario::Scenario;
use crate::workload::Arrivals;

const SECONDS_PER_HOUR: f64 = 3600.0;
/// Requests of a job, and replicas, that are simulated, so many times. Of more replicas so many have their share, and the
/// last of all is extrapolated from the last of these; what is left of the share of a single one goes at its saturated
/// throughput.
const MOST_REQUESTS: f64 = 20_000.0;
const MOST_REPLICAS: f64 = 1_000.0;
const REPLICATIONS: u32 = 10;
/// A job of which more is refused, for being too long, is not done.
const MOST_REFUSED: f64 = 0.01;

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
    pub requests: f64,
    /// Completed requests per second of one replica that is never idle.
    pub saturated_per_s: Estimate,
    /// From the first request to the last answer, on average.
    pub hours: f64,
    /// The run of the saturated replica.
    pub point: Point,
}

/// The smallest fleet that does the job in time, with the upper bound of what it takes; or why none of at most
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
    if let Some((share, why)) = refused_share(one)?.filter(|(share, _)| *share > MOST_REFUSED) {
        let share = 100.0 * share;
        return Ok(Err(format!("{share:.2} % of the requests are refused and never done: {why}").into()));
    }
    let window_s = job.window_h * SECONDS_PER_HOUR;
    let never = |what: &str, takes_s: f64| {
        let [takes_s, window_s] = [takes_s, window_s].map(|seconds| format!("{seconds:.3}"));
        Ok(Err(
            format!("no number of GPUs does it: {what} takes {takes_s} s, the window is {window_s} s").into()
        ))
    };
    if let Some(answer_s) = size::mean_e2e_s(&run_point(&alone(one))?).filter(|answer_s| *answer_s > window_s)
    {
        return never("one answer alone", answer_s);
    }
    let lower = saturation.offered_per_s.lower();
    // With a replica for each request more of them would have nothing to do.
    let replica_each = libm::ceil(job.requests).max(1.0);
    let fewest = libm::ceil(job.requests / (window_s * lower)).clamp(1.0, replica_each);
    let most = f64::from(max_gpus / one.gpus.max(1)).min(replica_each);
    if lower <= 0.0 || fewest > most {
        return beyond();
    }
    let work = Work { one, requests: job.requests, saturated_per_s: saturation.offered_per_s };
    let (mut failing, mut replicas, mut step) = (fewest - 1.0, fewest, 1.0);
    let mut takes_s = work.takes_s(replicas)?;
    while takes_s.upper() > window_s {
        if replicas >= most {
            let is_alone = replicas >= replica_each;
            return if is_alone {
                never("the longest of its answers, with its interval,", takes_s.upper())
            } else {
                beyond()
            };
        }
        (failing, replicas, step) = (replicas, (replicas + step).min(most), 2.0 * step);
        takes_s = work.takes_s(replicas)?;
    }
    while replicas - failing > 1.0 {
        let middle = libm::floor(0.5 * (failing + replicas));
        let middle_s = work.takes_s(middle)?;
        if middle_s.upper() > window_s {
            failing = middle;
        } else {
            (replicas, takes_s) = (middle, middle_s);
        }
    }
    let replicas = replicas as u32;
    Ok(Ok(JobFleet {
        replicas,
        gpus: replicas * one.gpus,
        requests: job.requests,
        saturated_per_s: saturation.completed_per_s,
        hours: takes_s.mean / SECONDS_PER_HOUR,
        point: saturation.point,
    }))
}

/// Requests that are all there, and what one replica completes of them while it is full.
struct Work<'a> {
    one: &'a Scenario,
    requests: f64,
    saturated_per_s: Estimate,
}

impl Work<'_> {
    /// From the first request to the last answer with so many replicas, s.
    fn takes_s(&self, replicas: f64) -> Result<Estimate, EngineError> {
        let share = self.requests / replicas;
        let simulated = libm::floor(MOST_REQUESTS / share).min(MOST_REPLICAS).clamp(1.0, replicas);
        let requests = libm::ceil(share * simulated);
        let burst = requests.min(MOST_REQUESTS);
        let mut scenario = under(self.one, Arrivals::AllAtOnce, burst as u64, REPLICATIONS);
        scenario.run.mode = RunMode::Benchmark;
        scenario.system.replicas = simulated as u32;
        scenario.gpus = self.one.gpus * simulated as u32;
        let runs = replicate(&scenario, Vec::new(), REPLICATIONS)?;
        let takes_s: Vec<f64> = runs.iter().map(|run| run.window.end_s).collect();
        let burst_s = Estimate::of(&takes_s).unwrap_or(Estimate { mean: f64::INFINITY, half_width: None });
        let rest = (requests - burst) / simulated;
        // The largest of r times as many ends beta ln(r) later, if the tail is one of Gumbel's, whose deviation is
        // beta pi / sqrt(6).
        let deviation = takes_s.iter().map(|s| (s - burst_s.mean) * (s - burst_s.mean)).sum::<f64>();
        let deviation = libm::sqrt(deviation / (takes_s.len().max(2) - 1) as f64);
        let last_s = deviation * libm::sqrt(6.0) / std::f64::consts::PI * libm::log(replicas / simulated);
        Ok(Estimate {
            mean: burst_s.mean + last_s + rest / self.saturated_per_s.mean,
            half_width: burst_s
                .half_width
                .map(|half| half + rest / self.saturated_per_s.lower() - rest / self.saturated_per_s.mean),
        })
    }
}
