//! The search: bracket, narrow, sharpen.
//!
//! 1. *Bracket.* Steps from a guess (half the saturated throughput, or the scenario's own load) until one
//!    load holds on average and a higher one does not; then bisection.
//! 2. *Lengthen.* If runs near the bracket are too short for the quantile that was promised or for their
//!    own fluctuations, or scatter more than the replications allowed can average out, they are made
//!    longer and the bracket is looked for again, nearby.
//! 3. *Sharpen.* Replications are added to the two loads of the bracket until the half-width of the estimate is
//!    half of what the answer may be wide, and a load below it is looked for that passes with its confidence
//!    bound. Only where none does within that width, the estimate is sharpened to a third.
//! 4. *Confirm.* That load must hold with runs four times as long (short ones sixteen times), and no nearer to its limit than the scatter of the
//!    shorter ones, else the search goes on with those.
//!
//! Long runs and many replications go to the loads that decide. A load is tried with few replications; the two
//! of the bracket, and the one that passes, have all of them. Where runs are lengthened, loads that are clearly
//! on one side stay as they are.

use super::crossing::{Crossing, crossing};
use super::side::{is_clear, is_long_enough, passes};
use super::{CapacityError, LoadAxis};
use crate::experiment::Estimate;
use crate::experiment::alone;
use crate::experiment::objective::refused_at_any_load;
use crate::experiment::point::Point;
use crate::experiment::precision::{
    TAIL_REQUESTS, planned_requests, relative_half_width, requests_for_tails, wanted,
};
use crate::experiment::replicate::replicate;
use crate::experiment::saturation::saturate;
use crate::experiment::stability::Verdict;
use crate::experiment::sweep::Progress;
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
pub(super) const FEWEST: u32 = 10;
/// Replications with which a load is tried; nothing is concluded from them but where to look next.
pub(super) const FEW: u32 = 5;
/// Steps away from the first guess, and looks in all: more than any curve needs, so that a curve that
/// is none ends the search too.
const MAX_STEPS: u32 = 24;
const MAX_LOOKS: usize = 80;
/// Factor of a step where nothing bounds the load, and where the saturated throughput does.
const STEP: f64 = 2.0;
const SMALL_STEP: f64 = 1.3;
/// Loads this far above the saturated throughput are certain to be unstable.
const BEYOND: f64 = 1.05;
/// Runs may be lengthened by this factor in all, a step at a time. The step is large because runs of a load with long
/// tails that are too short agree with each other, until some hold what the others lack; once they are long, the small
/// step does where it halves the number that would be needed to what is allowed.
const MAX_STRETCH: u64 = 64;
const STRETCH: u64 = 4;
const LONG: u64 = 16;
/// Requests of a run that is confirmed by one sixteen times as long, not four.
const SHORT: u64 = 5_000;
const SMALL_STRETCH: u64 = 2;
/// Share of a run that is deleted as warm-up.
const WARMUP: f64 = 0.1;
/// How far below the estimate, in half-widths, a load is likely to pass with its confidence bound.
const BELOW: f64 = 1.15;

/// What the search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Every load that was simulated, ascending.
    pub points: Vec<(f64, Point)>,
    /// Why no load can pass, where that is known.
    pub impossible: Option<String>,
    pub guaranteed: Option<f64>,
    pub first_failing: Option<f64>,
    pub crossing: Option<Crossing>,
    /// Completed requests per second when saturated, where the axis is a rate.
    pub saturated_per_s: Option<Estimate>,
    /// What the reader must know: limits that were reached.
    pub notes: Vec<String>,
}

/// What sharpening came to.
enum Sharpened {
    Done {
        bracket: Option<(f64, f64)>,
        crossing: Option<Crossing>,
    },
    /// Runs have been made longer.
    Longer {
        near: f64,
    },
}

/// Looks for the highest load at which the objectives of the scenarios that `at` makes hold.
pub(super) struct Search<'a> {
    axis: &'a LoadAxis,
    at: &'a (dyn Fn(f64) -> Result<Scenario, CapacityError> + Sync),
    effort: Effort,
    progress: &'a dyn Progress,
    first_replications: u32,
    replications: u32,
    stretch: u64,
    points: Vec<(f64, Point)>,
    saturated_per_s: Option<Estimate>,
    notes: Vec<String>,
    impossible: Option<String>,
}

impl<'a> Search<'a> {
    pub fn new(
        axis: &'a LoadAxis,
        at: &'a (dyn Fn(f64) -> Result<Scenario, CapacityError> + Sync),
        effort: Effort,
        replications: u32,
        progress: &'a dyn Progress,
    ) -> Self {
        let replications = replications.max(FEWEST).min(effort.max_replications.max(2));
        Self {
            axis,
            at,
            effort,
            progress,
            first_replications: replications,
            replications,
            stretch: 1,
            points: Vec::new(),
            saturated_per_s: None,
            notes: Vec::new(),
            impossible: None,
        }
    }

    /// Searches. With `sharpen`, to the asked precision; without, only for the estimate.
    pub fn run(mut self, sharpen: bool) -> Result<Found, CapacityError> {
        let (mut start, mut step) = self.guess()?;
        loop {
            let Some((low, high)) = self.bracket(start, step)? else {
                return self.found(None, None);
            };
            let mut longer = None;
            let near = if self.lengthened(low)? {
                low
            } else if !sharpen {
                return self.estimated(low, high);
            } else {
                match self.sharpened(low, high)? {
                    Sharpened::Longer { near } => near,
                    Sharpened::Done { bracket, crossing } => {
                        longer = self.refuted()?;
                        let Some((held, _)) = &longer else { return self.found(bracket, crossing) };
                        *held
                    }
                }
            };
            self.keep_what_is_settled(near, longer);
            (start, step) = (near, self.first_step());
        }
    }

    /// The guaranteed load with longer runs, if those do not hold there or are nearer to the limit than the others' scatter
    /// lets expect: runs that are too short for a long tail agree with each other, and only longer ones tell. They are that
    /// long from then on.
    fn refuted(&mut self) -> Result<Option<(f64, Point)>, CapacityError> {
        let Some(held) = self.guaranteed().filter(|_| self.stretch < MAX_STRETCH) else {
            return Ok(None);
        };
        let at_held = self.point(held)?;
        let are_short = at_held.runs.iter().all(|run| run.all.completed < SHORT);
        let shorter = at_held.worst();
        let stretch = self.stretch;
        self.stretch = (stretch * if are_short { LONG } else { STRETCH }).min(MAX_STRETCH);
        let point = self.simulated(held, self.replications.min(FEW))?;
        let is_nearer = shorter
            .zip(point.worst())
            .is_some_and(|(shorter, longer)| longer.ratio.mean > shorter.ratio.upper());
        if point.holds() && !is_nearer {
            self.stretch = stretch;
            return Ok(None);
        }
        self.replications = self.first_replications;
        Ok(Some((held, point)))
    }

    /// Drops the loads that longer runs may tell more of: all but those that are clearly on one side by runs that are
    /// long enough, away from `near`, and those beyond what the system completes when saturated. (Near the answer short runs
    /// can agree with each other and be wrong: of an M/M/1 queue whose p99 is 1.1 times its limit some say 0.7 +/- 0.1.)
    /// `longer` is there already with longer runs.
    fn keep_what_is_settled(&mut self, near: f64, longer: Option<(f64, Point)>) {
        let limit = self.saturated_per_s.map_or(f64::INFINITY, |limit| limit.upper());
        self.points.retain(|(load, point)| {
            let is_beyond = *load > limit && point.stability.verdict == Verdict::Unstable;
            let is_away = *load < near / SMALL_STEP || *load > near * SMALL_STEP;
            is_clear(point) && is_away && (is_beyond || is_long_enough(point))
        });
        if let Some((load, point)) = longer {
            self.points.retain(|(other, _)| *other != load);
            let place = self.points.partition_point(|(other, _)| *other < load);
            self.points.insert(place, (load, point));
        }
    }

    /// The factor of the first step from a load that is near the answer.
    fn first_step(&self) -> f64 {
        1.0 + self.effort.width / 2.0
    }

    /// A load to begin with and the factor to step by.
    fn guess(&mut self) -> Result<(f64, f64), CapacityError> {
        let start = self.axis.start;
        if self.axis.is_rate() {
            let base = (self.at)(self.axis.rounded(start, 3))?;
            self.saturated_per_s = saturate(&base)?.map(|saturation| saturation.offered_per_s);
        }
        Ok(match self.saturated_per_s {
            Some(saturated) => (saturated.mean / 2.0, SMALL_STEP),
            None => (start, STEP),
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
            let point = self.simulated(load, self.replications.min(FEW))?;
            self.points.insert(place, (load, point));
        }
        Ok(&self.points[place].1)
    }

    fn simulated(&mut self, load: f64, replications: u32) -> Result<Point, CapacityError> {
        let mut scenario = (self.at)(load)?;
        self.plan(&mut scenario);
        scenario.run.replications = replications;
        let runs = replicate(&scenario, Vec::new(), replications)?;
        self.progress.done(u64::from(replications));
        Ok(Point::new(Vec::new(), scenario, runs).settled()?)
    }

    fn extended(&mut self, point: Point, replications: u32) -> Result<Point, CapacityError> {
        let more = replications.saturating_sub(point.runs.len() as u32);
        let point = point.extended(replications)?;
        self.progress.done(u64::from(more));
        Ok(point)
    }

    /// Length of a run: long enough for its tails, then stretched.
    fn plan(&self, scenario: &mut Scenario) {
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

    /// Whether the point at `load` now has runs as long, and as many, as those that decide.
    fn topped_up(&mut self, load: f64) -> Result<bool, CapacityError> {
        let place = self.points.partition_point(|(other, _)| *other < load);
        let mut full = (self.at)(load)?;
        self.plan(&mut full);
        let point = self.points[place].1.clone();
        self.points[place].1 = if point.scenario.run.length != full.run.length {
            self.simulated(load, self.replications)?
        } else if (point.runs.len() as u32) < self.replications {
            self.extended(point, self.replications)?
        } else {
            return Ok(false);
        };
        Ok(true)
    }

    /// Two neighbouring loads of which the lower holds and the higher does not, by stepping from
    /// `start`; small steps grow. `None` if every load holds or none does.
    fn bracket(&mut self, start: f64, mut step: f64) -> Result<Option<(f64, f64)>, CapacityError> {
        let digits = self.digits();
        let largest = if self.saturated_per_s.is_some() { SMALL_STEP } else { STEP };
        let ceiling = self.saturated_per_s.map_or(f64::INFINITY, |limit| limit.upper() * BEYOND);
        let mut load = self.axis.rounded(start.min(ceiling), digits);
        let first = self.point(load)?;
        let (upward, scenario) = (first.holds(), first.scenario.clone());
        self.impossible =
            refused_at_any_load(&scenario.workload.classes, &first.runs).map(|refused| refused.to_string());
        // Before looking for a lower load that holds: whether an idle system does.
        if self.impossible.is_none() && !upward && self.axis.is_load() {
            self.impossible = alone::missed(&scenario)?.map(|missed| {
                format!(
                    "{} fails without any load, {:.2} times the limit",
                    missed.objective, missed.ratio.mean
                )
            });
            self.progress.done(u64::from(alone::REPLICATIONS));
        }
        if self.impossible.is_some() {
            return Ok(None);
        }
        for _ in 0..MAX_STEPS {
            let next = if upward { (load * step).min(ceiling) } else { load / step };
            let next = self.axis.rounded(next, digits);
            if next == load && step >= largest {
                break;
            }
            if next == load {
                step = (step * step).min(largest);
                continue;
            }
            let holds = match self.point(next) {
                Ok(point) => point.holds(),
                // The last value that the key takes.
                Err(CapacityError::Scenario(errors)) => {
                    let first = errors.problems.first();
                    let why = first.map_or(String::new(), |it| format!("{}: {}", it.message, it.label));
                    let value = self.axis.value_in_words(next);
                    self.notes.push(format!("the search ends where the scenario does: {value}: {why}"));
                    break;
                }
                Err(other) => return Err(other),
            };
            if holds != upward {
                return Ok(Some(if upward { (load, next) } else { (next, load) }));
            }
            load = next;
            step = (step * step).min(largest);
        }
        Ok(None)
    }

    /// Whether runs near the bracket were too short and have been made longer.
    fn lengthened(&mut self, low: f64) -> Result<bool, CapacityError> {
        self.topped_up(low)?;
        if is_long_enough(self.point(low)?) {
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
        self.stretch = (self.stretch * STRETCH).min(MAX_STRETCH);
        Ok(true)
    }

    /// A load near the estimate to begin with anew, if the replications allowed would not make it sharp, so that runs have
    /// been made longer instead.
    fn too_noisy(&mut self, crossing: &Crossing, target: f64) -> Option<f64> {
        let ratio = relative_half_width(&crossing.load) / target;
        let needed = f64::from(self.replications) * ratio * ratio / f64::from(self.effort.max_replications);
        if needed <= 1.0 || self.stretch >= MAX_STRETCH {
            return None;
        }
        let is_near = self.stretch >= LONG && needed <= SMALL_STRETCH as f64;
        let factor = if is_near { SMALL_STRETCH } else { STRETCH };
        self.stretch = (self.stretch * factor).min(MAX_STRETCH);
        self.replications = self.first_replications;
        Some(crossing.load.mean * (1.0 - self.effort.width / 4.0))
    }

    /// The nearest neighbours of which the lower holds and the higher does not; where noise makes
    /// several, the lowest.
    fn tightest(&self) -> Option<(f64, f64)> {
        let failing = self.points.iter().position(|(_, point)| !point.holds())?;
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

    /// The same with both loads at full length and number of replications.
    fn bracketed(&mut self, width: f64) -> Result<Option<(f64, f64)>, CapacityError> {
        for _ in 0..MAX_LOOKS {
            let Some((low, high)) = self.narrowed(width)? else {
                return Ok(None);
            };
            if !(self.topped_up(low)? | self.topped_up(high)?) {
                return Ok(Some((low, high)));
            }
        }
        Ok(self.tightest())
    }

    fn estimated(mut self, low: f64, high: f64) -> Result<Found, CapacityError> {
        let mut last = (low, high);
        let mut bracket = self.bracketed(self.effort.width / 2.0)?;
        for _ in 0..MAX_LOOKS {
            if bracket.is_some() {
                break;
            }
            last = self.wider(last)?;
            bracket = self.bracketed(self.effort.width / 2.0)?;
        }
        let crossing = bracket.and_then(|(low, high)| crossing(&self.points, low, high));
        self.found(bracket, crossing)
    }

    /// Looks about a bracket that is lost: more replications have moved the crossing out of the range looked at.
    fn wider(&mut self, (low, high): (f64, f64)) -> Result<(f64, f64), CapacityError> {
        let wide = (self.axis.rounded(low / SMALL_STEP, 3), self.axis.rounded(high * SMALL_STEP, 3));
        self.point(wide.0)?;
        self.point(wide.1)?;
        Ok(wide)
    }

    fn sharpened(&mut self, low: f64, high: f64) -> Result<Sharpened, CapacityError> {
        let width = self.effort.width;
        let mut last = (low, high);
        let (mut sharp, mut target) = (None, width / 2.0);
        for _ in 0..MAX_LOOKS {
            let Some((low, high)) = self.bracketed(width / 2.0)? else {
                last = self.wider(last)?;
                continue;
            };
            last = (low, high);
            sharp = crossing(&self.points, low, high);
            if let Some(crossing) = &sharp {
                if let Some(near) = self.too_noisy(crossing, target) {
                    return Ok(Sharpened::Longer { near });
                }
                let relative = relative_half_width(&crossing.load);
                if relative > target && self.replications < self.effort.max_replications {
                    self.replications =
                        wanted(self.replications, relative, target).min(self.effort.max_replications);
                    continue;
                }
            }
            let sharpest = width / 3.0;
            let is_last = sharp.is_none() || target <= sharpest;
            if self.look_for_a_pass(sharp.as_ref(), high, is_last)? {
                continue;
            }
            if is_last || self.is_within_width(high) {
                break;
            }
            target = sharpest;
        }
        Ok(Sharpened::Done { bracket: self.tightest(), crossing: sharp })
    }

    /// Whether the guaranteed load lies within the width asked for of `high`.
    fn is_within_width(&self, high: f64) -> bool {
        self.guaranteed().is_some_and(|held| high <= held * (1.0 + self.effort.width))
    }

    /// Whether another look was taken for a load that passes with its bound within the width of `high`; at the `last`
    /// chance also below it.
    fn look_for_a_pass(
        &mut self,
        crossing: Option<&Crossing>,
        high: f64,
        last: bool,
    ) -> Result<bool, CapacityError> {
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
        if let Some(held) = below_all
            && !is_clear(self.point(held)?)
            && self.topped_up(held)?
        {
            return Ok(true);
        }
        if self.is_within_width(high) {
            return Ok(false);
        }
        let half_width = crossing.map_or(0.0, |crossing| crossing.load.half_width.unwrap_or(0.0));
        let equality = crossing.map_or(high, |crossing| crossing.load.mean);
        let digits = self.digits();
        let first = self.axis.rounded(equality - BELOW * half_width, digits);
        let within = 1.0 + self.effort.width;
        let is_near = |load: f64| last || high <= load * within;
        let tried = self.points.iter().rfind(|(load, point)| {
            is_near(*load) && *load <= first && below_all.is_none_or(|held| *load > held) && !passes(point)
        });
        if let Some(tried) = tried.map(|(load, _)| *load)
            && self.topped_up(tried)?
        {
            return Ok(true);
        }
        // The next step down from the lowest load that does not pass.
        let unclear = self
            .points
            .iter()
            .find(|(load, point)| below_all.is_none_or(|held| *load > held) && !passes(point));
        let step = 1.0 + self.effort.width / 4.0;
        let second = unclear.map(|(load, _)| self.axis.below(*load, step, digits));
        for next in [Some(first), second].into_iter().flatten() {
            let is_new = self.points.iter().all(|(load, _)| *load != next);
            if is_new && is_near(next) && next < high && below_all.is_none_or(|held| next > held) {
                self.point(next)?;
                self.topped_up(next)?;
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
            None => self.points.iter().find(|(_, point)| !point.holds()).map(|(load, _)| *load),
        };
        let gap = guaranteed.zip(first_failing).map(|(held, failing)| failing / held - 1.0);
        if gap.is_some_and(|gap| gap > self.effort.width * 1.001) && !self.axis.whole {
            let why = if self.replications >= self.effort.max_replications {
                format!("{} replications, the most allowed, tell no more", self.replications)
            } else {
                "no load that was tried between them passes with its bound".to_owned()
            };
            self.notes.push(format!(
                "guaranteed and first failing load lie {:.1} % apart, more than the {:.1} % asked for: {why}",
                gap.unwrap_or(0.0) * 100.0,
                self.effort.width * 100.0
            ));
        }
        Ok(Found {
            points: self.points,
            impossible: self.impossible,
            guaranteed,
            first_failing,
            crossing,
            saturated_per_s: self.saturated_per_s,
            notes: self.notes,
        })
    }
}
