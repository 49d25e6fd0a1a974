//! Arrival rates that change: in time as a profile says, or at random between states.
//!
//! Both are Poisson processes whose rate varies. An arrival is the point where the cumulative rate reaches
//! the next sum of standard exponentials (inversion; E. Çinlar, "Introduction to Stochastic Processes"
//! (1975), ch. 4.7), never a thinned candidate: every request takes one variate, so that the same users
//! come, earlier or later, whatever the rate does.

use crate::rng::{Purpose, Stream, stream};

/// How the rate runs between two points of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// The rate of a point holds until the next.
    Step,
    /// The rate runs straight to that of the next point.
    Linear,
}

/// A rate that is a given function of time.
#[derive(Clone, Debug, PartialEq)]
pub struct RateProfile {
    segments: Vec<Segment>,
    /// Length of the profile, after which it starts again, or the last rate holds for ever.
    span_s: f64,
    repeats: bool,
    last_per_s: f64,
    peak_per_s: f64,
}

/// A stretch on which the rate is linear in time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    start_s: f64,
    length_s: f64,
    from_per_s: f64,
    /// Change of the rate a second, requests/s².
    slope: f64,
    /// Requests expected before it.
    before: f64,
}

impl Segment {
    /// Requests expected within its first `t` seconds.
    fn expected(&self, t: f64) -> f64 {
        t * (self.from_per_s + self.slope * t / 2.0)
    }

    /// Seconds into it at which `count` requests are expected: the root of s t²/2 + r t = count, in the
    /// form that neither divides by a small slope nor cancels.
    fn time_of(&self, count: f64) -> f64 {
        let discriminant = self.from_per_s * self.from_per_s + 2.0 * self.slope * count;
        let t = 2.0 * count / (self.from_per_s + libm::sqrt(discriminant.max(0.0)));
        if t.is_finite() { t.min(self.length_s) } else { 0.0 }
    }
}

impl RateProfile {
    /// The profile through `points` (time in seconds, requests per second), the first at time 0, times
    /// ascending, rates finite and not negative. With `period_s`, beyond the last point, it starts again
    /// there (and `Linear` runs from the last point to the first); without, the last rate holds for ever.
    ///
    /// `None` if the points are not so, or if no request would ever come.
    #[must_use]
    pub fn new(points: &[(f64, f64)], interpolation: Interpolation, period_s: Option<f64>) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let rates_hold =
            points.iter().all(|(time, rate)| time.is_finite() && rate.is_finite() && *rate >= 0.0);
        let span_s = period_s.unwrap_or(last.0);
        let period_holds = period_s.is_none_or(|period| period.is_finite() && period > last.0);
        let peak_per_s = points.iter().fold(0.0_f64, |peak, (_, rate)| peak.max(*rate));
        if first.0 != 0.0 || !ascending || !rates_hold || !period_holds || peak_per_s <= 0.0 {
            return None;
        }
        let wrap = period_s.map(|period| (period, first.1));
        let ends = points.iter().copied().skip(1).chain(wrap);
        let mut before = 0.0;
        let mut segments = Vec::with_capacity(points.len());
        for (&(start_s, from_per_s), (end_s, to_per_s)) in points.iter().zip(ends) {
            let length_s = end_s - start_s;
            let slope = match interpolation {
                Interpolation::Step => 0.0,
                Interpolation::Linear => (to_per_s - from_per_s) / length_s,
            };
            let segment = Segment { start_s, length_s, from_per_s, slope, before };
            before += segment.expected(length_s);
            segments.push(segment);
        }
        let repeats = period_s.is_some();
        // A step up to a period's first rate happens at its start, and one in the last point never.
        let comes = if repeats { before > 0.0 } else { before > 0.0 || last.1 > 0.0 };
        comes.then_some(Self { segments, span_s, repeats, last_per_s: last.1, peak_per_s })
    }

    /// Requests expected in one pass over the profile.
    fn expected(&self) -> f64 {
        self.segments.last().map_or(0.0, |last| last.before + last.expected(last.length_s))
    }

    /// Length of one pass in seconds; 0 for a single rate.
    #[must_use]
    pub const fn span_s(&self) -> f64 {
        self.span_s
    }

    /// Whether it starts again when it is over.
    #[must_use]
    pub const fn repeats(&self) -> bool {
        self.repeats
    }

    /// The highest rate.
    #[must_use]
    pub const fn peak_per_s(&self) -> f64 {
        self.peak_per_s
    }

    /// The mean rate over one pass.
    #[must_use]
    pub fn mean_per_s(&self) -> f64 {
        if self.span_s > 0.0 { self.expected() / self.span_s } else { self.last_per_s }
    }

    /// The time in seconds by which `count` requests are expected, the inverse of the cumulative rate;
    /// `None` if so many never come.
    #[must_use]
    pub fn time_of(&self, count: f64) -> Option<f64> {
        let pass = self.expected();
        let (passes, rest) = if self.repeats {
            let passes = libm::floor(count / pass);
            // Rounding may leave a trace below zero at the start of a pass.
            (passes, (count - passes * pass).max(0.0))
        } else {
            (0.0, count)
        };
        if !self.repeats && rest >= pass {
            return (self.last_per_s > 0.0).then(|| self.span_s + (rest - pass) / self.last_per_s);
        }
        let at = self.segments.partition_point(|segment| segment.before <= rest).checked_sub(1)?;
        let segment = &self.segments[at];
        Some(passes * self.span_s + segment.start_s + segment.time_of(rest - segment.before))
    }
}

/// A state of a Markov-modulated Poisson process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MmppState {
    pub rate_per_s: f64,
    /// Mean of the exponential time spent in it.
    pub mean_dwell_s: f64,
}

/// The stationary mean rate of states that are visited in turn.
#[must_use]
pub fn mmpp_rate_per_s(states: &[MmppState]) -> f64 {
    let cycle_s: f64 = states.iter().map(|state| state.mean_dwell_s).sum();
    states.iter().map(|state| state.rate_per_s * state.mean_dwell_s / cycle_s).sum()
}

/// Where a Markov-modulated process is. States follow each other in the order of the list, then again
/// from the first; it starts in a state drawn by the share of time spent there, so it is stationary.
#[derive(Debug)]
pub(super) struct Modulation {
    dwell: Stream,
    state: usize,
    now_s: f64,
    /// When the state is left.
    until_s: f64,
}

impl Modulation {
    pub fn new(states: &[MmppState], seed: u64, replication: u32) -> Self {
        let mut dwell = stream(seed, Purpose::Dwell, replication);
        let cycle_s: f64 = states.iter().map(|state| state.mean_dwell_s).sum();
        let mut left_s = dwell.uniform() * cycle_s;
        let passed = states.iter().position(|state| {
            left_s -= state.mean_dwell_s;
            left_s < 0.0
        });
        let state = passed.unwrap_or(states.len().saturating_sub(1));
        // The rest of an exponential time is the same exponential.
        let until_s = states.get(state).map_or(0.0, |s| s.mean_dwell_s * dwell.standard_exponential());
        Self { dwell, state, now_s: 0.0, until_s }
    }

    /// The time at which `count` more requests are expected. Some state must have a rate.
    pub fn advance(&mut self, states: &[MmppState], mut count: f64) -> f64 {
        loop {
            let state = &states[self.state];
            let expected = state.rate_per_s * (self.until_s - self.now_s);
            if count < expected {
                self.now_s += count / state.rate_per_s;
                return self.now_s;
            }
            count -= expected;
            self.now_s = self.until_s;
            self.state = (self.state + 1) % states.len();
            self.until_s += states[self.state].mean_dwell_s * self.dwell.standard_exponential();
        }
    }
}

#[cfg(test)]
mod tests;
