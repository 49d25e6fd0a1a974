//! Which part of a point's runs is warm-up: chosen once, for all its replications together.
//!
//! Choosing run by run, as MSER is usually applied, looks at the very numbers that are averaged afterwards:
//! what scatters least without its start is often a run with a busy start, so the rule deletes busy spells
//! and lowers tail quantiles (by 2 % on an M/M/4 queue; see docs/statistics.md). Therefore:
//!
//! 1. A tenth of the run is deleted whatever is in it. That does not look at the data, so it biases nothing.
//! 2. More is deleted only where MSER, on the mean over the replications of the aligned segments, asks for it
//!    *and* the replications agree that the part differs from the rest: Student's interval of the difference,
//!    one value a replication, leaves out 0 at [`LEVEL`]. What they do not show is small against the interval
//!    of the answer, which comes from the same replications.

use serde::{Deserialize, Serialize};

use super::recorder::{Recorder, Segment};
use crate::stats::{Warmup, mean_interval, mser};
use crate::units::NANOS_PER_SEC;
use crate::workload::Metric;

/// Share of the run that is always deleted.
const SHARE: f64 = 0.1;
/// Confidence with which more must differ. MSER has looked for the part that differs most, so somewhat more
/// than one point in twenty loses more than it had to; that moves its answer by far less than its interval.
const LEVEL: f64 = 0.95;
/// With fewer whole segments than this nothing is shown.
const FEWEST_SEGMENTS: usize = 10;

/// What a run looked like over time: one value for each of its whole segments (33 to 64 in a run that is not
/// very short).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Length of a segment: 2^24 ns times a power of two.
    pub segment_ns: u64,
    /// Time average of the requests in the system.
    pub in_flight: Vec<f64>,
    /// Sum (ns) and count of the TTFT of the requests completed in it; of E2E where there are no tokens. In a
    /// closed loop without think time the number in flight never changes and only latencies tell.
    pub latency: Vec<(f64, f64)>,
}

impl Course {
    /// In segments `times` as long.
    fn coarser(&self, times: usize) -> Self {
        let sum = |parts: &[(f64, f64)]| parts.iter().fold((0.0, 0.0), |(s, n), (sum, of)| (s + sum, n + of));
        Self {
            segment_ns: self.segment_ns * times as u64,
            in_flight: crate::stats::batch_means(&self.in_flight, times),
            latency: self.latency.chunks_exact(times).map(sum).collect(),
        }
    }
}

impl Recorder {
    /// The course of a run that ended at `end_ns`, its last, incomplete segment left out.
    pub(super) fn course(&self, end_ns: u64) -> Course {
        let segment_ns = self.segments.len_ns();
        let whole = ((end_ns / segment_ns) as usize).min(self.segments.all().len());
        let segments = &self.segments.all()[..whole];
        let in_flight = self.in_flight_by_segment(segment_ns, whole);
        let of = |metric: Metric| -> Vec<(f64, f64)> { segments.iter().map(|s| sum_of(s, metric)).collect() };
        let ttft = of(Metric::Ttft);
        let has_tokens = ttft.iter().any(|(_, count)| *count > 0.0);
        Course { segment_ns, in_flight, latency: if has_tokens { ttft } else { of(Metric::E2e) } }
    }

    /// Bins are as long as segments or shorter by a power of two.
    fn in_flight_by_segment(&self, segment_ns: u64, segments: usize) -> Vec<f64> {
        let bins = (segment_ns / self.bins.len_ns()).max(1) as usize;
        let integral = |bins: &[super::recorder::Bin]| bins.iter().map(|bin| bin.in_flight).sum::<u128>();
        let sums = self.bins.all().chunks(bins).map(|bins| integral(bins) as f64 / segment_ns as f64);
        let mut sums: Vec<f64> = sums.take(segments).collect();
        // Nothing has happened since.
        sums.resize(segments, 0.0);
        sums
    }
}

fn sum_of(segment: &Segment, metric: Metric) -> (f64, f64) {
    let sketches = segment.classes.iter().map(|class| &class.latency[metric.index()]);
    sketches
        .fold((0.0, 0.0), |(sum, count), sketch| (sum + sketch.sum() as f64, count + sketch.count() as f64))
}

/// The warm-up of all replications of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Where the window starts, at the latest within a segment's length.
    pub start_ns: u64,
    /// False if the part beyond half of the run still differs from the rest: the run is too short, or does
    /// not settle.
    pub settled: bool,
}

impl WarmUp {
    /// Nothing is deleted.
    pub const NONE: Self = Self { start_ns: 0, settled: true };

    /// As the scenario says; `courses` are those of all replications of the point.
    #[must_use]
    pub fn of(warmup: Warmup, courses: &[&Course]) -> Self {
        match warmup {
            // `as` saturates.
            Warmup::Seconds(seconds) => {
                Self { start_ns: libm::rint(seconds * NANOS_PER_SEC) as u64, settled: true }
            }
            Warmup::Auto => Self::joint(courses),
        }
    }

    /// Chosen from the courses of all replications.
    #[must_use]
    pub fn joint(courses: &[&Course]) -> Self {
        let segment_ns = courses.iter().map(|course| course.segment_ns).max().unwrap_or(1).max(1);
        let aligned: Vec<Course> = courses
            .iter()
            .map(|course| course.coarser((segment_ns / course.segment_ns.max(1)) as usize))
            .collect();
        let whole = aligned.iter().map(|course| course.in_flight.len()).min().unwrap_or(0);
        let fixed = libm::ceil(SHARE * whole as f64) as usize;
        if whole < FEWEST_SEGMENTS {
            return Self { start_ns: fixed as u64 * segment_ns, settled: false };
        }
        let in_flight: Vec<Vec<(f64, f64)>> = aligned
            .iter()
            .map(|course| course.in_flight[..whole].iter().map(|level| (*level, 1.0)).collect())
            .collect();
        let latency: Vec<Vec<(f64, f64)>> =
            aligned.iter().map(|course| course.latency[..whole].to_vec()).collect();
        let by_signal = [in_flight, latency].map(|signal| further(&signal, fixed));
        let settled = by_signal.iter().all(|further| *further != Further::NotSettled);
        let deleted = by_signal.iter().map(|further| match further {
            Further::To(segment) => *segment,
            Further::NotSettled => whole / 2,
        });
        Self { start_ns: deleted.max().unwrap_or(fixed) as u64 * segment_ns, settled }
    }
}

/// How far beyond the fixed part one signal asks for deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Further {
    To(usize),
    NotSettled,
}

/// `signal` holds, by replication and segment, a sum and what it is to be divided by.
fn further(signal: &[Vec<(f64, f64)>], fixed: usize) -> Further {
    let segments = signal.first().map_or(0, Vec::len);
    let joint: Option<Vec<f64>> =
        (fixed..segments).map(|at| ratio(signal.iter().map(|run| run[at]))).collect();
    // A segment in which nothing completed in any replication: too few requests to tell by.
    let Some(joint) = joint else { return Further::To(fixed) };
    let (to, settled) = match mser(&joint) {
        Some(deleted) => (fixed + deleted, true),
        None => (segments / 2, false),
    };
    let differences: Option<Vec<f64>> = signal
        .iter()
        .map(|run| Some(ratio(run[fixed..to].iter().copied())? - ratio(run[to..].iter().copied())?))
        .collect();
    let differs = differences
        .and_then(|differences| mean_interval(&differences, LEVEL))
        .is_some_and(|d| d.half_width.is_some_and(|half_width| d.mean.abs() > half_width));
    match (differs, settled) {
        (false, _) => Further::To(fixed),
        (true, true) => Further::To(to),
        (true, false) => Further::NotSettled,
    }
}

/// Sum of the sums over the sum of what they are divided by.
fn ratio(parts: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, of) = parts.fold((0.0, 0.0), |(sum, of), (s, o)| (sum + s, of + o));
    (of > 0.0).then(|| sum / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repeatable scatter about 0.
    fn noise(run: usize, at: usize) -> f64 {
        ((run * 389 + at * 7_919) % 1_009) as f64 / 1_009.0 - 0.5
    }

    /// Courses of five runs of 50 segments whose number in flight is `level` and noise.
    fn courses(level: impl Fn(usize, usize) -> f64) -> Vec<Course> {
        let of = |run: usize| Course {
            segment_ns: 10,
            in_flight: (0..50).map(|at| level(run, at) + noise(run, at)).collect(),
            latency: vec![(1.0, 1.0); 50],
        };
        (0..5).map(of).collect()
    }

    fn joint(courses: &[Course]) -> WarmUp {
        WarmUp::joint(&courses.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_tenth_is_deleted_where_nothing_is_shown() {
        assert_eq!(joint(&courses(|_, _| 7.0)), WarmUp { start_ns: 50, settled: true });
        // One run began busy by chance: the others do not agree.
        let busy = |run, at| if run == 2 && at < 15 { 20.0 } else { 7.0 };
        assert_eq!(joint(&courses(busy)).start_ns, 50);
    }

    #[test]
    fn a_transient_that_all_replications_show_is_deleted() {
        for start in [0.0, 20.0] {
            let transient = |_, at: usize| if at < 15 { start } else { 7.0 };
            assert_eq!(joint(&courses(transient)), WarmUp { start_ns: 150, settled: true });
        }
        let growing = |_, at: usize| at as f64;
        assert_eq!(joint(&courses(growing)), WarmUp { start_ns: 250, settled: false });
    }

    #[test]
    fn latencies_tell_where_the_number_in_flight_does_not() {
        let mut courses = courses(|_, _| 7.0);
        for course in &mut courses {
            course.in_flight = vec![8.0; 50];
            course.latency = (0..50).map(|at| (if at < 20 { 9e6 } else { 3e6 }, 3.0)).collect();
        }
        assert_eq!(joint(&courses), WarmUp { start_ns: 200, settled: true });
    }

    #[test]
    fn courses_of_different_segments_are_aligned() {
        let transient = |_, at: usize| if at < 16 { 0.0 } else { 7.0 };
        let mut courses = courses(transient);
        courses[1] = Course {
            segment_ns: 20,
            in_flight: (0..26).map(|at| if at < 8 { 0.0 } else { 7.0 }).collect(),
            latency: vec![(1.0, 1.0); 26],
        };
        // In segments of 20 ns the transient ends with the eighth.
        let found = joint(&courses);
        assert!((160..=240).contains(&found.start_ns) && found.start_ns.is_multiple_of(20), "{found:?}");
    }

    #[test]
    fn what_shows_nothing_deletes_a_tenth() {
        let one = &courses(|_, at| if at < 15 { 0.0 } else { 7.0 })[..1];
        assert_eq!(joint(one), WarmUp { start_ns: 50, settled: true }, "one replication");
        let short = Course { segment_ns: 10, in_flight: vec![1.0; 4], latency: vec![(0.0, 0.0); 4] };
        assert_eq!(joint(&[short]), WarmUp { start_ns: 10, settled: false });
        assert_eq!(joint(&[]), WarmUp { start_ns: 0, settled: false });
    }
}
