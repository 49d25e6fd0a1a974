//! What is asked of the fleet, and the request rate that it comes to.

use crate::workload::Arrivals;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// A demand as people state it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Requests per second on average.
    RatePerS(f64),
    /// People who ask, read for `think_time_s` seconds on average, and ask again.
    Users { users: f64, think_time_s: f64 },
    /// Input and output tokens together.
    TokensPerDay(f64),
    /// A rate that varies over the day: its mean and its highest.
    Profile { mean_per_s: f64, peak_per_s: f64 },
}

/// The rate on average, which is paid for, and at the peak, for which the fleet is sized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub mean_per_s: f64,
    pub peak_per_s: f64,
}

impl Demand {
    /// The demand that a scenario's arrivals state, if they do.
    #[must_use]
    pub fn of(arrivals: &Arrivals) -> Option<Self> {
        match arrivals {
            Arrivals::Closed { users, think_time_s } => {
                Some(Self::Users { users: f64::from(*users), think_time_s: think_time_s.mean() })
            }
            Arrivals::Profile(profile) => {
                Some(Self::Profile { mean_per_s: profile.mean_per_s(), peak_per_s: profile.peak_per_s() })
            }
            _ => arrivals.rate_per_s().map(Self::RatePerS),
        }
    }

    /// The rates it comes to, where a request of `tokens` tokens takes `e2e_s` seconds when it has a
    /// replica to itself. The peak is `peak_factor` times the mean, or the profile's own.
    ///
    /// A user sends a request every think time plus answer time. Answers only get slower under load, so
    /// the answer time without load gives the most requests that these users can send.
    #[must_use]
    pub fn rates(&self, peak_factor: f64, tokens: f64, e2e_s: f64) -> Rates {
        let mean_per_s = match *self {
            Self::RatePerS(rate) => rate,
            Self::Users { users, think_time_s } => users / (think_time_s + e2e_s),
            Self::TokensPerDay(per_day) => per_day / tokens / SECONDS_PER_DAY,
            Self::Profile { mean_per_s, peak_per_s } => return Rates { mean_per_s, peak_per_s },
        };
        Rates { mean_per_s, peak_per_s: mean_per_s * peak_factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_come_to_rates_by_arithmetic() {
        let users = Demand::Users { users: 500.0, think_time_s: 30.0 };
        assert_eq!(users.rates(1.0, 700.0, 2.0), Rates { mean_per_s: 15.625, peak_per_s: 15.625 });
        // 86.4 M tokens a day in requests of 1,000 tokens: one a second, twice that at the peak.
        let tokens = Demand::TokensPerDay(86.4e6);
        assert_eq!(tokens.rates(2.0, 1000.0, 9.0), Rates { mean_per_s: 1.0, peak_per_s: 2.0 });
        let profile = Demand::Profile { mean_per_s: 3.0, peak_per_s: 7.0 };
        assert_eq!(profile.rates(9.0, 1.0, 1.0), Rates { mean_per_s: 3.0, peak_per_s: 7.0 });
    }
}
