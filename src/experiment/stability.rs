//! Does the system keep up? Tested, not assumed.
//!
//! At exactly its capacity a system's backlog grows like the square root of time: a test for linear
//! growth alone calls it stable. So the runs of a point show it *stable* only if three things hold: it
//! does not grow, its second half is no fuller than its first, and it is long enough that stretches of it
//! are independent of each other. Where they leave it *undecided*, the offered rate is compared with the
//! saturated throughput ([`saturate`](super::saturate)); what is within its interval stays undecided.

use super::estimate::{Estimate, LEVEL};
use super::point::Point;
use crate::metrics::{RunMode, RunSummary, StabilityEvidence};
use crate::stats::student_quantile;
use crate::workload::Arrivals;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Stable,
    Unstable,
    Undecided,
}

/// The answer and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    pub verdict: Verdict,
    /// Growth of the number in flight, requests per second, over replications.
    pub growth_per_s: Option<Estimate>,
    /// In one line, for people.
    pub reason: String,
}

impl Stability {
    /// The same of runs in which nothing was completed: they show no system that keeps up.
    #[must_use]
    pub(super) fn unseen(self) -> Self {
        match self.verdict {
            Verdict::Stable => {
                let reason = format!("no request completed in the window; {}", self.reason);
                Self { verdict: Verdict::Undecided, reason, ..self }
            }
            Verdict::Undecided | Verdict::Unstable => self,
        }
    }
}

/// Growth below this fraction of the offered rate is not called growth.
const GROWTH_OF_OFFERED: f64 = 0.01;
/// A second half that is fuller by this factor is not steady (linear growth: 3, square root: 1.83).
const FULLER: f64 = 1.5;
/// Correlation of neighbouring batches beyond which a run is too short for its own fluctuations.
const BATCH_CORRELATION: f64 = 0.5;
/// A finite run that completes less than this share of what is sent meanwhile falls behind.
const KEPT_UP: f64 = 0.98;
/// What grows while this share of the growth or less waits is not a backlog: the run is short against its answers, and
/// those under way are still adding up.
const BACKLOG_OF_GROWTH: f64 = 0.5;
/// A steady run that ends before this share of its requests do is short against its answers.
const UNDER_WAY: f64 = 0.2;
/// Fewer in flight than this are few whatever their trend: half-empty systems fluctuate by nature.
const FEW_IN_FLIGHT: f64 = 1.0;

/// Judges a point by the evidence of its replications.
#[must_use]
pub fn judge(arrivals: &Arrivals, mode: RunMode, evidence: &[&StabilityEvidence]) -> Stability {
    let growth = Estimate::of(&evidence.iter().map(|e| e.growth_per_s).collect::<Vec<_>>());
    let say = |verdict, reason: String| Stability { verdict, growth_per_s: growth, reason };
    match arrivals {
        Arrivals::Closed { users, .. } => {
            return say(Verdict::Stable, format!("closed loop: never more than {users} in flight"));
        }
        Arrivals::AllAtOnce => {
            return say(Verdict::Undecided, "all at once: a finite batch has no steady state".to_owned());
        }
        _ => {}
    }
    let Some(growth_per_s) = growth else {
        return say(Verdict::Undecided, "no run".to_owned());
    };
    let offered = mean_of(evidence, |e| e.offered_per_s);
    if evidence.iter().any(|e| e.batches.len() < 4) || offered <= 0.0 {
        return say(Verdict::Undecided, "the run is too short to tell".to_owned());
    }
    let (first, last) = (mean_of(evidence, |e| e.mean_first_half), mean_of(evidence, |e| e.mean_last_half));
    let fuller = last / first.max(f64::MIN_POSITIVE);
    let growing = growth_per_s.lower() > 0.0 && growth_per_s.mean > GROWTH_OF_OFFERED * offered;
    let filling = || {
        format!("in flight grows by {:.3} requests every second while hardly one waits", growth_per_s.mean)
    };
    let waits = mean_of(evidence, |e| e.waiting_growth_per_s) > BACKLOG_OF_GROWTH * growth_per_s.mean;
    if mode == RunMode::Benchmark {
        // One finite run, perhaps of a load that varies: what counts is whether it fell behind.
        let behind = growing && fuller > FULLER && mean_of(evidence, |e| e.achieved_over_offered) < KEPT_UP;
        if behind && !waits {
            return say(Verdict::Undecided, filling());
        }
        let verdict = if behind { Verdict::Unstable } else { Verdict::Stable };
        let reason = format!("{:.1} in flight in the first half, {:.1} in the second", first, last);
        return say(verdict, reason);
    }
    if growing && !waits && fuller > FULLER {
        return say(Verdict::Undecided, filling());
    }
    if growing && fuller > FULLER {
        let rate = growth_per_s.mean;
        return say(Verdict::Unstable, format!("in flight grows by {rate:.3} requests every second"));
    }
    if last < FEW_IN_FLIGHT {
        return say(Verdict::Stable, format!("{last:.2} in flight on average"));
    }
    if fuller > FULLER {
        return say(Verdict::Undecided, format!("the second half is {fuller:.2} x as full as the first"));
    }
    let correlation = batch_correlation(evidence);
    if correlation > BATCH_CORRELATION {
        let reason = format!(
            "the backlog wanders over times as long as the run (batch correlation {correlation:.2}); run longer"
        );
        return say(Verdict::Undecided, reason);
    }
    say(Verdict::Stable, format!("second half {fuller:.2} x as full as the first, no growth"))
}

/// Confidence of that comparison. More than elsewhere: at exactly its capacity a point may also pass for
/// stable by its own runs, and both together are to happen at most once in twenty times.
const CLEARLY: f64 = 0.99;

/// Decides a point that its own runs left undecided, if its rate is clearly below or above the throughput
/// of the saturated system, which was estimated from so many `replications`.
#[must_use]
pub fn judge_by_saturation(
    undecided: Stability,
    rate_per_s: f64,
    saturated_per_s: Estimate,
    replications: usize,
) -> Stability {
    let Stability { growth_per_s, reason, .. } = undecided;
    let limit = saturated_per_s.mean;
    let t = |level: f64| student_quantile(0.5 + level / 2.0, replications as f64 - 1.0);
    let wider = t(CLEARLY).zip(t(LEVEL)).map_or(1.0, |(clearly, usual)| clearly / usual);
    let bound = Estimate { mean: limit, half_width: saturated_per_s.half_width.map(|half| half * wider) };
    let (verdict, side) = if rate_per_s < bound.lower() {
        (Verdict::Stable, "below")
    } else if rate_per_s > bound.upper() {
        (Verdict::Unstable, "above")
    } else {
        (Verdict::Undecided, "within the interval of")
    };
    let reason = format!("{rate_per_s} req/s is {side} the saturated {limit:.2} req/s; by itself: {reason}");
    Stability { verdict, growth_per_s, reason }
}

fn mean_of(evidence: &[&StabilityEvidence], of: impl Fn(&StabilityEvidence) -> f64) -> f64 {
    evidence.iter().map(|e| of(e)).sum::<f64>() / evidence.len().max(1) as f64
}

/// Whether a point has a steady state, but runs that are short against their own fluctuations: then its tail
/// quantiles come out too low and its intervals too narrow, whatever is deleted as warm-up.
#[must_use]
pub fn wanders(point: &Point) -> bool {
    let evidence: Vec<&StabilityEvidence> = point.runs.iter().map(|run| &run.evidence).collect();
    point.scenario.run.mode == RunMode::Steady
        && point.stability.verdict == Verdict::Stable
        && batch_correlation(&evidence) > BATCH_CORRELATION
}

/// The share of the requests still under way when steady runs ended, where it is so large that latencies are of the
/// quicker ones.
#[must_use]
pub(super) fn cut_short(runs: &[RunSummary]) -> Option<f64> {
    let share = |run: &RunSummary| run.totals.in_flight_at_end as f64 / run.totals.offered.max(1) as f64;
    let steady = runs.iter().filter(|run| run.window.mode == RunMode::Steady);
    steady.map(share).reduce(f64::max).filter(|share| *share > UNDER_WAY)
}

/// Whether a point has a steady state, but runs that are over before many of their requests are.
#[must_use]
pub fn ends_early(point: &Point) -> bool {
    point.stability.verdict == Verdict::Stable && cut_short(&point.runs).is_some()
}

/// How many of its runs were over before the warm-up that was asked for was: they are kept whole.
#[must_use]
pub fn never_warm(point: &Point) -> usize {
    let is_whole = |run: &&RunSummary| run.window.start_s == 0.0 && !run.window.settled;
    point.runs.iter().filter(is_whole).count()
}

/// Lag-1 correlation of the batch means about their mean over all replications: near 0 where batches
/// are independent, near 1 where each run is one long excursion.
pub(super) fn batch_correlation(evidence: &[&StabilityEvidence]) -> f64 {
    let all = || evidence.iter().flat_map(|e| e.batches.iter());
    let mean = all().sum::<f64>() / all().count().max(1) as f64;
    let variance = all().map(|b| (b - mean) * (b - mean)).sum::<f64>() / all().count().max(1) as f64;
    let pairs = || evidence.iter().flat_map(|e| e.batches.windows(2));
    let covariance =
        pairs().map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / pairs().count().max(1) as f64;
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::experiment::{SloVerdict, run_point};
    use crate::scenario::Document;

    /// Servers of ten seconds each, 200 requests a second for ten seconds: nobody waits with 4,000 servers, which complete
    /// 400 per second, and the number in flight grows all the same.
    #[test]
    fn a_system_that_fills_is_not_one_that_falls_behind() {
        let run_at = |rate: u32, mode: &str, servers: u32, requests: u32| {
            let text = format!(
                "[engine]\nname = 'synthetic'\nservers = {servers}\nservice_time = {{ exponential = {{ mean_s = 10.0 }} }}\n\
                 [arrivals.poisson]\nrate_per_s = {rate}\n[[class]]\nname = 'all'\nshare = 1.0\nslo = {{ e2e_p90_ms = 30000 }}\n\
                 [run]\nrequests = {requests}\nreplications = 5\nmode = '{mode}'\n"
            );
            let scenario = Document::parse(&text, None).expect("TOML").scenario(&Catalog::new(None));
            run_point(&scenario.expect("a scenario")).expect("it runs")
        };
        let run = |servers, requests| run_at(200, "steady", servers, requests);
        let short = run(4000, 2000);
        assert_eq!(short.stability.verdict, Verdict::Stable, "{}", short.stability.reason);
        assert!(ends_early(&short));
        assert!(matches!(short.slo, SloVerdict::Unclear { .. }), "{:?}", short.slo);
        let long = run(4000, 60_000);
        assert!(!ends_early(&long));
        assert_eq!(long.slo, SloVerdict::Met);
        // With 1,000 they complete 100 per second.
        assert_eq!(run(1000, 2000).stability.verdict, Verdict::Unstable);
        assert_eq!(run(1000, 60_000).stability.verdict, Verdict::Unstable);
        // A benchmark that is over before anybody waits, at twice what they complete.
        assert_eq!(run_at(800, "benchmark", 4000, 4500).stability.verdict, Verdict::Unstable);
    }
}
