//! Queues whose behaviour is known in closed form: the oracle of the simulator, and a lesson by itself.
//!
//! | type | queue |
//! |---|---|
//! | [`Mm1`] | one server, exponential service |
//! | [`Mmc`] | several servers with one queue ([`erlang_b`], [`erlang_c`]) |
//! | [`Mg1`] | one server, any service time (Pollaczek-Khinchine) |
//! | [`Md1`] | one server, constant service time, with the distribution of the wait |
//! | [`Mg1Ps`] | one server shared equally by all (processor sharing) |
//! | [`Mmck`] | several servers, limited room: arrivals are turned away |
//! | [`Repairman`] | a closed loop of users who think, ask and wait (the machine repairman) |
//!
//! Rates are per second, times in seconds. Arrivals are Poisson except in the closed loop; service is
//! first come, first served except under processor sharing. Nothing overflows: probabilities come from
//! recursions on ratios, for up to [`MAX_STATES`] servers or places.

mod birth_death;
mod md1;
mod mg1;
mod mg1_ps;
mod mm1;
mod mmc;
mod mmck;
mod repairman;

pub use md1::Md1;
pub use mg1::Mg1;
pub use mg1_ps::Mg1Ps;
pub use mm1::Mm1;
pub use mmc::{Mmc, erlang_b, erlang_c};
pub use mmck::Mmck;
pub use repairman::Repairman;

/// The most servers, places or users a formula accepts; beyond, time and memory would be unreasonable.
pub const MAX_STATES: u32 = 10_000_000;

/// Why a queue has no closed-form answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum QueueError {
    /// A rate or time that is not a positive number.
    #[error("{name} must be positive and finite, not {value}")]
    NotPositive { name: &'static str, value: f64 },
    /// A quantity that may be zero, but is negative or not a number.
    #[error("{name} must be finite and not negative, not {value}")]
    Negative { name: &'static str, value: f64 },
    /// A count outside its range.
    #[error("{name} must be between {min} and {max}, not {value}")]
    OutOfRange { name: &'static str, value: u32, min: u32, max: u32 },
    /// More work arrives than is served: the queue grows without bound and has no steady state.
    #[error("utilisation {utilisation:.3} is not below 1: the queue grows without bound")]
    Unstable { utilisation: f64 },
}

/// Long-run averages of a queue. Little's law holds between them by construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Completions per second (equal to arrivals where nobody is turned away).
    pub throughput_per_s: f64,
    /// Fraction of the servers that is busy.
    pub utilisation: f64,
    /// Seconds between arrival and start of service, of those who are served.
    pub wait_s: f64,
    /// Seconds between arrival and completion, of those who are served.
    pub response_s: f64,
    /// Customers waiting.
    pub waiting: f64,
    /// Customers waiting or in service.
    pub in_system: f64,
}

impl Means {
    fn new(throughput_per_s: f64, servers: u32, service_s: f64, wait_s: f64) -> Self {
        let response_s = wait_s + service_s;
        Self {
            throughput_per_s,
            utilisation: throughput_per_s * service_s / f64::from(servers),
            wait_s,
            response_s,
            waiting: throughput_per_s * wait_s,
            in_system: throughput_per_s * response_s,
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<f64, QueueError> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(QueueError::NotPositive { name, value }) }
}

fn not_negative(name: &'static str, value: f64) -> Result<f64, QueueError> {
    if value >= 0.0 && value.is_finite() { Ok(value) } else { Err(QueueError::Negative { name, value }) }
}

fn in_range(name: &'static str, value: u32, min: u32) -> Result<u32, QueueError> {
    let max = MAX_STATES;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(QueueError::OutOfRange { name, value, min, max })
    }
}

fn below_one(utilisation: f64) -> Result<f64, QueueError> {
    if utilisation < 1.0 { Ok(utilisation) } else { Err(QueueError::Unstable { utilisation }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shared by the tests of all queues.
    pub(super) fn assert_close(found: f64, expected: f64, relative: f64) {
        let error = (found - expected).abs();
        assert!(error <= relative * expected.abs(), "{found} instead of {expected}");
    }

    #[test]
    fn bad_parameters_are_named() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Mm1::new(rate, 1.0), Err(QueueError::NotPositive { name: "arrival rate", .. })));
            assert!(Mmc::new(1.0, rate, 2).is_err() && Mg1::new(rate, 1.0, 1.0).is_err());
            assert!(Md1::new(rate, 1.0).is_err() && Mg1Ps::new(rate, 1.0).is_err());
            assert!(Mmck::new(rate, 1.0, 1, 1).is_err() && Repairman::new(1, 1, 1.0, rate).is_err());
        }
        assert!(Mg1::new(1.0, 0.5, -0.1).is_err() && Repairman::new(1, 1, -1.0, 1.0).is_err());
        assert!(Mmc::new(1.0, 1.0, 0).is_err() && Mmc::new(1.0, 1.0, u32::MAX).is_err());
        assert!(Mmck::new(1.0, 1.0, 3, 2).is_err() && Repairman::new(0, 1, 1.0, 1.0).is_err());
        let message = Mmc::new(1.0, 1.0, 0).unwrap_err().to_string();
        assert_eq!(message, "servers must be between 1 and 10000000, not 0");
    }

    #[test]
    fn overload_has_no_steady_state() {
        let overloaded = QueueError::Unstable { utilisation: 1.0 };
        assert_eq!(Mm1::new(1.0, 1.0), Err(overloaded));
        assert_eq!(Mmc::new(4.0, 1.0, 4), Err(overloaded));
        assert_eq!(Mg1::new(1.0, 1.0, 0.0), Err(overloaded));
        assert_eq!(Md1::new(1.0, 1.0).unwrap_err(), overloaded);
        assert_eq!(Mg1Ps::new(1.0, 1.0), Err(overloaded));
    }
}
