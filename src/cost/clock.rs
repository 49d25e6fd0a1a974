//! The clock of a power-limited chip.
//!
//! A GPU that multiplies without a pause draws more than its limit, and its power management lowers the
//! clock until it does not. A step of 1,000 prompt tokens on an H100 that idles before and after it takes 41
//! ms (compute fraction 0.70); under a load that never lets go the fraction is 0.62. With x the share of
//! time that the matrices' compute would take at full clock, tau = 1 s and theta the profile's `throttle`,
//!
//! ```text
//! u <- (u tau + x dt) / (tau + dt)      speed = 1 - theta u
//! ```
//!
//! at the first step that starts a tenth of a second or more after the last such review: power management
//! averages, and works in intervals of this order. Only the compute of matrices slows; what waits for memory
//! does not follow the clock. tau and the interval are not fitted; tau between 1 and 2 s served the held-out
//! load of the H100 equally well, 0.05 s and 5 s worse.

use super::StepCost;
use crate::units::{SimSpan, SimTime};

/// Over how long power is averaged.
const AVERAGED_S: f64 = 1.0;
/// Shortest time between two reviews of the clock.
const INTERVAL: SimSpan = SimSpan::from_nanos(100_000_000);

/// What a chip's clock has come to. A chip starts cold.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// u: share of compute in the recent past.
    load: f64,
    /// Tokens of the steps started since the last review.
    tokens: u64,
    reviewed: SimTime,
    next_review: SimTime,
    speed: f64,
}

impl Clock {
    /// Of a chip on which steps cost `cost`.
    #[must_use]
    pub fn new(cost: &StepCost) -> Self {
        let next_review = if cost.throttle() > 0.0 { SimTime::ZERO + INTERVAL } else { SimTime::MAX };
        Self { load: 0.0, tokens: 0, reviewed: SimTime::ZERO, next_review, speed: 1.0 }
    }

    /// At the start of a step of `tokens`, all steps before it having ended: reviews the clock if that is due.
    /// Whether it was.
    #[inline]
    pub fn start_step(&mut self, now: SimTime, tokens: u32, cost: &StepCost) -> bool {
        let due = now >= self.next_review;
        if due {
            self.review(now, cost);
        }
        self.tokens += u64::from(tokens);
        due
    }

    #[cold]
    fn review(&mut self, now: SimTime, cost: &StepCost) {
        let passed_s = now.since(self.reviewed).as_secs_f64();
        let share = (cost.linear_compute_s(self.tokens) / passed_s).min(1.0);
        self.load = (self.load * AVERAGED_S + share * passed_s) / (AVERAGED_S + passed_s);
        self.speed = 1.0 - cost.throttle() * self.load;
        self.tokens = 0;
        self.reviewed = now;
        self.next_review = now + INTERVAL;
    }

    /// In (0, 1]: the speed of compute, of that of a cold chip.
    #[must_use]
    #[inline]
    pub const fn speed(&self) -> f64 {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of `tokens`, one every `every_ms`, for `seconds`, on a chip that computes a token in 10 us at full
    /// clock.
    fn after(clock: &mut Clock, tokens: u32, every_ms: u64, from_ms: u64, until_ms: u64) {
        let cost = StepCost::affine(1e-3, 10e-6).with_throttle(0.2);
        for ms in (from_ms..until_ms).step_by(every_ms as usize) {
            clock.start_step(SimTime::from_nanos(ms * 1_000_000), tokens, &cost);
        }
    }

    #[test]
    fn a_chip_slows_under_load_and_recovers() {
        let mut clock = Clock::new(&StepCost::affine(1e-3, 10e-6).with_throttle(0.2));
        assert_eq!(clock.speed(), 1.0);
        // 1,000 tokens each 20 ms: compute for half of the time, so half of the loss.
        after(&mut clock, 1000, 20, 0, 30_000);
        assert!((clock.speed() - 0.9).abs() < 1e-3, "{}", clock.speed());
        // A second later it has come most of the way back: u falls by 1 / (1 + dt / tau) in each interval.
        after(&mut clock, 0, 100, 30_000, 31_001);
        let expected = 1.0 - 0.1 / 1.1_f64.powi(10);
        assert!((clock.speed() - expected).abs() < 2e-3, "{} {expected}", clock.speed());
        // No more is lost than all of it, however the steps are counted.
        after(&mut clock, 1_000_000, 100, 32_000, 90_000);
        assert!((clock.speed() - 0.8).abs() < 1e-3, "{}", clock.speed());
    }

    #[test]
    fn a_chip_without_limit_keeps_its_clock() {
        let cost = StepCost::affine(1e-3, 10e-6);
        let mut clock = Clock::new(&cost);
        for second in 0..100 {
            assert!(!clock.start_step(SimTime::from_nanos(second * 1_000_000_000), u32::MAX, &cost));
        }
        assert_eq!(clock.speed(), 1.0);
    }
}
