//! M/M/1: one server, exponential service. Kleinrock, "Queueing Systems" I (1975), section 3.2.

use super::{Means, QueueError, below_one, positive};

/// Poisson arrivals at one server with exponential service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mm1 {
    arrival_per_s: f64,
    service_per_s: f64,
}

impl Mm1 {
    /// `service_per_s`: completions per second of a busy server.
    ///
    /// # Errors
    /// A rate that is not positive, or arrivals at or above the service rate.
    pub fn new(arrival_per_s: f64, service_per_s: f64) -> Result<Self, QueueError> {
        positive("arrival rate", arrival_per_s)?;
        positive("service rate", service_per_s)?;
        below_one(arrival_per_s / service_per_s)?;
        Ok(Self { arrival_per_s, service_per_s })
    }

    /// Averages; mean response 1 / (mu - lambda).
    #[must_use]
    pub fn means(&self) -> Means {
        let utilisation = self.arrival_per_s / self.service_per_s;
        let wait_s = utilisation / (self.service_per_s - self.arrival_per_s);
        Means::new(self.arrival_per_s, 1, 1.0 / self.service_per_s, wait_s)
    }

    /// P(wait > `t_s`) = rho e^(-(mu - lambda) t), for `t_s` >= 0.
    #[must_use]
    pub fn wait_tail(&self, t_s: f64) -> f64 {
        self.arrival_per_s / self.service_per_s * self.response_tail(t_s)
    }

    /// P(response > `t_s`) = e^(-(mu - lambda) t), for `t_s` >= 0.
    #[must_use]
    pub fn response_tail(&self, t_s: f64) -> f64 {
        libm::exp(-(self.service_per_s - self.arrival_per_s) * t_s)
    }

    /// The time that a fraction `q` (0 to 1) of responses does not exceed, in seconds.
    #[must_use]
    pub fn response_quantile(&self, q: f64) -> f64 {
        -libm::log1p(-q) / (self.service_per_s - self.arrival_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_close;
    use super::*;

    /// The textbook's queue: lambda 2, mu 3.
    #[test]
    fn agrees_with_arithmetic() {
        let queue = Mm1::new(2.0, 3.0).unwrap();
        let means = queue.means();
        for (found, expected) in [
            (means.utilisation, 2.0 / 3.0),
            (means.in_system, 2.0),
            (means.waiting, 4.0 / 3.0),
            (means.response_s, 1.0),
            (means.wait_s, 2.0 / 3.0),
            (queue.wait_tail(0.0), 2.0 / 3.0),
            (queue.response_quantile(0.99), 100.0_f64.ln()),
            (queue.response_tail(queue.response_quantile(0.9)), 0.1),
        ] {
            assert_close(found, expected, 1e-14);
        }
    }
}
