//! Watches a run and keeps what its summary needs, in memory that does not grow with the run.

use super::slices::{Slice, Slices};
use crate::cost::StepShape;
use crate::engine::{Finished, Observer, Rejection, Step, Stretch};
use crate::stats::Sketch;
use crate::units::{SimSpan, SimTime};
use crate::workload::{Metric, Request, Slo, Statistic};

/// Slices that carry latency sketches, and slices that carry only time averages.
const SEGMENTS: usize = 64;
const BINS: usize = 512;

/// What each request of a class must meet, in nanoseconds; `u64::MAX` where nothing was promised.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Every objective, for goodput.
    good: [u64; Metric::ALL.len()],
    /// Only the per-request limits, for attainment.
    attained: [u64; Metric::ALL.len()],
}

impl Limits {
    /// An objective on a mean or on pooled gaps (ITL) says nothing about one request.
    fn of(slo: &Slo) -> Self {
        let mut limits = Self { good: [u64::MAX; 6], attained: [u64::MAX; 6] };
        for objective in &slo.objectives {
            let index = objective.metric.index();
            let limit = SimSpan::from_secs_f64(objective.limit_s).map_or(u64::MAX, SimSpan::as_nanos);
            if objective.metric == Metric::Itl {
                continue;
            }
            match objective.statistic {
                Statistic::Mean => {}
                Statistic::Quantile(_) => limits.good[index] = limits.good[index].min(limit),
                Statistic::Request => {
                    limits.good[index] = limits.good[index].min(limit);
                    limits.attained[index] = limits.attained[index].min(limit);
                }
            }
        }
        limits
    }
}

/// Requests of one class that were sent, or completed, within a segment.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassSegment {
    pub offered: u64,
    pub completed: u64,
    pub rejected: u64,
    pub good: u64,
    pub attained: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub latency: [Sketch; Metric::ALL.len()],
}

impl ClassSegment {
    pub fn absorb(&mut self, later: &Self) {
        self.absorb_counts(later);
        for (mine, theirs) in self.latency.iter_mut().zip(&later.latency) {
            mine.merge(theirs);
        }
    }

    /// All but the latencies, which a summary merges at once for the sake of exact quantiles.
    pub fn absorb_counts(&mut self, later: &Self) {
        self.offered += later.offered;
        self.completed += later.completed;
        self.rejected += later.rejected;
        self.good += later.good;
        self.attained += later.attained;
        self.input_tokens += later.input_tokens;
        self.output_tokens += later.output_tokens;
    }
}

/// What one replica did within a segment. Integrals over time are in nanoseconds times their unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplicaSegment {
    pub completed: u64,
    pub output_tokens: u64,
    pub busy: u128,
    pub running: u128,
    pub waiting: u128,
    pub blocks: u128,
    pub blocks_max: u32,
    pub preemptions: u64,
    pub steps: u64,
    pub shapes: ShapeSum,
}

/// Integrals over time of what a replica is at, in nanoseconds times their unit.
#[derive(Clone, Copy, Debug)]
struct Integrals {
    busy: u128,
    running: u128,
    waiting: u128,
    blocks: u128,
}

/// Sums of the fields of many [`StepShape`]s, from which the mean step is built.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShapeSum {
    tokens: u64,
    sequences: u64,
    sampled: u64,
    decode_context: u64,
    decode_window_context: u64,
    prefill_pairs_x2: u64,
    prefill_window_pairs_x2: u64,
    prefill_context: u64,
    prefill_window_context: u64,
}

impl ShapeSum {
    #[inline]
    fn add(&mut self, shape: &StepShape) {
        self.tokens += u64::from(shape.tokens);
        self.sequences += u64::from(shape.sequences);
        self.sampled += u64::from(shape.sampled);
        // Contexts of billions of steps may pass 2^64; a mean that is used for an explanation may
        // saturate where a counter may not.
        for (sum, value) in [
            (&mut self.decode_context, shape.decode_context),
            (&mut self.decode_window_context, shape.decode_window_context),
            (&mut self.prefill_pairs_x2, shape.prefill_pairs_x2),
            (&mut self.prefill_window_pairs_x2, shape.prefill_window_pairs_x2),
            (&mut self.prefill_context, shape.prefill_context),
            (&mut self.prefill_window_context, shape.prefill_window_context),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds `steps` steps in which `sequences` decode and nothing else; `context` and `window_context` are
    /// sums over them.
    #[inline]
    fn add_decodes(&mut self, steps: u64, sequences: u32, context: u64, window_context: u64) {
        let rows = steps * u64::from(sequences);
        self.tokens += rows;
        self.sequences += rows;
        self.sampled += rows;
        self.decode_context = self.decode_context.saturating_add(context);
        self.decode_window_context = self.decode_window_context.saturating_add(window_context);
    }

    fn absorb(&mut self, later: &Self) {
        self.tokens += later.tokens;
        self.sequences += later.sequences;
        self.sampled += later.sampled;
        for (sum, value) in [
            (&mut self.decode_context, later.decode_context),
            (&mut self.decode_window_context, later.decode_window_context),
            (&mut self.prefill_pairs_x2, later.prefill_pairs_x2),
            (&mut self.prefill_window_pairs_x2, later.prefill_window_pairs_x2),
            (&mut self.prefill_context, later.prefill_context),
            (&mut self.prefill_window_context, later.prefill_window_context),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    /// The mean over `steps` steps, each field rounded to the nearest whole number.
    pub fn mean(&self, steps: u64) -> StepShape {
        let steps = steps.max(1);
        let mean = |sum: u64| sum / steps + u64::from(sum % steps >= steps.div_ceil(2));
        StepShape {
            tokens: mean(self.tokens) as u32,
            sequences: mean(self.sequences) as u32,
            sampled: mean(self.sampled) as u32,
            decode_context: mean(self.decode_context),
            decode_window_context: mean(self.decode_window_context),
            prefill_pairs_x2: mean(self.prefill_pairs_x2),
            prefill_window_pairs_x2: mean(self.prefill_window_pairs_x2),
            prefill_context: mean(self.prefill_context),
            prefill_window_context: mean(self.prefill_window_context),
        }
    }
}

impl ReplicaSegment {
    #[inline]
    fn add(&mut self, integrals: &Integrals) {
        self.busy += integrals.busy;
        self.running += integrals.running;
        self.waiting += integrals.waiting;
        self.blocks += integrals.blocks;
    }

    pub fn absorb(&mut self, later: &Self) {
        self.completed += later.completed;
        self.output_tokens += later.output_tokens;
        self.busy += later.busy;
        self.running += later.running;
        self.waiting += later.waiting;
        self.blocks += later.blocks;
        self.blocks_max = self.blocks_max.max(later.blocks_max);
        self.preemptions += later.preemptions;
        self.steps += later.steps;
        self.shapes.absorb(&later.shapes);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub classes: Vec<ClassSegment>,
    pub replicas: Vec<ReplicaSegment>,
}

impl Segment {
    fn class(&mut self, class: u16) -> &mut ClassSegment {
        let index = usize::from(class);
        if index >= self.classes.len() {
            self.classes.resize_with(index + 1, ClassSegment::default);
        }
        &mut self.classes[index]
    }

    #[inline]
    fn replica(&mut self, replica: u32) -> &mut ReplicaSegment {
        let index = replica as usize;
        if index >= self.replicas.len() {
            self.replicas.resize(index + 1, ReplicaSegment::default());
        }
        &mut self.replicas[index]
    }
}

impl Slice for Segment {
    fn absorb(&mut self, later: Self) {
        for (index, class) in later.classes.iter().enumerate() {
            self.class(index as u16).absorb(class);
        }
        for (index, replica) in later.replicas.iter().enumerate() {
            self.replica(index as u32).absorb(replica);
        }
    }
}

/// Time averages of the whole deployment within a bin, as integrals in nanoseconds times their unit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    pub in_flight: u128,
    /// What of it was refused when it came out of the front end.
    pub refused: u128,
    pub running: u128,
    pub waiting: u128,
    pub blocks: u128,
    pub completed: u64,
    /// Without those that are refused.
    pub offered: u64,
}

impl Bin {
    /// In flight and not on the way to being refused.
    pub fn admitted(&self) -> u128 {
        self.in_flight - self.refused
    }

    #[inline]
    fn add(&mut self, integrals: &Integrals) {
        self.running += integrals.running;
        self.waiting += integrals.waiting;
        self.blocks += integrals.blocks;
    }
}

impl Slice for Bin {
    fn absorb(&mut self, later: Self) {
        self.in_flight += later.in_flight;
        self.refused += later.refused;
        self.running += later.running;
        self.waiting += later.waiting;
        self.blocks += later.blocks;
        self.completed += later.completed;
        self.offered += later.offered;
    }
}

/// An [`Observer`] that becomes a [`RunSummary`](super::RunSummary) by
/// [`summarise`](Recorder::summarise).
///
/// A request's latencies belong to the segment in which it completes; a rate counts what happened in
/// its window. So a window needs no drain: nothing in it depends on what comes after.
#[derive(Clone, Debug)]
pub struct Recorder {
    limits: Vec<Limits>,
    pub(super) segments: Slices<Segment>,
    pub(super) bins: Slices<Bin>,
    pub(super) in_flight: u64,
    /// Until when the integral of `in_flight` is known.
    known_to: SimTime,
    pub(super) last_send: SimTime,
    pub(super) rejected_too_long: u64,
    /// Of these.
    pub(super) rejected_over_budget: u64,
    pub(super) rejected_queue_full: u64,
}

impl Recorder {
    /// For a run whose classes have these objectives, in order.
    pub fn new<'a>(slos: impl IntoIterator<Item = &'a Slo>) -> Self {
        Self {
            limits: slos.into_iter().map(Limits::of).collect(),
            segments: Slices::new(SEGMENTS),
            bins: Slices::new(BINS),
            in_flight: 0,
            known_to: SimTime::ZERO,
            last_send: SimTime::ZERO,
            rejected_too_long: 0,
            rejected_over_budget: 0,
            rejected_queue_full: 0,
        }
    }

    pub(super) fn classes(&self) -> usize {
        self.limits.len()
    }

    /// Brings the integral of the number in flight up to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: SimTime) {
        let in_flight = u128::from(self.in_flight);
        self.bins.spread(self.known_to, now, |bin, nanos| bin.in_flight += in_flight * u128::from(nanos));
        self.known_to = self.known_to.max(now);
    }

    /// Bin and segment, if `start` to `end` lies within one of each and they are the last.
    #[inline]
    fn whole(&mut self, start: SimTime, end: SimTime) -> Option<(&mut Bin, &mut Segment)> {
        self.bins.whole(start, end).zip(self.segments.whole(start, end))
    }

    /// Shares the time of a step out to the bins and segments that it touches; returns the segment in
    /// which it ends.
    #[cold]
    fn spread(&mut self, replica: u32, step: &Step<'_>) -> &mut Segment {
        let (running, waiting) = (u128::from(step.running), u128::from(step.waiting));
        let blocks = u128::from(step.blocks_used);
        let integrals = |nanos: u64| {
            let busy = u128::from(nanos);
            Integrals { busy, running: running * busy, waiting: waiting * busy, blocks: blocks * busy }
        };
        self.bins.spread(step.start, step.end, |bin, nanos| bin.add(&integrals(nanos)));
        self.segments.spread(step.start, step.end, |segment, nanos| {
            segment.replica(replica).add(&integrals(nanos));
        });
        self.segments.at(step.end)
    }
}

impl Observer for Recorder {
    #[inline]
    fn sent(&mut self, request: &Request) {
        self.advance(request.send);
        self.in_flight += 1;
        self.last_send = request.send;
        self.bins.at(request.send).offered += 1;
        self.segments.at(request.send).class(request.class).offered += 1;
    }

    fn rejected(&mut self, now: SimTime, request: &Request, reason: Rejection) {
        self.advance(now);
        self.in_flight -= 1;
        // Its way through the front end is no backlog, and it is not missing from what is completed.
        self.bins.spread(request.send, now, |bin, nanos| bin.refused += u128::from(nanos));
        self.bins.at(request.send).offered -= 1;
        match reason {
            Rejection::TooLong => self.rejected_too_long += 1,
            Rejection::OverBudget => {
                self.rejected_too_long += 1;
                self.rejected_over_budget += 1;
            }
            Rejection::QueueFull => self.rejected_queue_full += 1,
        }
        self.segments.at(now).class(request.class).rejected += 1;
    }

    #[inline]
    fn step(&mut self, replica: u32, step: &Step<'_>) {
        let nanos = u128::from(step.end.since(step.start).as_nanos());
        let integrals = Integrals {
            busy: nanos,
            running: u128::from(step.running) * nanos,
            waiting: u128::from(step.waiting) * nanos,
            blocks: u128::from(step.blocks_used) * nanos,
        };
        let segment = match self.whole(step.start, step.end) {
            Some((bin, segment)) => {
                bin.add(&integrals);
                segment.replica(replica).add(&integrals);
                segment
            }
            None => self.spread(replica, step),
        };
        let gap = step.end.since(step.start).as_nanos();
        for (class, &count) in step.steady_decodes.iter().enumerate() {
            if count > 0 {
                segment.class(class as u16).latency[Metric::Itl.index()].record_n(gap, u64::from(count));
            }
        }
        let totals = segment.replica(replica);
        totals.blocks_max = totals.blocks_max.max(step.blocks_used);
        totals.steps += 1;
        totals.shapes.add(step.shape);
        totals.output_tokens += u64::from(step.emitted);
    }

    fn stretch(&mut self, replica: u32, stretch: &Stretch<'_>) {
        let Some(last) = stretch.steps.last() else { return };
        let (first, start, end) = (&stretch.first, stretch.first.start, last.end);
        let Some((bin, segment)) = self.whole(start, end) else {
            stretch.each(|step| self.step(replica, step));
            return;
        };
        let steps = stretch.steps.len() as u64;
        let (mut blocks, mut blocks_max) = (0, 0);
        let (mut context, mut window_context) = (0_u64, 0_u64);
        let mut from = start;
        for step in stretch.steps {
            blocks += u128::from(step.blocks_used) * u128::from(step.end.since(from).as_nanos());
            blocks_max = blocks_max.max(step.blocks_used);
            context = context.saturating_add(step.decode_context);
            window_context = window_context.saturating_add(step.decode_window_context);
            from = step.end;
        }
        let nanos = u128::from(end.since(start).as_nanos());
        let (running, waiting) = (u128::from(first.running) * nanos, u128::from(first.waiting) * nanos);
        let integrals = Integrals { busy: nanos, running, waiting, blocks };
        bin.add(&integrals);
        for (class, &count) in first.steady_decodes.iter().enumerate() {
            if count > 0 {
                let itl = &mut segment.class(class as u16).latency[Metric::Itl.index()];
                let mut from = start;
                let gaps = stretch.steps.iter().map(|step| {
                    let gap = step.end.since(from).as_nanos();
                    from = step.end;
                    gap
                });
                itl.record_each_n(gaps, u64::from(count));
            }
        }
        let totals = segment.replica(replica);
        totals.add(&integrals);
        totals.blocks_max = totals.blocks_max.max(blocks_max);
        totals.steps += steps;
        totals.output_tokens += steps * u64::from(first.emitted);
        totals.shapes.add_decodes(steps, first.shape.sequences, context, window_context);
    }

    fn served(&mut self, replica: u32, from: SimTime, to: SimTime, busy: u32, waiting: u32) {
        let (running, waiting) = (u128::from(busy), u128::from(waiting));
        self.bins.spread(from, to, |bin, nanos| {
            bin.running += running * u128::from(nanos);
            bin.waiting += waiting * u128::from(nanos);
        });
        self.segments.spread(from, to, |segment, nanos| {
            let nanos = u128::from(nanos);
            let totals = segment.replica(replica);
            totals.busy += if busy > 0 { nanos } else { 0 };
            totals.running += running * nanos;
            totals.waiting += waiting * nanos;
        });
    }

    #[inline]
    fn token_gaps(&mut self, now: SimTime, class: u16, gap: SimSpan, count: u32) {
        let segment = self.segments.at(now);
        segment.class(class).latency[Metric::Itl.index()].record_n(gap.as_nanos(), u64::from(count));
    }

    fn preempted(&mut self, now: SimTime, replica: u32, _class: u16) {
        self.segments.at(now).replica(replica).preemptions += 1;
    }

    #[inline]
    fn finished(&mut self, replica: u32, life: &Finished) {
        self.advance(life.done);
        self.in_flight -= 1;
        self.bins.at(life.done).completed += 1;
        let limits = &self.limits[usize::from(life.request.class)];
        let latency = latencies(life);
        let meets = |limits: &[u64; 6]| {
            latency.iter().zip(limits).all(|(value, limit)| value.is_none_or(|nanos| nanos <= *limit))
        };
        let (good, attained) = (meets(&limits.good), meets(&limits.attained));
        let segment = self.segments.at(life.done);
        segment.replica(replica).completed += 1;
        let class = segment.class(life.request.class);
        class.completed += 1;
        class.good += u64::from(good);
        class.attained += u64::from(attained);
        class.input_tokens += u64::from(life.request.input_tokens);
        class.output_tokens += u64::from(life.request.output_tokens);
        for (sketch, value) in class.latency.iter_mut().zip(latency) {
            if let Some(nanos) = value {
                sketch.record(nanos);
            }
        }
    }
}

/// A request's latencies in nanoseconds, by [`Metric::index`]; `None` where it has none. Gaps between
/// tokens (ITL) are not a request's but pooled, and are recorded as they happen.
#[must_use]
pub fn latencies(life: &Finished) -> [Option<u64>; Metric::ALL.len()] {
    let request = &life.request;
    let e2e = life.done.since(request.send).as_nanos();
    let ttft = life.first_token.since(request.send).as_nanos();
    let tokens = u64::from(request.output_tokens);
    let mut latency = [None; Metric::ALL.len()];
    latency[Metric::E2e.index()] = Some(e2e);
    latency[Metric::Queue.index()] = Some(life.scheduled.since(request.send).as_nanos());
    if tokens > 0 {
        latency[Metric::Ttft.index()] = Some(ttft);
        latency[Metric::Ntpot.index()] = Some(divide_rounded(e2e, tokens));
    }
    if tokens > 1 {
        latency[Metric::Tpot.index()] = Some(divide_rounded(e2e - ttft, tokens - 1));
    }
    latency
}

fn divide_rounded(nanos: u64, by: u64) -> u64 {
    (nanos + by / 2) / by
}
