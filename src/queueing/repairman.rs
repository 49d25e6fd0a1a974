//! M/M/c//N, the machine repairman: a closed loop of users who think, ask and wait.
//!
//! Gross, Shortle, Thompson, Harris, "Fundamentals of Queueing Theory" (4th ed., 2008), section 2.8; the
//! response time by Denning and Buzen's law R = N / X - Z (ACM Computing Surveys 10, 1978).

use super::birth_death::stationary;
use super::{Means, QueueError, in_range, not_negative, positive};

/// `users` who each think (exponentially), send one request, and wait for its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repairman {
    means: Means,
}

impl Repairman {
    /// `think_s`: mean time between an answer and the next request (0 allowed); `service_per_s`:
    /// completions per second of one busy server.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn new(users: u32, servers: u32, think_s: f64, service_per_s: f64) -> Result<Self, QueueError> {
        in_range("users", users, 1)?;
        in_range("servers", servers, 1)?;
        not_negative("think time", think_s)?;
        positive("service rate", service_per_s)?;
        let (population, servers_usize) = (users as usize, servers as usize);
        // Without think time the ratio is infinite: all users are always in the system.
        let p = stationary(population + 1, |n| {
            (population - n) as f64 / (think_s * service_per_s * (n + 1).min(servers_usize) as f64)
        });
        let busy: f64 = p.iter().enumerate().map(|(n, p)| n.min(servers_usize) as f64 * p).sum();
        let waiting: f64 =
            p.iter().enumerate().skip(servers_usize).map(|(n, p)| (n - servers_usize) as f64 * p).sum();
        let throughput_per_s = busy * service_per_s;
        Ok(Self {
            means: Means::new(throughput_per_s, servers, 1.0 / service_per_s, waiting / throughput_per_s),
        })
    }

    /// Averages; `in_system` counts users who wait for an answer.
    #[must_use]
    pub fn means(&self) -> Means {
        self.means
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_close;
    use super::*;

    /// Banks, Carson, Nelson: two workers, ten milling machines that run 20 minutes and take 5 to adjust.
    #[test]
    fn agrees_with_a_published_example() {
        let means = Repairman::new(10, 2, 20.0, 0.2).unwrap().means();
        assert_close(means.throughput_per_s, 0.342, 2e-3);
        assert_close(means.waiting, 1.46, 4e-3);
        assert_close(means.in_system, 3.17, 2e-3);
        assert_close(means.utilisation, 0.854, 1e-3);
    }

    #[test]
    fn obeys_the_response_time_law_and_its_bounds() {
        for (users, servers, think_s) in
            [(1, 1, 3.0), (20, 1, 5.0), (50, 4, 1.0), (5_000, 100, 40.0), (8, 3, 0.0)]
        {
            let means = Repairman::new(users, servers, think_s, 2.0).unwrap().means();
            assert_close(means.response_s, f64::from(users) / means.throughput_per_s - think_s, 1e-9);
            let bound = (2.0 * f64::from(servers)).min(f64::from(users) / (think_s + 0.5));
            assert!(means.throughput_per_s <= bound * (1.0 + 1e-12));
        }
        let alone = Repairman::new(1, 1, 3.0, 2.0).unwrap().means();
        assert_close(alone.throughput_per_s, 1.0 / 3.5, 1e-14);
    }

    #[test]
    fn without_thinking_all_servers_are_busy() {
        let means = Repairman::new(8, 3, 0.0, 2.0).unwrap().means();
        assert_eq!((means.throughput_per_s, means.utilisation, means.waiting), (6.0, 1.0, 5.0));
        let idle_servers = Repairman::new(2, 3, 0.0, 2.0).unwrap().means();
        assert_eq!((idle_servers.throughput_per_s, idle_servers.wait_s), (4.0, 0.0));
    }

    /// With one server the throughput is that of the Erlang loss system seen from the server.
    #[test]
    fn one_server_is_erlang_b_in_disguise() {
        let means = Repairman::new(12, 1, 9.0, 1.0).unwrap().means();
        let idle = super::super::erlang_b(12, 9.0).unwrap();
        assert_close(means.throughput_per_s, 1.0 - idle, 1e-12);
    }
}
