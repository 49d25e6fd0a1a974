//! M/G/1-PS: one server shared equally by all present, as a batch shares a step.
//!
//! Kleinrock, "Queueing Systems" II (1976), section 4.4; Sakata, Noguchi, Oizumi, "An analysis of the
//! M/G/1 queue under round-robin scheduling", Operations Research 19 (1971) 371-385.

use super::{Means, QueueError, below_one, positive};

/// Poisson arrivals at one server under processor sharing. Only the mean of the service time matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mg1Ps {
    arrival_per_s: f64,
    service_s: f64,
}

impl Mg1Ps {
    /// `service_s`: mean service time of a customer alone in the system.
    ///
    /// # Errors
    /// A parameter out of range, or utilisation at or above 1.
    pub fn new(arrival_per_s: f64, service_s: f64) -> Result<Self, QueueError> {
        positive("arrival rate", arrival_per_s)?;
        positive("service time", service_s)?;
        below_one(arrival_per_s * service_s)?;
        Ok(Self { arrival_per_s, service_s })
    }

    /// Averages; mean response E\[S\] / (1 - rho). Nobody waits, everybody is slowed: `wait_s` is the
    /// delay that sharing adds, `waiting` its equivalent in customers.
    #[must_use]
    pub fn means(&self) -> Means {
        let wait_s = self.response_s(self.service_s) - self.service_s;
        Means::new(self.arrival_per_s, 1, self.service_s, wait_s)
    }

    /// Mean response of a customer who needs `size_s` seconds of service: `size_s` / (1 - rho), the same
    /// slowdown for all sizes.
    #[must_use]
    pub fn response_s(&self, size_s: f64) -> f64 {
        size_s / (1.0 - self.arrival_per_s * self.service_s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mm1;
    use super::super::tests::assert_close;
    use super::*;

    #[test]
    fn is_as_fast_as_mm1_on_average_and_fair() {
        let (shared, queued) = (Mg1Ps::new(8.0, 0.1).unwrap(), Mm1::new(8.0, 10.0).unwrap());
        assert_close(shared.means().response_s, queued.means().response_s, 1e-12);
        assert_close(shared.means().in_system, 4.0, 1e-12);
        assert_close(shared.response_s(0.02), 0.1, 1e-12);
    }
}
