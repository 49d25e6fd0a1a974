//! M/M/c: several servers with one queue; Erlang's formulas.
//!
//! A. K. Erlang (1917); Cooper, "Introduction to Queueing Theory" (1981), chapter 3.

use super::{Means, QueueError, below_one, in_range, positive};

/// Erlang's loss formula: the fraction of arrivals that finds all `servers` busy and is lost, with
/// `offered` = arrival rate x mean service time (erlangs). By the stable recursion
/// B(c) = a B(c - 1) / (c + a B(c - 1)).
///
/// # Errors
/// `offered` not positive, or more than [`MAX_STATES`](super::MAX_STATES) servers.
pub fn erlang_b(servers: u32, offered: f64) -> Result<f64, QueueError> {
    positive("offered load", offered)?;
    in_range("servers", servers, 0)?;
    Ok((1..=servers).fold(1.0, |blocked, c| {
        let lost = offered * blocked;
        lost / (f64::from(c) + lost)
    }))
}

/// Erlang's delay formula: the fraction of arrivals that has to wait.
///
/// # Errors
/// As [`erlang_b`], no server, or `offered` at or above `servers`.
pub fn erlang_c(servers: u32, offered: f64) -> Result<f64, QueueError> {
    in_range("servers", servers, 1)?;
    let blocked = erlang_b(servers, offered)?;
    let utilisation = below_one(offered / f64::from(servers))?;
    Ok(blocked / (1.0 - utilisation * (1.0 - blocked)))
}

/// Poisson arrivals at `servers` equal servers with exponential service and one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmc {
    arrival_per_s: f64,
    service_per_s: f64,
    servers: u32,
    delayed: f64,
}

impl Mmc {
    /// `service_per_s`: completions per second of *one* busy server.
    ///
    /// # Errors
    /// A rate or count out of range, or arrivals at or above what all servers complete.
    pub fn new(arrival_per_s: f64, service_per_s: f64, servers: u32) -> Result<Self, QueueError> {
        positive("arrival rate", arrival_per_s)?;
        positive("service rate", service_per_s)?;
        let delayed = erlang_c(servers, arrival_per_s / service_per_s)?;
        Ok(Self { arrival_per_s, service_per_s, servers, delayed })
    }

    /// Fraction of arrivals that has to wait (Erlang C).
    #[must_use]
    pub fn delayed(&self) -> f64 {
        self.delayed
    }

    /// Averages; mean wait C / (c mu - lambda).
    #[must_use]
    pub fn means(&self) -> Means {
        let wait_s = self.delayed / self.spare_per_s();
        Means::new(self.arrival_per_s, self.servers, 1.0 / self.service_per_s, wait_s)
    }

    /// P(wait > `t_s`) = C e^(-(c mu - lambda) t), for `t_s` >= 0.
    #[must_use]
    pub fn wait_tail(&self, t_s: f64) -> f64 {
        self.delayed * libm::exp(-self.spare_per_s() * t_s)
    }

    /// The time that a fraction `q` (0 to 1) of waits does not exceed, in seconds; 0 where so many do not
    /// wait at all.
    #[must_use]
    pub fn wait_quantile(&self, q: f64) -> f64 {
        (libm::log(self.delayed / (1.0 - q)) / self.spare_per_s()).max(0.0)
    }

    /// P(response > `t_s`), for `t_s` >= 0: the wait's distribution convolved with the service time's.
    #[must_use]
    pub fn response_tail(&self, t_s: f64) -> f64 {
        // e^(-mu t) + C mu (integral over the wait u in 0..t of e^(-spare u) e^(-mu (t - u)) du), the
        // integral being symmetric in both rates: by the slower one, so that nothing overflows.
        let (mu, spare) = (self.service_per_s, self.spare_per_s());
        let exponent = (mu - spare).abs() * t_s;
        // (1 - e^-x) / x tends to 1 where both rates agree.
        let shape = if exponent == 0.0 { 1.0 } else { -libm::expm1(-exponent) / exponent };
        let delayed = self.delayed * mu * t_s * libm::exp(-mu.min(spare) * t_s) * shape;
        libm::exp(-mu * t_s) + delayed
    }

    fn spare_per_s(&self) -> f64 {
        f64::from(self.servers) * self.service_per_s - self.arrival_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_close;
    use super::super::{MAX_STATES, Mm1};
    use super::*;

    /// Printed Erlang B tables: offered load that a trunk group carries at 1 % and 0.1 % loss.
    #[test]
    fn erlang_b_agrees_with_the_published_table() {
        for (servers, offered, blocked) in [
            (1, 0.0101, 0.01),
            (5, 1.361, 0.01),
            (10, 4.461, 0.01),
            (20, 12.031, 0.01),
            (50, 37.901, 0.01),
            (100, 84.064, 0.01),
            (10, 3.092, 0.001),
            (100, 75.242, 0.001),
        ] {
            assert_close(erlang_b(servers, offered).unwrap(), blocked, 2e-3);
        }
    }

    #[test]
    fn agrees_with_closed_forms_of_one_and_two_servers() {
        let one = Mmc::new(2.0, 3.0, 1).unwrap();
        let reference = Mm1::new(2.0, 3.0).unwrap();
        assert_close(one.means().wait_s, reference.means().wait_s, 1e-14);
        for t_s in [0.0, 0.3, 2.0] {
            assert_close(one.wait_tail(t_s), reference.wait_tail(t_s), 1e-14);
            assert_close(one.response_tail(t_s), reference.response_tail(t_s), 1e-14);
        }
        // Two servers: C = 2 rho^2 / (1 + rho), mean response (1 / mu) / (1 - rho^2).
        let two = Mmc::new(1.6, 1.0, 2).unwrap();
        assert_close(two.delayed(), 2.0 * 0.64 / 1.8, 1e-14);
        assert_close(two.means().response_s, 1.0 / 0.36, 1e-14);
    }

    #[test]
    fn quantiles_invert_tails() {
        let queue = Mmc::new(9.0, 1.0, 10).unwrap();
        assert_close(queue.wait_tail(queue.wait_quantile(0.99)), 0.01, 1e-12);
        assert_eq!(queue.wait_quantile(0.1), 0.0);
    }

    /// The tail's integral is the mean, also at spare = mu, where the general formula is 0 / 0.
    #[test]
    fn response_tail_integrates_to_the_mean() {
        for arrival_per_s in [1.0, 2.0, 2.9] {
            let queue = Mmc::new(arrival_per_s, 1.0, 3).unwrap();
            let step = 1e-3;
            let integral: f64 =
                (0..400_000).map(|i| queue.response_tail((f64::from(i) + 0.5) * step) * step).sum();
            assert_close(integral, queue.means().response_s, 1e-6);
            assert_eq!(queue.response_tail(1e5), 0.0);
        }
    }

    /// Ten thousand servers at the square-root staffing rule: Halfin and Whitt (1981) give the delay
    /// probability for beta = 1 as 1 / (1 + sqrt(2 pi) Phi(1) e^(1/2)) = 0.2234.
    #[test]
    fn is_stable_for_many_servers() {
        let delayed = erlang_c(10_000, 9_900.0).unwrap();
        assert_close(delayed, 0.2234, 0.01);
        assert_eq!(erlang_b(MAX_STATES, 1.0).unwrap(), 0.0);
        assert_eq!(erlang_b(0, 1.0).unwrap(), 1.0);
    }
}
