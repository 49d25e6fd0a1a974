//! One scenario, run as often as its plan says.

use super::objective::Margin;
use super::replicate::{Recorded, replicate};
use super::saturation::saturate;
use super::{SloVerdict, Stability, Verdict, objective, stability};
use crate::engine::{EngineError, Observer, RunUntil, run};
use crate::metrics::{RunMode, RunSummary, WarmUp};
use crate::scenario::{AxisValue, RunLength, Scenario};
use crate::units::{SimSpan, SimTime};
use crate::workload::RequestStream;

/// A point of a sweep (or the single point of a run), all replications folded in order.
#[derive(Clone, Debug)]
pub struct Point {
    /// Value of each axis, in the order of the axes.
    pub coordinates: Vec<AxisValue>,
    pub scenario: Scenario,
    /// One summary per replication, in order.
    pub runs: Vec<RunSummary>,
    pub stability: Stability,
    pub slo: SloVerdict,
}

/// Requests below which a run's own growth is not taken as proof.
const SHORT_RUN: u64 = 1_000;

impl Point {
    /// Judges the replications of a scenario.
    #[must_use]
    pub fn new(coordinates: Vec<AxisValue>, scenario: Scenario, runs: Vec<RunSummary>) -> Self {
        let evidence: Vec<_> = runs.iter().map(|run| &run.evidence).collect();
        let stability = stability::judge(&scenario.workload.arrivals, scenario.run.mode, &evidence);
        let stability = if saw_nothing(&runs) { stability.unseen() } else { stability };
        let slo = objective::judge(&scenario.workload.classes, &runs, stability.verdict);
        Self { coordinates, scenario, runs, stability, slo }
    }

    /// The margin of every objective: see [`objective::margins`].
    #[must_use]
    pub fn margins(&self) -> Vec<Margin> {
        objective::margins(&self.scenario.workload.classes, &self.runs)
    }

    /// The objective that is nearest to its limit, or farthest beyond it, by the means of the replications; `None` where
    /// the backlog grows, because there it is only the run's length.
    #[must_use]
    pub fn worst(&self) -> Option<Margin> {
        if self.stability.verdict == Verdict::Unstable {
            return None;
        }
        self.margins().into_iter().max_by(|a, b| a.ratio.mean.total_cmp(&b.ratio.mean))
    }

    /// Whether every objective holds by the means of the replications.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.stability.verdict != Verdict::Unstable
            && matches!(self.slo, SloVerdict::Met | SloVerdict::Unclear { .. })
    }

    /// Decides by saturating the system what the runs themselves left undecided.
    ///
    /// # Errors
    /// What stops a run: see [`EngineError`].
    pub fn settled(mut self) -> Result<Self, EngineError> {
        let rate = self.scenario.workload.arrivals.rate_per_s();
        // In a short run the filling of an empty system looks like growth.
        let short = self.runs.iter().any(|run| run.totals.offered < SHORT_RUN);
        let open = match self.stability.verdict {
            Verdict::Undecided => true,
            Verdict::Unstable => short,
            Verdict::Stable => false,
        };
        if let (true, Some(rate_per_s)) = (open, rate)
            && let Some(saturation) = saturate(&self.scenario)?
        {
            self.stability = stability::judge_by_saturation(
                self.stability,
                rate_per_s,
                saturation.offered_per_s,
                saturation.by_replication.len(),
            );
            if saw_nothing(&self.runs) {
                self.stability = self.stability.unseen();
            }
            self.slo = objective::judge(&self.scenario.workload.classes, &self.runs, self.stability.verdict);
        }
        Ok(self)
    }
}

/// Whether no request was completed, nor refused, in any run: whatever they say, it is not of a system at work.
fn saw_nothing(runs: &[RunSummary]) -> bool {
    runs.iter().all(|run| run.all.completed == 0 && run.all.rejected == 0)
}

/// Runs every replication of `scenario`, in parallel, and judges them.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn run_point(scenario: &Scenario) -> Result<Point, EngineError> {
    let runs = replicate(scenario, Vec::new(), scenario.run.replications)?;
    Point::new(Vec::new(), scenario.clone(), runs).settled()
}

/// Runs one replication of `scenario` by itself.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn run_once(scenario: &Scenario, replication: u32) -> Result<RunSummary, EngineError> {
    let recorded = Recorded::of(scenario, replication)?;
    let warm_up = WarmUp::of(scenario.run.warmup, &[&recorded.course]);
    Ok(recorded.summarise(scenario, warm_up))
}

/// Runs one replication of `scenario` under any observer.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn observe(
    scenario: &Scenario,
    replication: u32,
    observer: &mut impl Observer,
) -> Result<crate::engine::RunEnd, EngineError> {
    let mut client = RequestStream::new(&scenario.workload, scenario.seed, replication);
    let (requests, time) = match scenario.run.length {
        RunLength::Requests(requests) => (requests, SimTime::MAX),
        RunLength::DurationS(seconds) => {
            let span = SimSpan::from_secs_f64(seconds).map_err(|_| EngineError::ClockExhausted)?;
            (u64::MAX, SimTime::ZERO + span)
        }
    };
    let until = RunUntil { requests, time, drain: scenario.run.mode == RunMode::Benchmark };
    run(&scenario.system, &mut client, until, scenario.seed, replication, observer)
}
