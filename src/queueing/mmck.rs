//! M/M/c/K: limited room; arrivals that find it full are turned away.
//!
//! Gross, Shortle, Thompson, Harris, "Fundamentals of Queueing Theory" (4th ed., 2008), section 2.5.

use super::birth_death::stationary;
use super::{Means, QueueError, in_range, positive};

/// Poisson arrivals at `servers` equal servers with room for `capacity` customers, those in service
/// included. Stable at any load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmck {
    means: Means,
    blocked: f64,
}

impl Mmck {
    /// `service_per_s`: completions per second of one busy server.
    ///
    /// # Errors
    /// A rate that is not positive, no server, or a capacity below `servers` or above
    /// [`MAX_STATES`](super::MAX_STATES).
    pub fn new(
        arrival_per_s: f64,
        service_per_s: f64,
        servers: u32,
        capacity: u32,
    ) -> Result<Self, QueueError> {
        positive("arrival rate", arrival_per_s)?;
        positive("service rate", service_per_s)?;
        in_range("servers", servers, 1)?;
        in_range("capacity", capacity, servers)?;
        let (room, servers_usize) = (capacity as usize, servers as usize);
        let offered = arrival_per_s / service_per_s;
        let p = stationary(room + 1, |n| offered / (n + 1).min(servers_usize) as f64);
        let blocked = p[room];
        // By what is served, not 1 - blocked, which loses its digits in heavy overload.
        let busy: f64 = p.iter().enumerate().map(|(n, p)| n.min(servers_usize) as f64 * p).sum();
        let waiting: f64 =
            p.iter().enumerate().skip(servers_usize).map(|(n, p)| (n - servers_usize) as f64 * p).sum();
        let throughput_per_s = busy * service_per_s;
        let means = Means::new(throughput_per_s, servers, 1.0 / service_per_s, waiting / throughput_per_s);
        Ok(Self { means, blocked })
    }

    /// Fraction of arrivals that is turned away.
    #[must_use]
    pub fn blocked(&self) -> f64 {
        self.blocked
    }

    /// Averages; times are of those who were let in.
    #[must_use]
    pub fn means(&self) -> Means {
        self.means
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_close;
    use super::super::{Mmc, erlang_b};
    use super::*;

    /// Banks, Carson, Nelson: a barber (3 an hour) with two waiting chairs, 2 customers an hour: 8/65 are
    /// lost, 66/65 in the shop, who stay 66/114 h.
    #[test]
    fn agrees_with_a_published_example() {
        let shop = Mmck::new(2.0, 3.0, 1, 3).unwrap();
        assert_close(shop.blocked(), 8.0 / 65.0, 1e-14);
        assert_close(shop.means().in_system, 66.0 / 65.0, 1e-14);
        assert_close(shop.means().throughput_per_s, 114.0 / 65.0, 1e-14);
        assert_close(shop.means().response_s, 66.0 / 114.0, 1e-14);
    }

    #[test]
    fn without_waiting_room_it_is_erlang_b_and_with_plenty_erlang_c() {
        for servers in [1, 7, 300] {
            let offered = 0.9 * f64::from(servers);
            let lossy = Mmck::new(offered, 1.0, servers, servers).unwrap();
            assert_close(lossy.blocked(), erlang_b(servers, offered).unwrap(), 1e-11);
            assert_eq!(lossy.means().wait_s, 0.0);
            let roomy = Mmck::new(offered, 1.0, servers, servers + 2_000).unwrap();
            assert_close(roomy.means().wait_s, Mmc::new(offered, 1.0, servers).unwrap().means().wait_s, 1e-9);
        }
    }

    #[test]
    fn flow_is_conserved_at_any_load() {
        for arrival_per_s in [1e-3, 0.5, 1.0, 4.0, 1e3, 1e300] {
            let queue = Mmck::new(arrival_per_s, 1.0, 4, 50).unwrap();
            if arrival_per_s <= 1e3 {
                assert_close(queue.means().throughput_per_s, arrival_per_s * (1.0 - queue.blocked()), 1e-9);
            }
            assert!(queue.means().utilisation <= 1.0 && queue.means().in_system <= 50.0 + 1e-12);
        }
        // Arrivals at exactly the service rate of one server: every state is equally likely.
        assert_close(Mmck::new(1.0, 1.0, 1, 9).unwrap().blocked(), 0.1, 1e-14);
    }
}
