//! Several engines behind a router, each looked at whenever something happens anywhere.

use knee::engine::RouterPolicy;
use knee::units::SimTime;

use super::client::Client;
use super::engine::Engine;
use super::{Outcome, Record, Scenario};

/// What happened on each engine, and the completions of all in order.
#[derive(Debug, PartialEq, Default)]
pub struct FleetOutcome {
    /// Without gaps and refusals.
    pub engines: Vec<Outcome>,
    /// Engine and request.
    pub finished: Vec<(usize, Record)>,
    pub rejected: Vec<u64>,
    /// Ascending.
    pub gaps_ns: Vec<u64>,
}

struct Fleet<'a> {
    engines: Vec<Engine<'a>>,
    router: RouterPolicy,
    in_flight: Vec<u32>,
    /// When each engine was last sent a request, counted in requests.
    chosen: Vec<u64>,
    /// Requests that were routed, and of these the ones that were taken.
    routed: usize,
    taken: u64,
    outcome: FleetOutcome,
}

/// Runs the scenario's load on `engines` engines behind a round-robin or least-outstanding router. Of steps
/// that end at one instant, that of the engine with the lower number is first.
pub fn simulate(scenario: &Scenario, engines: usize, router: RouterPolicy) -> FleetOutcome {
    let engine = |_| Engine::new(&scenario.server);
    let mut client = Client::new(scenario.load.clone(), scenario.server.front_end);
    let mut fleet = Fleet {
        engines: (0..engines).map(engine).collect(),
        router,
        in_flight: vec![0; engines],
        chosen: vec![0; engines],
        routed: 0,
        taken: 0,
        outcome: FleetOutcome::default(),
    };
    loop {
        let ends = fleet.engines.iter().filter_map(Engine::step_end);
        let Some(now) = ends.chain(client.next_arrival()).min() else { break };
        fleet.deliver(&mut client, now);
        for engine in 0..engines {
            if fleet.engines[engine].step_end() == Some(now) {
                fleet.end_step(engine, &mut client, now);
                fleet.deliver(&mut client, now);
            }
        }
        fleet.engines.iter_mut().for_each(|engine| engine.wake(now));
    }
    fleet.into_outcome()
}

impl Fleet<'_> {
    fn deliver(&mut self, client: &mut Client, now: SimTime) {
        while let Some(request) = client.take_arrival(now) {
            let engines = self.engines.len();
            let engine = match self.router {
                RouterPolicy::RoundRobin => self.routed % engines,
                _ => (0..engines).min_by_key(|&e| (self.in_flight[e], self.chosen[e])).expect("an engine"),
            };
            self.routed += 1;
            if self.engines[engine].accept(request) {
                self.taken += 1;
                self.chosen[engine] = self.taken;
                self.in_flight[engine] += 1;
            } else {
                self.outcome.rejected.push(request.index);
                client.answered(request.index, now);
            }
        }
    }

    fn end_step(&mut self, engine: usize, client: &mut Client, now: SimTime) {
        let before = self.engines[engine].outcome.finished.len();
        for index in self.engines[engine].end_step(now) {
            self.in_flight[engine] -= 1;
            client.answered(index, now);
        }
        let records = self.engines[engine].outcome.finished[before..].iter().map(|record| (engine, *record));
        self.outcome.finished.extend(records);
    }

    fn into_outcome(self) -> FleetOutcome {
        let mut outcome = self.outcome;
        for engine in self.engines {
            let mut own = engine.into_outcome();
            outcome.gaps_ns.append(&mut own.gaps_ns);
            own.rejected.clear();
            own.end = SimTime::ZERO;
            outcome.engines.push(own);
        }
        outcome.gaps_ns.sort_unstable();
        outcome
    }
}
