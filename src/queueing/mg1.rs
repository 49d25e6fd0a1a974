//! M/G/1: one server, any distribution of service times; the Pollaczek-Khinchine formula.
//!
//! F. Pollaczek (1930), A. Khinchine (1932); Kleinrock, "Queueing Systems" I (1975), section 5.6.

use super::{Means, QueueError, below_one, not_negative, positive};

/// Poisson arrivals at one server that works first come, first served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mg1 {
    arrival_per_s: f64,
    service_s: f64,
    service_scv: f64,
}

impl Mg1 {
    /// `service_s`: mean service time; `service_scv`: its squared coefficient of variation, variance /
    /// mean^2 (0 constant, 1 exponential).
    ///
    /// # Errors
    /// A parameter out of range, or utilisation at or above 1.
    pub fn new(arrival_per_s: f64, service_s: f64, service_scv: f64) -> Result<Self, QueueError> {
        positive("arrival rate", arrival_per_s)?;
        positive("service time", service_s)?;
        not_negative("squared coefficient of variation", service_scv)?;
        below_one(arrival_per_s * service_s)?;
        Ok(Self { arrival_per_s, service_s, service_scv })
    }

    /// Averages; mean wait lambda E\[S^2\] / (2 (1 - rho)).
    #[must_use]
    pub fn means(&self) -> Means {
        let utilisation = self.arrival_per_s * self.service_s;
        let wait_s = utilisation / (1.0 - utilisation) * self.service_s * (1.0 + self.service_scv) / 2.0;
        Means::new(self.arrival_per_s, 1, self.service_s, wait_s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mm1;
    use super::super::tests::assert_close;
    use super::*;

    /// Banks, Carson, Nelson, "Discrete-Event System Simulation": 1.5 jobs an hour, service 30 minutes
    /// with standard deviation 20: 2.375 jobs in the shop.
    #[test]
    fn agrees_with_a_published_example() {
        let queue = Mg1::new(1.5, 0.5, (20.0_f64 / 30.0).powi(2)).unwrap();
        assert_close(queue.means().in_system, 2.375, 1e-14);
        assert_close(queue.means().waiting, 1.625, 1e-14);
    }

    #[test]
    fn exponential_service_is_mm1() {
        let (general, exponential) = (Mg1::new(0.95, 1.0, 1.0).unwrap(), Mm1::new(0.95, 1.0).unwrap());
        assert_close(general.means().response_s, exponential.means().response_s, 1e-12);
    }
}
