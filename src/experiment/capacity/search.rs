//! The search: bracket, narrow, sharpen.
//!
//! 1. *Bracket.* Steps from a guess (half the saturated throughput, or the scenario's own load) until one
//!    load holds on average and a higher one does not; then bisection.
//! 2. *Lengthen.* If runs near the bracket are too short for the quantile that was promised or for their
//!    own fluctuations, or scatter more than the replications allowed can average out, they are made
//!    longer and the bracket is looked for again, nearby.
//! 3. *Sharpen.* Replications are added to the loads near the bracket until the estimate is a third as
//!    wide as the answer may be; the last third is left for the step down to a load that passes with its
//!    confidence bound.

use super::crossing::{Crossing, crossing};
use super::{CapacityError, LoadAxis};
use crate::experiment::point::Point;
use crate::experiment::precision::{
    TAIL_REQUESTS, planned_requests, relative_half_width, requests_for_tails, thin_tails, wanted,
};
use crate::experiment::replicate::replicate;
use crate::experiment::saturation::saturate;
use crate::experiment::stability::{self, Verdict};
use crate::experiment::sweep::Progress;
use crate::experiment::{Estimate, SloVerdict};
use crate::metrics::RunMode;
use crate::scenario::{RunLength, Scenario, Warmup};

/// How precise the answer is to be, and what may be spent on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// First failing load over guaranteed load, less 1.
    pub width: f64,
    /// The most replications of a load.
    pub max_replications: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { width: 0.05, max_replications: 60 }
    }
}

/// Replications before anything is concluded: with five, searches that stop at a scatter that is low by
/// luck cover the truth in 91 % of 200 seeds instead of 95 %.
const FEWEST: u32 = 10;
/// Steps away from the first guess, and looks in all: more than any curve needs, so that a curve that
/// is none ends the search too.
const MAX_STEPS: u32 = 24;
const MAX_LOOKS: usize = 80;
/// Factor of a step where nothing bounds the load, and where the saturated throughput does.
const STEP: f64 = 2.0;
const SMALL_STEP: f64 = 1.3;
/// Loads this far above the saturated throughput are certain to be unstable.
const BEYOND: f64 = 1.05;
/// Runs may be lengthened by this factor in all, a step at a time.
const MAX_STRETCH: u64 = 64;
const STRETCH: u64 = 4;
/// Correlation of batches of an eighth of a run's second half beyond which it is lengthened.
const LONG_ENOUGH: f64 = 0.3;
/// Share of a run that is deleted as warm-up.
const WARMUP: f64 = 0.1;
/// How far below the estimate, in half-widths, a load is likely to pass with its confidence bound.
const BELOW: f64 = 1.15;

/// What the search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Every load that was simulated, ascending.
    pub points: Vec<(f64, Point)>,
    pub guaranteed: Option<f64>,
    pub first_failing: Option<f64>,
    pub crossing: Option<Crossing>,
    /// Completed requests per second when saturated, where the axis is a rate.
    pub saturated_per_s: Option<Estimate>,
    /// What the reader must know: limits that were reached.
    pub notes: Vec<String>,
    /// How many times as long as asked the runs were in the end.
    pub(super) stretch: u64,
}

/// Whether a load holds, judged by the means of its replications.
fn holds(point: &Point) -> bool {
    point.stability.verdict != Verdict::Unstable
        && matches!(point.slo, SloVerdict::Met | SloVerdict::Unclear { .. })
}

/// Whether a load holds with its confidence bound, in a steady state that was shown.
fn passes(point: &Point) -> bool {
    point.stability.verdict == Verdict::Stable && point.slo == SloVerdict::Met
}

/// Looks for the highest load at which the objectives of the scenarios that `at` makes hold.
pub(super) struct Search<'a> {
    axis: &'a LoadAxis,
    at: &'a (dyn Fn(f64) -> Result<Scenario, CapacityError> + Sync),
    effort: Effort,
    progress: &'a dyn Progress,
    replications: u32,
    stretch: u64,
    points: Vec<(f64, Point)>,
    saturated_per_s: Option<Estimate>,
    notes: Vec<String>,
    runs: u64,
}

impl<'a> Search<'a> {
    pub fn new(
        axis: &'a LoadAxis,
        at: &'a (dyn Fn(f64) -> Result<Scenario, CapacityError> + Sync),
        effort: Effort,
        replications: u32,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            axis,
            at,
            effort,
            progress,
            replications: replications.max(FEWEST).min(effort.max_replications.max(2)),
            stretch: 1,
            points: Vec::new(),
            saturated_per_s: None,
            notes: Vec::new(),
            runs: 0,
        }
    }

    /// Starts with runs `stretch` times as long as asked: a tail quantile of short runs lies lower, so
    /// that estimates compare only at one length.
    pub fn stretched(mut self, stretch: u64) -> Self {
        self.stretch = stretch;
        self
    }

    /// Searches from `near` if given, else from a guess. With `sharpen`, to the asked precision;
    /// without, only for the estimate.
    pub fn run(mut self, near: Option<f64>, sharpen: bool) -> Result<Found, CapacityError> {
        let (mut start, mut step) = self.guess(near)?;
        loop {
            let Some((low, high)) = self.bracket(start, step)? else {
                return self.found(None, None);
            };
            let longer = self.lengthened(low)? || (sharpen && self.too_noisy()?);
            if !longer {
                break if sharpen { self.sharpened(low, high) } else { self.estimated() };
            }
            self.points.clear();
            (start, step) = (low, SMALL_STEP);
        }
    }

    /// A load to begin with and the factor to step by.
    fn guess(&mut self, near: Option<f64>) -> Result<(f64, f64), CapacityError> {
        let start = near.unwrap_or(self.axis.start);
        if self.axis.is_rate() {
            let base = (self.at)(self.axis.rounded(start, 3))?;
            self.saturated_per_s = saturate(&base)?.map(|saturation| saturation.offered_per_s);
        }
        Ok(match (near, self.saturated_per_s) {
            (Some(near), _) => (near, SMALL_STEP),
            (None, Some(saturated)) => (saturated.mean / 2.0, SMALL_STEP),
            (None, None) => (start, STEP),
        })
    }

    /// Significant digits with which loads near the answer differ by less than the width asked for.
    fn digits(&self) -> i32 {
        if self.effort.width < 0.02 { 4 } else { 3 }
    }

    /// The point at `load`, simulated if it is not there yet.
    fn point(&mut self, load: f64) -> Result<&Point, CapacityError> {
        let place = self.points.partition_point(|(other, _)| *other < load);
        if self.points.get(place).is_none_or(|(other, _)| *other != load) {
            let mut scenario = (self.at)(load)?;
            self.plan(&mut scenario);
            self.spend(u64::from(self.replications));
            let runs = replicate(&scenario, Vec::new(), self.replications)?;
            self.progress.done(u64::from(self.replications));
            let point = Point::new(Vec::new(), scenario, runs).settled()?;
            self.points.insert(place, (load, point));
        }
        Ok(&self.points[place].1)
    }

    fn spend(&mut self, runs: u64) {
        self.runs += runs;
        self.progress.total(self.runs);
    }

    /// Replications and length of a run: long enough for its tails, then stretched.
    fn plan(&self, scenario: &mut Scenario) {
        scenario.run.replications = self.replications;
        let planned = planned_requests(scenario).unwrap_or(0).max(1);
        let needed = requests_for_tails(scenario).div_ceil(planned).max(1) * self.stretch;
        scenario.run.length = match scenario.run.length {
            RunLength::Requests(requests) => RunLength::Requests(requests.saturating_mul(needed)),
            RunLength::DurationS(seconds) => RunLength::DurationS(seconds * needed as f64),
        };
        self.plan_warmup(scenario);
    }

    /// The tenth that automatic warm-up always deletes, and no more: runs that are not long against their
    /// own fluctuations are lengthened here, and a warm-up that differed between neighbouring loads would
    /// take from their curve the smoothness that common random numbers give it.
    fn plan_warmup(&self, scenario: &mut Scenario) {
        if scenario.run.warmup != Warmup::Auto || scenario.run.mode != RunMode::Steady {
            return;
        }
        let duration_s = match (scenario.run.length, scenario.workload.arrivals.rate_per_s()) {
            (RunLength::DurationS(seconds), _) => seconds,
            (RunLength::Requests(requests), Some(rate_per_s)) => requests as f64 / rate_per_s,
            // A closed loop's duration is not known beforehand.
            (RunLength::Requests(_), None) => return,
        };
        scenario.run.warmup = Warmup::Seconds(WARMUP * duration_s);
    }

    /// Whether the point at `load` now has as many replications as the others.
    fn topped_up(&mut self, load: f64) -> Result<bool, CapacityError> {
        let place = self.points.partition_point(|(other, _)| *other < load);
        let wanted = self.replications;
        let more = wanted.saturating_sub(self.points[place].1.runs.len() as u32);
        if more == 0 {
            return Ok(false);
        }
        self.spend(u64::from(more));
        let point = self.points[place].1.clone().extended(wanted)?;
        self.points[place].1 = point;
        self.progress.done(u64::from(more));
        Ok(true)
    }

    /// Two neighbouring loads of which the lower holds and the higher does not, by stepping from
    /// `start`. `None` if every load holds or none does.
    fn bracket(&mut self, start: f64, step: f64) -> Result<Option<(f64, f64)>, CapacityError> {
        let digits = self.digits();
        let ceiling = self.saturated_per_s.map_or(f64::INFINITY, |limit| limit.upper() * BEYOND);
        let mut load = self.axis.rounded(start.min(ceiling), digits);
        let upward = holds(self.point(load)?);
        for _ in 0..MAX_STEPS {
            let next = if upward { (load * step).min(ceiling) } else { load / step };
            let next = self.axis.rounded(next, digits);
            if next == load {
                break;
            }
            if holds(self.point(next)?) != upward {
                return Ok(Some(if upward { (load, next) } else { (next, load) }));
            }
            load = next;
        }
        Ok(None)
    }

    /// Whether runs near the bracket were too short and have been made longer.
    fn lengthened(&mut self, low: f64) -> Result<bool, CapacityError> {
        let point = self.point(low)?;
        let evidence: Vec<_> = point.runs.iter().map(|run| &run.evidence).collect();
        let too_short = !thin_tails(point).is_empty()
            || point.runs.iter().any(|run| !run.window.settled)
            || stability::batch_correlation(&evidence) > LONG_ENOUGH;
        if !too_short {
            return Ok(false);
        }
        if self.stretch >= MAX_STRETCH {
            self.notes.push(format!(
                "the backlog near the capacity wanders over times as long as a run, or fewer than \
                 {TAIL_REQUESTS} requests lie beyond a quantile, even with runs {MAX_STRETCH} times as long: \
                 set run.requests higher"
            ));
            return Ok(false);
        }
        self.stretch *= STRETCH;
        Ok(true)
    }

    /// Whether the replications allowed would not make the estimate sharp, so that runs have been made
    /// longer instead.
    fn too_noisy(&mut self) -> Result<bool, CapacityError> {
        let width = self.effort.width;
        let bracket = self.narrowed(width / 2.0)?;
        let crossing = bracket.and_then(|(low, high)| crossing(&self.points, low, high));
        let Some(crossing) = crossing.filter(|_| self.stretch < MAX_STRETCH) else {
            return Ok(false);
        };
        let ratio = relative_half_width(&crossing.load) / (width / 3.0);
        if f64::from(self.replications) * ratio * ratio <= f64::from(self.effort.max_replications) {
            return Ok(false);
        }
        self.stretch *= STRETCH;
        Ok(true)
    }

    /// The nearest neighbours of which the lower holds and the higher does not; where noise makes
    /// several, the lowest.
    fn tightest(&self) -> Option<(f64, f64)> {
        let failing = self.points.iter().position(|(_, point)| !holds(point))?;
        let below = failing.checked_sub(1)?;
        Some((self.points[below].0, self.points[failing].0))
    }

    /// Bisects until neighbours are within `width`; `None` if the bracket is lost to noise.
    fn narrowed(&mut self, width: f64) -> Result<Option<(f64, f64)>, CapacityError> {
        for _ in 0..MAX_LOOKS {
            let Some((low, high)) = self.tightest() else {
                return Ok(None);
            };
            let middle = self.axis.rounded(libm::sqrt(low * high), self.digits());
            if high <= low * (1.0 + width) || middle <= low || middle >= high {
                return Ok(Some((low, high)));
            }
            self.point(middle)?;
        }
        Ok(self.tightest())
    }

    fn estimated(mut self) -> Result<Found, CapacityError> {
        let bracket = self.narrowed(self.effort.width / 2.0)?;
        let crossing = bracket.and_then(|(low, high)| crossing(&self.points, low, high));
        self.found(bracket, crossing)
    }

    fn sharpened(mut self, low: f64, high: f64) -> Result<Found, CapacityError> {
        let width = self.effort.width;
        let mut last = (low, high);
        let mut sharp = None;
        for _ in 0..MAX_LOOKS {
            let Some((low, high)) = self.narrowed(width / 4.0)? else {
                // More replications have moved the crossing out of the range that was looked at.
                let (low, high) = (last.0 / SMALL_STEP, last.1 * SMALL_STEP);
                let (low, high) = (self.axis.rounded(low, 3), self.axis.rounded(high, 3));
                self.point(low)?;
                self.point(high)?;
                last = (low, high);
                continue;
            };
            last = (low, high);
            if self.topped_up(low)? | self.topped_up(high)? {
                continue;
            }
            sharp = crossing(&self.points, low, high);
            if let Some(crossing) = &sharp {
                let relative = relative_half_width(&crossing.load);
                if relative > width / 3.0 && self.replications < self.effort.max_replications {
                    self.replications =
                        wanted(self.replications, relative, width / 3.0).min(self.effort.max_replications);
                    continue;
                }
            }
            if !self.look_for_a_pass(sharp.as_ref(), high)? {
                break;
            }
        }
        let bracket = self.tightest();
        self.found(bracket, sharp)
    }

    /// Whether another look was taken for a load that passes with its bound within the width of `high`.
    fn look_for_a_pass(&mut self, crossing: Option<&Crossing>, high: f64) -> Result<bool, CapacityError> {
        // A load below one that passes, but does not itself: noise or a curve that is no curve. More
        // replications tell.
        let passing = self.points.iter().rposition(|(load, point)| *load < high && passes(point));
        for place in 0..passing.unwrap_or(0) {
            let (load, point) = &self.points[place];
            if !passes(point) && self.topped_up(*load)? {
                return Ok(true);
            }
        }
        let below_all = self.guaranteed();
        if below_all.is_some_and(|held| high <= held * (1.0 + self.effort.width)) {
            return Ok(false);
        }
        let half_width = crossing.map_or(0.0, |crossing| crossing.load.half_width.unwrap_or(0.0));
        let equality = crossing.map_or(high, |crossing| crossing.load.mean);
        let digits = self.digits();
        let first = self.axis.rounded(equality - BELOW * half_width, digits);
        // The next step down from the lowest load that does not pass.
        let unclear = self
            .points
            .iter()
            .find(|(load, point)| below_all.is_none_or(|held| *load > held) && !passes(point));
        let step = 1.0 + self.effort.width / 4.0;
        let second = unclear.map(|(load, _)| self.axis.rounded(load / step, digits));
        for next in [Some(first), second].into_iter().flatten() {
            let is_new = self.points.iter().all(|(load, _)| *load != next);
            if is_new && next < high && below_all.is_none_or(|held| next > held) {
                self.point(next)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The last load that passes with all lower ones passing too.
    fn guaranteed(&self) -> Option<f64> {
        let passing = self.points.iter().take_while(|(_, point)| passes(point)).count();
        passing.checked_sub(1).map(|last| self.points[last].0)
    }

    fn found(
        mut self,
        bracket: Option<(f64, f64)>,
        crossing: Option<Crossing>,
    ) -> Result<Found, CapacityError> {
        let guaranteed = self.guaranteed();
        let first_failing = match bracket {
            Some((_, high)) => Some(high),
            None => self.points.iter().find(|(_, point)| !holds(point)).map(|(load, _)| *load),
        };
        let gap = guaranteed.zip(first_failing).map(|(held, failing)| failing / held - 1.0);
        if gap.is_some_and(|gap| gap > self.effort.width * 1.001) && !self.axis.whole {
            self.notes.push(format!(
                "guaranteed and first failing load lie {:.1} % apart, more than the {:.1} % asked for: \
                 {} replications were reached",
                gap.unwrap_or(0.0) * 100.0,
                self.effort.width * 100.0,
                self.replications
            ));
        }
        Ok(Found {
            points: self.points,
            guaranteed,
            first_failing,
            crossing,
            saturated_per_s: self.saturated_per_s,
            notes: self.notes,
            stretch: self.stretch,
        })
    }
}
