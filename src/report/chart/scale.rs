//! From values to positions: linear and logarithmic scales with ticks at round numbers.

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Log,
}

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    /// Distance of the ticks of a linear scale.
    step: f64,
}

impl Scale {
    /// From 0 to a little above the largest value, ending on a tick.
    #[must_use]
    pub fn linear_from_zero(largest: f64) -> Self {
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let step = round_step(largest / 5.0);
        Self { kind: Kind::Linear, low: 0.0, high: libm::ceil(largest / step - 1e-9) * step, step }
    }

    /// From 0 to exactly `largest`.
    #[must_use]
    pub fn linear_to(largest: f64) -> Self {
        let largest = if largest > 0.0 { largest } else { 1.0 };
        Self { kind: Kind::Linear, low: 0.0, high: largest, step: round_step(largest / 6.0) }
    }

    /// Logarithmic, from a 1-2-5 tick at or below `smallest` to one at or above `largest`; both positive.
    #[must_use]
    pub fn log(smallest: f64, largest: f64) -> Self {
        let low = round_down(smallest);
        let high = round_up(largest.max(low * 2.0));
        Self { kind: Kind::Log, low, high, step: 0.0 }
    }

    /// Logarithmic, from exactly `low` to exactly `high`; both positive.
    #[must_use]
    pub const fn log_between(low: f64, high: f64) -> Self {
        Self { kind: Kind::Log, low, high, step: 0.0 }
    }

    /// For loads in ascending order: logarithmic where they were spaced so and not asked to be `linear`, else linear from 0.
    #[must_use]
    pub fn of_loads(loads: &[f64], linear: bool) -> Self {
        let (low, high) = (loads.first().copied().unwrap_or(0.0), loads.last().copied().unwrap_or(1.0));
        let ratios: Vec<f64> = loads.windows(2).map(|pair| libm::log(pair[1] / pair[0])).collect();
        let most = ratios.iter().fold(0.0_f64, |most, ratio| most.max(*ratio));
        let least = ratios.iter().fold(f64::MAX, |least, ratio| least.min(*ratio));
        // Whole numbers of users are spaced only about evenly.
        let even = ratios.len() >= 3 && least > 0.0 && most < 1.6 * least;
        if !linear && low > 0.0 && even && high / low >= 8.0 {
            Self::log_between(low, high)
        } else {
            Self::linear_to(high)
        }
    }

    /// Whether distances along it are ratios.
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.kind == Kind::Log
    }

    /// Position of a value: 0 at the low end, 1 at the high end; values outside are cut.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        let position = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => libm::log(value.max(f64::MIN_POSITIVE) / self.low) / libm::log(self.high / self.low),
        };
        position.clamp(0.0, 1.0)
    }

    /// Whether a value lies in the range.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The high end.
    #[must_use]
    pub const fn high(&self) -> f64 {
        self.high
    }

    /// Values to mark, ascending.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let count = libm::floor((self.high - self.low) / self.step + 1e-9) as u32;
                (0..=count).map(|index| self.low + f64::from(index) * self.step).collect()
            }
            Kind::Log => self.log_ticks(),
        }
    }

    /// Decades; with 2 and 5 between them where there are few.
    fn log_ticks(&self) -> Vec<f64> {
        let between: &[f64] = if self.high / self.low > 1500.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (decade(self.low), decade(self.high));
        (first..=last)
            .flat_map(|power| between.iter().map(move |digit| digit * libm::pow(10.0, f64::from(power))))
            .filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
            .collect()
    }
}

fn decade(value: f64) -> i32 {
    libm::floor(libm::log10(value) + 1e-9) as i32
}

/// The next of 1, 2, 5 times a power of ten at or above `step`.
fn round_step(step: f64) -> f64 {
    round_up(step)
}

fn round_up(value: f64) -> f64 {
    let power = libm::pow(10.0, f64::from(decade(value)));
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= value * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

fn round_down(value: f64) -> f64 {
    let power = libm::pow(10.0, f64::from(decade(value)));
    let digit = [5.0, 2.0, 1.0].into_iter().find(|digit| digit * power <= value * (1.0 + 1e-9));
    digit.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        assert_eq!(Scale::linear_from_zero(23.0).ticks(), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!(Scale::log(13.0, 900.0).ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(Scale::log(13.0, 90_000.0).ticks(), [10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
    }

    #[test]
    fn positions_run_from_end_to_end() {
        let scale = Scale::log(10.0, 1000.0);
        assert!((scale.position(100.0) - 0.5).abs() < 1e-12);
        assert!((scale.position(5000.0) - 1.0).abs() < 1e-12);
        assert_eq!(scale.position(0.0), 0.0);
    }

    #[test]
    fn loads_spaced_by_ratios_get_a_log_scale() {
        assert!(Scale::of_loads(&[25.0, 50.0, 100.0, 200.0, 400.0], false).is_log());
        assert_eq!(Scale::of_loads(&[25.0, 50.0, 100.0, 200.0, 400.0], true), Scale::linear_to(400.0));
        assert!(!Scale::of_loads(&[4.0, 8.0, 12.0, 16.0, 60.0], false).is_log());
        assert!(!Scale::of_loads(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], false).is_log());
        assert!(!Scale::of_loads(&[0.0, 1.0, 10.0, 100.0], false).is_log());
    }
}
