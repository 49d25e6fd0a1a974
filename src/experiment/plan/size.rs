//! The smallest number of replicas that meets the objectives, found by simulating the fleet.
//!
//! The search starts where the saturated throughput of the replicas just exceeds the rate: fewer cannot
//! keep up. A count passes only if the objectives' confidence bounds hold and the rate is below the lower
//! bound of what the fleet completes when saturated, so that a short run cannot pass for a steady one.

use std::fmt;

use super::demand::{Demand, Rates};
use crate::engine::EngineError;
use crate::experiment::alone::{alone, under};
use crate::experiment::objective::{
    SloVerdict, judge, margins, most_refused_for, promised_to_all, refused_at_any_load,
};
use crate::experiment::replicate::replicate;
use crate::experiment::stability::{cut_short, judge_by_saturation};
use crate::experiment::{Estimate, Point, Verdict, run_point, saturate};
use crate::metrics::latency_of;
use crate::scenario::{RunLength, Scenario};
use crate::workload::{Arrivals, Metric};

/// Requests with which one replica is saturated.
const REQUESTS_SATURATED: u64 = 4_000;
/// Replications of each of these.
const REPLICATIONS: u32 = 5;
/// Replications in all where the estimates pass and a confidence bound does not.
const MORE_REPLICATIONS: u32 = 15;
/// A run of a fleet spans so many seconds, and so many answers, within bounds of requests.
const SPAN_S: f64 = 300.0;
const SPAN_ANSWERS: f64 = 30.0;
const FEWEST_REQUESTS: f64 = 4_000.0;
const MOST_REQUESTS: f64 = 200_000.0;
/// But of so many answers it spans all, and is made this much longer where too many are still under way at its end.
const FEWEST_ANSWERS: f64 = 10.0;
const LONGER: u64 = 4;
/// Requests in flight on average below which they are alone as good as always: a rate with fewer is simulated as one with
/// these, for thousands of requests of a demand of one a day would outlast the clock.
const LEAST_IN_FLIGHT: f64 = 1e-3;

/// A fleet that meets the demand.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub replicas: u32,
    pub gpus: u32,
    pub rates: Rates,
    /// The fleet under the peak rate.
    pub point: Point,
    /// Completed requests per second of one replica that is never idle.
    pub saturated_per_s: Estimate,
    /// Replicas that would carry the peak if nobody had an objective.
    pub replicas_without_objectives: u32,
    /// Why one replica fewer does not do; `None` where there is none fewer.
    pub one_fewer: Option<String>,
}

/// Why no number of replicas does it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    pub reason: String,
    /// How many times its limit an objective takes without any load.
    pub times_limit: Option<f64>,
}

impl<T: Into<String>> From<T> for Unmet {
    fn from(reason: T) -> Self {
        Self { reason: reason.into(), times_limit: None }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, times_limit } = self;
        match times_limit {
            Some(times) => write!(f, "{reason}, {times:.2} times the limit"),
            None => f.write_str(reason),
        }
    }
}

/// What the search for a fleet came to.
#[derive(Clone, Debug)]
pub enum Sizing {
    Fleet(Box<Fleet>),
    /// No number of replicas meets the objectives, and why.
    Never(Unmet),
}

/// Finds the smallest fleet of at most `max_gpus` GPUs.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub(super) fn size(
    one: &Scenario,
    demand: Demand,
    peak_factor: f64,
    max_gpus: u32,
) -> Result<Sizing, EngineError> {
    let classes = &one.workload.classes;
    if let Some(why) = promised_to_all(classes) {
        return Ok(Sizing::Never(why.into()));
    }
    let alone = run_point(&alone(one))?;
    let Some(e2e_s) = mean_e2e_s(&alone) else {
        let why = most_refused_for(&alone.runs).unwrap_or("none completes");
        return Ok(Sizing::Never(format!("every request is refused: {why}").into()));
    };
    // A share of refused requests is no latency: of it nobody waits so many times too long.
    if let Some(refused) = refused_at_any_load(classes, &alone.runs) {
        return Ok(Sizing::Never(refused.to_string().into()));
    }
    if let SloVerdict::Missed { binding } = judge(classes, &alone.runs, Verdict::Stable) {
        let worst = margins(classes, &alone.runs).into_iter().find(|margin| margin.objective == binding);
        let reason = format!("{binding} fails without any load");
        return Ok(Sizing::Never(Unmet { reason, times_limit: worst.map(|worst| worst.ratio.mean) }));
    }
    let Some(saturation) = saturate(&saturated(one))? else {
        return Ok(Sizing::Never("nothing completes when the replica is saturated".into()));
    };
    let rates = demand.rates(peak_factor, mean_tokens(one), e2e_s);
    let search = Search {
        one,
        rates,
        e2e_s,
        saturated_per_s: saturation.offered_per_s,
        most: max_gpus / one.gpus.max(1),
    };
    search.run()
}

struct Search<'a> {
    /// The candidate with one replica.
    one: &'a Scenario,
    rates: Rates,
    e2e_s: f64,
    saturated_per_s: Estimate,
    most: u32,
}

impl Search<'_> {
    fn run(&self) -> Result<Sizing, EngineError> {
        let lower = self.saturated_per_s.lower();
        if lower <= 0.0 {
            return Ok(Sizing::Never("its saturated throughput is too uncertain to size by".into()));
        }
        let first = (self.rates.peak_per_s / lower).floor() + 1.0;
        if first > f64::from(self.most) {
            return Ok(self.beyond(first));
        }
        let first = first as u32;
        let (mut failing, mut failed) = (first - 1, None);
        let (mut step, mut count) = (1, first);
        let mut passing = loop {
            match self.try_count(count)? {
                Ok(point) => break (count, point),
                Err(reason) => (failing, failed) = (count, Some(reason)),
            }
            if count >= self.most {
                return Ok(self.beyond(f64::from(count) + 1.0));
            }
            count = count.saturating_add(step).min(self.most);
            step *= 2;
        };
        while passing.0 - failing > 1 {
            let middle = failing + (passing.0 - failing) / 2;
            match self.try_count(middle)? {
                Ok(point) => passing = (middle, point),
                Err(reason) => (failing, failed) = (middle, Some(reason)),
            }
        }
        let saturated =
            "the rate is not below the lower bound of what it completes when saturated".to_owned();
        let one_fewer = (failing > 0).then(|| failed.unwrap_or(saturated));
        Ok(Sizing::Fleet(Box::new(Fleet {
            replicas: passing.0,
            gpus: passing.0 * self.one.gpus,
            rates: self.rates,
            point: passing.1,
            saturated_per_s: self.saturated_per_s,
            replicas_without_objectives: first,
            one_fewer,
        })))
    }

    fn beyond(&self, replicas: f64) -> Sizing {
        let gpus = replicas * f64::from(self.one.gpus);
        // A count of as many digits as anybody has GPUs.
        let gpus = match gpus {
            few if few < 1e9 => few.to_string(),
            many if many.is_finite() => format!("{many:.1e}"),
            _ => "an endless number of".to_owned(),
        };
        Sizing::Never(format!("needs at least {gpus} GPUs, more than the limit").into())
    }

    /// Simulates `count` replicas: the point if they do, why not if they do not.
    fn try_count(&self, count: u32) -> Result<Result<Point, String>, EngineError> {
        let mut scenario = self.fleet(count);
        let mut point = self.judged(&scenario)?;
        if let (Some(_), RunLength::Requests(requests)) = (cut_short(&point.runs), scenario.run.length) {
            scenario.run.length = RunLength::Requests(requests.saturating_mul(LONGER));
            point = self.judged(&scenario)?;
        }
        if matches!(point.slo, SloVerdict::Unclear { .. }) {
            scenario.run.replications = MORE_REPLICATIONS;
            point = self.judged(&scenario)?;
        }
        Ok(match &point.slo {
            SloVerdict::Met => Ok(point),
            SloVerdict::NoObjectives if point.stability.verdict == Verdict::Stable => Ok(point),
            SloVerdict::Missed { binding } => Err(format!("{binding} fails")),
            SloVerdict::Unclear { binding } => Err(format!("not shown to hold: {binding}")),
            SloVerdict::NoObjectives | SloVerdict::Unstable => {
                Err(format!("not stable: {}", point.stability.reason))
            }
        })
    }

    fn judged(&self, scenario: &Scenario) -> Result<Point, EngineError> {
        let mut point = unsettled(scenario)?;
        if point.stability.verdict == Verdict::Undecided {
            let replicas = f64::from(scenario.system.replicas);
            let fleet = Estimate {
                mean: self.saturated_per_s.mean * replicas,
                half_width: self.saturated_per_s.half_width.map(|half| half * replicas),
            };
            point.stability =
                judge_by_saturation(point.stability, self.rates.peak_per_s, fleet, REPLICATIONS as usize);
            point.slo = judge(&scenario.workload.classes, &point.runs, point.stability.verdict);
        }
        Ok(point)
    }

    /// The candidate with `count` replicas under the peak rate.
    fn fleet(&self, count: u32) -> Scenario {
        let rate_per_s = self.rates.peak_per_s.max(LEAST_IN_FLIGHT / self.e2e_s);
        let arrivals = match self.one.workload.arrivals {
            Arrivals::Gamma { burstiness, .. } => Arrivals::Gamma { rate_per_s, burstiness },
            Arrivals::Weibull { shape, .. } => Arrivals::Weibull { rate_per_s, shape },
            Arrivals::Constant { .. } => Arrivals::Constant { rate_per_s },
            _ => Arrivals::Poisson { rate_per_s },
        };
        let span_s = SPAN_S.max(SPAN_ANSWERS * self.e2e_s);
        let requests = (rate_per_s * span_s).clamp(FEWEST_REQUESTS, MOST_REQUESTS);
        let requests = requests.max(FEWEST_ANSWERS * self.e2e_s * rate_per_s) as u64;
        let mut scenario = under(self.one, arrivals, requests, REPLICATIONS);
        scenario.system.replicas = count;
        scenario.gpus = self.one.gpus * count;
        scenario
    }
}

/// The replications of a scenario, judged by themselves alone.
fn unsettled(scenario: &Scenario) -> Result<Point, EngineError> {
    let runs = replicate(scenario, Vec::new(), scenario.run.replications)?;
    Ok(Point::new(Vec::new(), scenario.clone(), runs))
}

/// What [`saturate`] takes its classes and its number of requests from.
pub(super) fn saturated(one: &Scenario) -> Scenario {
    under(one, Arrivals::AllAtOnce, REQUESTS_SATURATED, REPLICATIONS)
}

pub(super) fn mean_e2e_s(point: &Point) -> Option<f64> {
    let means: Vec<f64> =
        point.runs.iter().filter_map(|run| latency_of(&run.all, Metric::E2e)).map(|e2e| e2e.mean_s).collect();
    crate::stats::mean(&means)
}

/// Mean input and output tokens of a request, over the classes.
fn mean_tokens(scenario: &Scenario) -> f64 {
    let of_class = |class: &crate::workload::Class| {
        let (input, output) = class.lengths.mean_tokens();
        class.share * (input + output)
    };
    scenario.workload.classes.iter().map(of_class).sum()
}
