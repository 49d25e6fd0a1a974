//! From what was recorded to what is reported: the window, rates, latencies and the stability evidence.

use super::recorder::{Bin, ClassSegment, Recorder, ReplicaSegment};
use super::warmup::{Course, WarmUp};
use super::{
    Group, Latency, ObjectiveValue, ReplicaSummary, RunSummary, StabilityEvidence, TimelineBin, Totals,
    Window,
};
use crate::engine::RunEnd;
use crate::stats::{RunMode, Sketch, linear_slope};
use crate::units::NANOS_PER_SEC;
use crate::workload::{Class, Metric, Statistic};

/// What the summary must know of the run besides what was observed.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    pub mode: RunMode,
    pub end: RunEnd,
    /// The workload's classes, in order.
    pub classes: &'a [Class],
    pub replicas: u32,
    /// Usable KV blocks of one replica; 0 for a synthetic server.
    pub blocks_per_replica: u32,
    /// Servers of one replica: 1, but for synthetic ones.
    pub servers_per_replica: u32,
}

impl Recorder {
    /// Ends the watching of a run that ended as `end` says, and tells its course.
    pub fn ended(&mut self, end: RunEnd) -> Course {
        self.advance(end.time);
        self.course(end.time.as_nanos())
    }

    /// The summary of the run that was watched, without its warm-up. In benchmark mode nothing is deleted.
    #[must_use]
    pub fn summarise(mut self, facts: &RunFacts<'_>, warm_up: WarmUp) -> RunSummary {
        let course = self.ended(facts.end);
        let segment_ns = self.segments.len_ns();
        // Windows start on a segment's boundary.
        let first = warm_up.start_ns.div_ceil(segment_ns);
        let window = self.window(facts, first.saturating_mul(segment_ns), warm_up.settled);
        let first = if window.start_s > 0.0 { first as usize } else { 0 };
        let span_s = window.end_s - window.start_s;
        let (mut classes, mut replicas) = (vec![], vec![]);
        classes.resize_with(self.classes(), ClassSegment::default);
        replicas.resize(facts.replicas as usize, ReplicaSegment::default());
        let mut sketches: Vec<[Vec<&Sketch>; 6]> = vec![Default::default(); self.classes()];
        for segment in self.segments.all().iter().skip(first) {
            for ((total, parts), class) in classes.iter_mut().zip(&mut sketches).zip(&segment.classes) {
                total.absorb_counts(class);
                for (part, sketch) in parts.iter_mut().zip(&class.latency) {
                    part.push(sketch);
                }
            }
            for (total, replica) in replicas.iter_mut().zip(&segment.replicas) {
                total.absorb(replica);
            }
        }
        for (total, parts) in classes.iter_mut().zip(&sketches) {
            total.latency = std::array::from_fn(|i| Sketch::merged(parts[i].iter().copied()));
        }
        RunSummary {
            totals: self.totals(facts),
            all: all_classes(&classes, facts.classes, span_s),
            classes: classes.iter().zip(facts.classes).map(|(c, class)| group(c, class, span_s)).collect(),
            replicas: replicas.iter().map(|replica| replica_summary(replica, facts, span_s)).collect(),
            timeline: self.timeline(facts),
            evidence: self.evidence(facts),
            in_flight: self.mean_in_flight(&window),
            window,
            course,
        }
    }

    fn window(&self, facts: &RunFacts<'_>, start_ns: u64, settled: bool) -> Window {
        let run_s = facts.end.time.as_secs_f64();
        let whole = Window { mode: facts.mode, start_s: 0.0, end_s: run_s, run_s, settled: true };
        if facts.mode == RunMode::Benchmark {
            return whole;
        }
        if start_ns >= facts.end.time.as_nanos() {
            return Window { settled: false, ..whole };
        }
        Window { start_s: start_ns as f64 / NANOS_PER_SEC, settled, ..whole }
    }

    /// Time average of the requests in the system, front end included, over the window: the L of
    /// Little's law. `None` for a window without length.
    fn mean_in_flight(&self, window: &Window) -> Option<f64> {
        let end_ns = libm::rint(window.end_s * NANOS_PER_SEC) as u64;
        let start_ns = libm::rint(window.start_s * NANOS_PER_SEC) as u64;
        let inside = self.spans(end_ns).filter(|(bin_ns, ..)| *bin_ns >= start_ns);
        let (ns, integral) =
            inside.fold((0_u64, 0_u128), |(ns, sum), (_, span, bin)| (ns + span, sum + bin.in_flight));
        (ns > 0).then(|| integral as f64 / ns as f64)
    }

    fn totals(&self, facts: &RunFacts<'_>) -> Totals {
        let segments = || self.segments.all().iter();
        let rejected = self.rejected_too_long + self.rejected_queue_full;
        Totals {
            offered: facts.end.sent,
            admitted: facts.end.sent - rejected,
            completed: segments().flat_map(|s| &s.classes).map(|c| c.completed).sum(),
            rejected_too_long: self.rejected_too_long,
            rejected_over_budget: self.rejected_over_budget,
            rejected_queue_full: self.rejected_queue_full,
            in_flight_at_end: self.in_flight,
            preemptions: segments().flat_map(|s| &s.replicas).map(|r| r.preemptions).sum(),
        }
    }

    fn timeline(&self, facts: &RunFacts<'_>) -> Vec<TimelineBin> {
        let blocks = f64::from(facts.blocks_per_replica) * f64::from(facts.replicas);
        let run_ns = facts.end.time.as_nanos();
        self.spans(run_ns)
            .map(|(start_ns, span_ns, bin)| {
                let per_ns = 1.0 / span_ns as f64;
                TimelineBin {
                    start_s: start_ns as f64 / NANOS_PER_SEC,
                    span_s: span_ns as f64 / NANOS_PER_SEC,
                    in_flight: bin.in_flight as f64 * per_ns,
                    running: bin.running as f64 * per_ns,
                    waiting: bin.waiting as f64 * per_ns,
                    kv_use: if blocks > 0.0 { bin.blocks as f64 * per_ns / blocks } else { 0.0 },
                    completed_per_s: bin.completed as f64 * per_ns * NANOS_PER_SEC,
                }
            })
            .collect()
    }

    /// Bins with start and span, the last cut at `end_ns`.
    fn spans(&self, end_ns: u64) -> impl Iterator<Item = (u64, u64, &Bin)> {
        let len = self.bins.len_ns();
        self.bins.all().iter().enumerate().filter_map(move |(i, bin)| {
            let start = i as u64 * len;
            let span = len.min(end_ns.saturating_sub(start));
            (span > 0).then_some((start, span, bin))
        })
    }

    /// Over the time in which requests were sent; a drain after it says nothing about stability.
    fn evidence(&self, facts: &RunFacts<'_>) -> StabilityEvidence {
        let end_ns = match facts.mode {
            RunMode::Steady => facts.end.time.as_nanos(),
            // The bin in which the last is sent has some of the drain.
            RunMode::Benchmark => self.last_send.as_nanos() / self.bins.len_ns() * self.bins.len_ns(),
        };
        let bins: Vec<(u64, u64, &Bin)> = self.spans(end_ns).collect();
        let half = bins.len() / 2;
        if half < 2 {
            return StabilityEvidence::default();
        }
        let mean = |bins: &[(u64, u64, &Bin)]| {
            let ns: u64 = bins.iter().map(|(_, span, _)| span).sum();
            bins.iter().map(|(_, _, bin)| bin.admitted()).sum::<u128>() as f64 / ns as f64
        };
        let (first, last) = bins.split_at(half);
        let offered: u64 = last.iter().map(|(_, _, bin)| bin.offered).sum();
        let completed: u64 = last.iter().map(|(_, _, bin)| bin.completed).sum();
        let levels = |of: fn(&Bin) -> u128| -> Vec<f64> {
            last.iter().map(|(_, span, bin)| of(bin) as f64 / *span as f64).collect()
        };
        let times: Vec<f64> = last.iter().map(|(start, ..)| *start as f64 / NANOS_PER_SEC).collect();
        let growth = |levels: &[f64]| linear_slope(&times, levels).map_or(0.0, |line| line.slope);
        let levels_waiting = levels(|bin| bin.waiting);
        let levels = levels(Bin::admitted);
        let batch = (levels.len() / 8).max(1);
        let whole = mean(&bins);
        StabilityEvidence {
            achieved_over_offered: completed as f64 / offered.max(1) as f64,
            final_over_mean: levels.last().map_or(0.0, |end| end / whole.max(f64::MIN_POSITIVE)),
            growth_per_s: growth(&levels),
            waiting_growth_per_s: growth(&levels_waiting),
            mean_first_half: mean(first),
            mean_last_half: mean(last),
            offered_per_s: bins.iter().map(|(_, _, bin)| bin.offered).sum::<u64>() as f64
                / (end_ns as f64 / NANOS_PER_SEC),
            batches: crate::stats::batch_means(&levels, batch),
        }
    }
}

fn all_classes(parts: &[ClassSegment], classes: &[Class], span_s: f64) -> Group {
    let mut total = ClassSegment::default();
    parts.iter().for_each(|part| total.absorb_counts(part));
    total.latency = std::array::from_fn(|i| Sketch::merged(parts.iter().map(|part| &part.latency[i])));
    let mut all = rates("all", &total, span_s);
    if classes.iter().any(|class| !class.slo.objectives.is_empty()) {
        promise_kept(&mut all, &total, span_s);
    }
    all
}

fn group(total: &ClassSegment, class: &Class, span_s: f64) -> Group {
    let mut group = rates(&class.name, total, span_s);
    if class.slo.objectives.is_empty() {
        return group;
    }
    promise_kept(&mut group, total, span_s);
    if class.slo.objectives.iter().any(|o| o.statistic == Statistic::Request) {
        group.attainment = fraction(total.attained, total.completed + total.rejected);
    }
    for &objective in &class.slo.objectives {
        let sketch = &total.latency[objective.metric.index()];
        let nanos = match objective.statistic {
            Statistic::Mean => sketch.mean(),
            Statistic::Quantile(q) => sketch.quantile(q),
            Statistic::Request => sketch.quantile(class.slo.attainment),
        };
        group.objectives.push(ObjectiveValue { objective, value_s: nanos.map(|n| n / NANOS_PER_SEC) });
    }
    group
}

fn promise_kept(group: &mut Group, total: &ClassSegment, span_s: f64) {
    group.good_per_s = (span_s > 0.0).then(|| total.good as f64 / span_s);
    group.good_fraction = fraction(total.good, total.completed + total.rejected);
}

fn fraction(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn rates(name: &str, total: &ClassSegment, span_s: f64) -> Group {
    let per_s = |n: u64| if span_s > 0.0 { n as f64 / span_s } else { 0.0 };
    Group {
        name: name.to_owned(),
        offered: total.offered,
        completed: total.completed,
        rejected: total.rejected,
        input_tokens: total.input_tokens,
        output_tokens: total.output_tokens,
        offered_per_s: per_s(total.offered),
        completed_per_s: per_s(total.completed),
        input_tokens_per_s: per_s(total.input_tokens),
        output_tokens_per_s: per_s(total.output_tokens),
        good_per_s: None,
        good_fraction: None,
        latency: std::array::from_fn(|i| latency(&total.latency[i])),
        objectives: Vec::new(),
        attainment: None,
    }
}

fn latency(sketch: &Sketch) -> Option<Latency> {
    let seconds = |nanos: Option<f64>| nanos.map(|n| n / NANOS_PER_SEC);
    let quantile = |q| seconds(sketch.quantile(q));
    Some(Latency {
        count: sketch.count(),
        mean_s: seconds(sketch.mean())?,
        std_s: seconds(sketch.std())?,
        min_s: quantile(0.0)?,
        p50_s: quantile(0.5)?,
        p90_s: quantile(0.9)?,
        p95_s: quantile(0.95)?,
        p99_s: quantile(0.99)?,
        max_s: quantile(1.0)?,
        exact: sketch.is_exact(),
    })
}

fn replica_summary(replica: &ReplicaSegment, facts: &RunFacts<'_>, span_s: f64) -> ReplicaSummary {
    let span_ns = span_s * NANOS_PER_SEC;
    // A window without length has no averages; it has no steps either.
    let average = |integral: u128| if span_ns > 0.0 { integral as f64 / span_ns } else { 0.0 };
    let blocks = f64::from(facts.blocks_per_replica.max(1));
    ReplicaSummary {
        completed: replica.completed,
        output_tokens: replica.output_tokens,
        busy: if facts.blocks_per_replica > 0 {
            average(replica.busy)
        } else {
            average(replica.running) / f64::from(facts.servers_per_replica.max(1))
        },
        running: average(replica.running),
        waiting: average(replica.waiting),
        in_flight: average(replica.running + replica.waiting),
        kv_use: average(replica.blocks) / blocks,
        kv_use_max: f64::from(replica.blocks_max) / blocks,
        preemptions: replica.preemptions,
        steps: replica.steps,
        mean_step: replica.shapes.mean(replica.steps),
    }
}

/// The latency of `group` by `metric`, if anybody had one.
#[must_use]
pub fn latency_of(group: &Group, metric: Metric) -> Option<&Latency> {
    group.latency[metric.index()].as_ref()
}
