//! Which replica a request goes to.

use super::config::RouterPolicy;
use crate::des::Least;
use crate::rng::Stream;

/// A router over `replicas` replicas; it sees how many requests each has in flight and no more.
#[derive(Debug)]
pub(super) struct Router {
    policy: RouterPolicy,
    replicas: u32,
    stream: Stream,
    next: u32,
    /// Kept only for policies that look.
    load: Least<Load>,
    chosen: u64,
    looks: bool,
}

impl Router {
    pub fn new(policy: RouterPolicy, replicas: u32, stream: Stream) -> Self {
        let looks = match policy {
            RouterPolicy::RoundRobin | RouterPolicy::Random => false,
            RouterPolicy::LeastOutstanding | RouterPolicy::PowerOfTwo => replicas > 1,
        };
        // At first the lower number wins, so that requests go round.
        let load = Least::new(replicas, Load::new(0, 0), Load::new(u32::MAX, u64::MAX));
        Self { policy, replicas, stream, next: 0, load, chosen: 0, looks }
    }

    /// Picks a replica. The caller reports with [`Router::sent`] if the replica took the request.
    pub fn pick(&mut self) -> u32 {
        if self.replicas == 1 {
            return 0;
        }
        match self.policy {
            RouterPolicy::RoundRobin => {
                let pick = self.next;
                self.next = (self.next + 1) % self.replicas;
                pick
            }
            RouterPolicy::Random => self.index(),
            RouterPolicy::LeastOutstanding => self.load.least().1,
            RouterPolicy::PowerOfTwo => {
                let (a, b) = (self.index(), self.index());
                if self.load.key(b).in_flight() < self.load.key(a).in_flight() { b } else { a }
            }
        }
    }

    fn index(&mut self) -> u32 {
        self.stream.index(self.replicas as usize) as u32
    }

    pub fn sent(&mut self, replica: u32) {
        if self.looks {
            self.chosen += 1;
            let in_flight = self.load.key(replica).in_flight();
            self.load.set(replica, Load::new(in_flight + 1, self.chosen));
        }
    }

    pub fn completed(&mut self, replica: u32, count: u32) {
        if self.looks && count > 0 {
            let load = self.load.key(replica);
            self.load.set(replica, Load::new(load.in_flight() - count, load.chosen()));
        }
    }
}

/// Requests in flight and, below them, who was chosen when: in one number, which compares without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load(u128);

impl Load {
    fn new(in_flight: u32, chosen: u64) -> Self {
        Self(u128::from(in_flight) << 64 | u128::from(chosen))
    }

    fn in_flight(self) -> u32 {
        (self.0 >> 64) as u32
    }

    fn chosen(self) -> u64 {
        self.0 as u64
    }
}
