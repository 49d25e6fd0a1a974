//! Which replica a request goes to.

use super::config::RouterPolicy;
use crate::rng::Stream;

/// A router over `replicas` replicas; it sees how many requests each has in flight and no more.
#[derive(Debug)]
pub(super) struct Router {
    policy: RouterPolicy,
    replicas: u32,
    stream: Stream,
    next: u32,
    chosen: u64,
    load: Load,
}

impl Router {
    pub fn new(policy: RouterPolicy, replicas: u32, stream: Stream) -> Self {
        Self { policy, replicas, stream, next: 0, chosen: 0, load: Load::new(replicas) }
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
            RouterPolicy::LeastOutstanding => self.load.least(),
            RouterPolicy::PowerOfTwo => {
                let (a, b) = (self.index(), self.index());
                if self.load.in_flight(b) < self.load.in_flight(a) { b } else { a }
            }
        }
    }

    fn index(&mut self) -> u32 {
        self.stream.index(self.replicas as usize) as u32
    }

    pub fn sent(&mut self, replica: u32) {
        if self.replicas > 1 {
            self.chosen += 1;
            let (in_flight, _) = self.load.key(replica);
            self.load.set(replica, (in_flight + 1, self.chosen));
        }
    }

    pub fn completed(&mut self, replica: u32, count: u32) {
        if self.replicas > 1 && count > 0 {
            let (in_flight, chosen) = self.load.key(replica);
            self.load.set(replica, (in_flight - count, chosen));
        }
    }
}

/// Requests in flight per replica, with the least loaded found and any changed in log time: a tournament
/// tree whose leaves are the replicas. Of equals the one least recently chosen wins.
#[derive(Debug)]
struct Load {
    keys: Vec<(u32, u64)>,
    /// `winner[1]` is the root; node n has children 2n and 2n + 1; leaves start at `leaves`.
    winner: Vec<u32>,
    leaves: usize,
}

impl Load {
    fn new(replicas: u32) -> Self {
        let leaves = (replicas as usize).next_power_of_two();
        // Replica i starts as if chosen in order i, so that the first requests go round.
        let mut keys: Vec<(u32, u64)> = vec![(0, 0); replicas as usize];
        keys.resize(leaves, (u32::MAX, u64::MAX));
        let mut winner = vec![0; 2 * leaves];
        for (leaf, slot) in winner[leaves..].iter_mut().enumerate() {
            *slot = leaf as u32;
        }
        let mut load = Self { keys, winner, leaves };
        for node in (1..leaves).rev() {
            load.play(node);
        }
        load
    }

    fn play(&mut self, node: usize) {
        let (a, b) = (self.winner[2 * node], self.winner[2 * node + 1]);
        self.winner[node] = if self.keys[b as usize] < self.keys[a as usize] { b } else { a };
    }

    fn key(&self, replica: u32) -> (u32, u64) {
        self.keys[replica as usize]
    }

    fn in_flight(&self, replica: u32) -> u32 {
        self.keys[replica as usize].0
    }

    fn least(&self) -> u32 {
        self.winner[1]
    }

    fn set(&mut self, replica: u32, key: (u32, u64)) {
        self.keys[replica as usize] = key;
        let mut node = (self.leaves + replica as usize) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_finds_the_least_loaded_and_breaks_ties_by_least_recently_chosen() {
        for replicas in [1, 2, 3, 5, 8, 13] {
            let mut load = Load::new(replicas);
            let mut state: u64 = 7;
            for turn in 1..2000_u64 {
                let expected = (0..replicas).min_by_key(|&r| load.key(r)).unwrap();
                assert_eq!(load.least(), expected, "{replicas} replicas, turn {turn}");
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let replica = (state >> 33) as u32 % replicas;
                load.set(replica, ((state >> 50) as u32 % 4, turn));
            }
        }
    }
}
