//! One run: clients send, the router sends on, replicas serve, until there is nothing left to ask.
//!
//! What happens first when several things fall on the same nanosecond:
//!
//! | | event | why here |
//! |---|---|---|
//! | 0 | a client sends, a request reaches a replica | who arrives at t is seen by what is decided at t |
//! | 1 | a step or a service ends, in the order of the replicas | its outputs, the next start and the next composition are one event |
//! | 2 | an idle replica wakes | all arrivals of one instant are in its queue before it composes |
//!
//! Replicas know nothing of each other, and all that others see of one is when its requests complete. So
//! each has only one time in the queue: when a request of it can complete at the earliest. Steps that end
//! before are run when that time has come, or when a request reaches the replica. A fleet then costs two
//! or three events a request, however many steps that request takes.

use std::collections::VecDeque;

use super::config::{Server, System};
use super::lockstep::LockStep;
use super::observer::{Observer, Rejection};
use super::replica::{Prices, Replica};
use super::router::Router;
use super::staged::StagedReplica;
use super::synthetic::Station;
use crate::des::{EventQueue, Least};
use crate::rng::{Purpose, Stream, keyed, stream};
use crate::units::{SimSpan, SimTime, plain};
use crate::workload::Request;

/// Who sends requests. A client is either open (a sequence of requests, whatever happens to them) or
/// closed (a number of users who wait for their answer before they ask again).
pub trait Client {
    /// Open loop: the next request in order of sending; `None` when there are no more.
    fn next_request(&mut self) -> Option<Request>;
    /// Closed loop: how many users there are; `None` for an open loop.
    fn users(&self) -> Option<u32>;
    /// Closed loop: when `user` sends for the first time.
    fn first_send(&self, _user: u32) -> SimTime {
        SimTime::ZERO
    }
    /// Closed loop: the request that a user sends at `send`.
    fn request_at(&mut self, send: SimTime) -> Request;
    /// Closed loop: how long the user thinks after `request` completed.
    fn think_time(&mut self, request: &Request) -> SimSpan;
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunUntil {
    /// No more than this many requests are sent.
    pub requests: u64,
    /// None is sent after this time.
    pub time: SimTime,
    /// True: what was sent is served to the end. False: the run ends when the last request has been
    /// sent, or at `time`.
    pub drain: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub time: SimTime,
    pub sent: u64,
}

/// Why a run could not go on.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    #[error(
        "simulated time ran past the clock's 584 years: one of run.requests or run.duration_s, the arrivals' rate_per_s, \
         arrivals.closed.think_time_s and engine.service_time is out of all proportion to the others"
    )]
    ClockExhausted,
    #[error(
        "a user's whole cycle takes no time at {} s: give think_time_s, a service time above 0, or run.requests",
        plain(*.0)
    )]
    StandsStill(f64),
    #[error("a service time was drawn that is not a span of time: {0} ns at most can be simulated")]
    ServiceTime(u64),
}

/// Runs `system` under `client` until `until`, telling `observer` all that happens. `seed` and
/// `replication` drive routing and synthetic service times; everything else is the client's.
///
/// # Errors
/// [`EngineError`] if the clock or a drawn service time is out of range.
pub fn run(
    system: &System,
    client: &mut impl Client,
    until: RunUntil,
    seed: u64,
    replication: u32,
    observer: &mut impl Observer,
) -> Result<RunEnd, EngineError> {
    match &system.server {
        Server::Llm(server) if server.pipeline.is_some() || server.speculation.is_some() => {
            let acceptance = keyed(seed, Purpose::Acceptance, replication);
            let replica = |id| Box::new(StagedReplica::new(id, server, acceptance));
            let replicas = (0..system.replicas).map(|id| Stepwise::Staged(replica(id)));
            let nodes = replicas.map(|replica| Node::Stepwise { replica, wakes: false });
            Run::new(system, nodes.collect(), client, until, seed, replication, observer).go()
        }
        Server::Llm(server) if server.data_parallel.is_some() => {
            let replicas = (0..system.replicas).filter_map(|id| LockStep::new(id, server));
            let replicas = replicas.map(|replica| Stepwise::LockStep(Box::new(replica)));
            let nodes = replicas.map(|replica| Node::Stepwise { replica, wakes: false });
            Run::new(system, nodes.collect(), client, until, seed, replication, observer).go()
        }
        Server::Llm(server) => {
            let prices = Prices::new(server);
            let replica = |id| Box::new(Replica::new(id, server, &prices));
            let nodes = (0..system.replicas).map(|id| Node::Llm { replica: replica(id), wakes: false });
            Run::new(system, nodes.collect(), client, until, seed, replication, observer).go()
        }
        Server::Synthetic(server) => {
            let station = |id| Box::new(Station::new(id, server));
            let nodes = (0..system.replicas).map(|id| Node::Synthetic(station(id)));
            Run::new(system, nodes.collect(), client, until, seed, replication, observer).go()
        }
    }
}

#[derive(Debug)]
enum Node<'a> {
    Llm { replica: Box<Replica<'a>>, wakes: bool },
    Stepwise { replica: Stepwise<'a>, wakes: bool },
    Synthetic(Box<Station>),
}

/// A replica of which every step must be looked at when it ends.
#[derive(Debug)]
enum Stepwise<'a> {
    Staged(Box<StagedReplica<'a>>),
    LockStep(Box<LockStep<'a>>),
}

impl Stepwise<'_> {
    fn accept(&mut self, now: SimTime, request: &Request) -> Result<(), Rejection> {
        match self {
            Self::Staged(replica) => replica.accept(request),
            Self::LockStep(replica) => replica.accept(now, request),
        }
    }

    fn wake(&mut self, now: SimTime, observer: &mut impl Observer) {
        match self {
            Self::Staged(replica) => replica.wake(now, observer),
            Self::LockStep(replica) => replica.wake(now, observer),
        }
    }

    /// Runs the steps that end before `limit`, the oldest in any case; stops early after a completion if
    /// `stop_on_completion`. When the last of them ended, and the requests completed by then.
    fn run(
        &mut self,
        limit: SimTime,
        stop_on_completion: bool,
        observer: &mut impl Observer,
    ) -> (SimTime, &mut Vec<Request>) {
        loop {
            let now = self.end();
            match self {
                Self::Staged(replica) => replica.end_step(now, observer),
                Self::LockStep(replica) => replica.end_step(now, observer),
            }
            if self.end() >= limit || (stop_on_completion && !self.completed().is_empty()) {
                return (now, self.completed());
            }
        }
    }

    /// Completions since the caller last cleared them.
    fn completed(&mut self) -> &mut Vec<Request> {
        match self {
            Self::Staged(replica) => &mut replica.completed,
            Self::LockStep(replica) => &mut replica.completed,
        }
    }

    /// `MAX` while it is idle.
    fn end(&self) -> SimTime {
        match self {
            Self::Staged(replica) => replica.end,
            Self::LockStep(replica) => replica.end,
        }
    }

    fn in_flight(&self) -> u32 {
        match self {
            Self::Staged(replica) => replica.in_flight(),
            Self::LockStep(replica) => replica.in_flight(),
        }
    }
}

struct Run<'a, C, O> {
    client: &'a mut C,
    observer: &'a mut O,
    until: RunUntil,
    nodes: Vec<Node<'a>>,
    router: Router,
    /// For each node, the time before which nothing of it need be known outside.
    due: Least<SimTime>,
    /// Idle replicas that wake at `now`, when everything else of this instant is done.
    waking: VecDeque<u32>,
    now: SimTime,
    /// The node served last, and when.
    served: (SimTime, u32),
    /// Open loop: the request that is sent next. Closed loop: the times at which users send next.
    pending: Option<Request>,
    thinking: EventQueue<()>,
    closed: bool,
    /// Sent and on their way through the front end, which takes all the same time.
    in_front_end: VecDeque<Request>,
    front_end: SimSpan,
    service: Option<(crate::workload::Distribution, Stream)>,
    sent: u64,
    /// Requests sent at the current instant.
    sent_now: (SimTime, u64),
}

impl<'a, C: Client, O: Observer> Run<'a, C, O> {
    fn new(
        system: &'a System,
        nodes: Vec<Node<'a>>,
        client: &'a mut C,
        until: RunUntil,
        seed: u64,
        replication: u32,
        observer: &'a mut O,
    ) -> Self {
        let (front_end, service) = match &system.server {
            Server::Llm(server) => (server.front_end, None),
            Server::Synthetic(server) => {
                let stream = stream(seed, Purpose::Service, replication);
                (SimSpan::ZERO, Some((server.service_time_s.clone(), stream)))
            }
        };
        let routing = stream(seed, Purpose::Routing, replication);
        let closed = client.users().is_some();
        Self {
            client,
            observer,
            until,
            nodes,
            router: Router::new(system.router, system.replicas, routing),
            due: Least::new(system.replicas, SimTime::MAX, SimTime::MAX),
            waking: VecDeque::new(),
            now: SimTime::ZERO,
            served: (SimTime::MAX, 0),
            pending: None,
            thinking: EventQueue::new(),
            closed,
            in_front_end: VecDeque::new(),
            front_end,
            service,
            sent: 0,
            sent_now: (SimTime::ZERO, 0),
        }
    }

    fn go(mut self) -> Result<RunEnd, EngineError> {
        match self.client.users() {
            Some(users) => {
                (0..users).for_each(|user| self.thinking.push(self.client.first_send(user), ()));
            }
            None => self.pending = self.client.next_request(),
        }
        loop {
            let send = self.next_send();
            let arrival = self.next_arrival();
            let outside = send.min(arrival);
            let due = self.due.least().0;
            let inside = if self.waking.is_empty() { due } else { self.now };
            let time = outside.min(inside);
            if !self.until.drain && (time > self.until.time || self.sent >= self.until.requests) {
                return Ok(self.cut_short(time));
            }
            if time == SimTime::MAX {
                return self.finished();
            }
            if time == send {
                self.now = time;
                self.send()?;
            } else if time == arrival {
                self.now = time;
                self.arrive()?;
            } else if time == due {
                self.serve(outside);
            } else {
                self.wake();
            }
        }
    }

    /// Ends a run in which `time` would be next. What the replicas did before the end still counts.
    fn cut_short(&mut self, time: SimTime) -> RunEnd {
        let (end, limit) = if time > self.until.time {
            let end = self.until.time;
            (end, end + SimSpan::from_nanos(1))
        } else {
            (self.now, self.now)
        };
        for node in &mut self.nodes {
            if let Node::Llm { replica, .. } = node {
                replica.run(limit, false, self.observer);
            }
        }
        RunEnd { time: end, sent: self.sent }
    }

    /// Nothing is scheduled before the end of the clock. If anybody is still being served, or would send
    /// if there were time, the clock has run out.
    fn finished(&self) -> Result<RunEnd, EngineError> {
        let would_send = self.pending.is_some() || self.thinking.peek().is_some();
        if would_send && self.sent < self.until.requests && self.until.time == SimTime::MAX {
            return Err(EngineError::ClockExhausted);
        }
        let stuck = self.nodes.iter().any(|node| match node {
            Node::Llm { replica, .. } => replica.in_flight() > 0,
            Node::Stepwise { replica, .. } => replica.in_flight() > 0,
            Node::Synthetic(station) => station.in_flight() > 0,
        });
        if stuck { Err(EngineError::ClockExhausted) } else { Ok(RunEnd { time: self.now, sent: self.sent }) }
    }

    fn next_send(&self) -> SimTime {
        if self.sent >= self.until.requests {
            return SimTime::MAX;
        }
        let send = if self.closed {
            self.thinking.peek().unwrap_or(SimTime::MAX)
        } else {
            self.pending.as_ref().map_or(SimTime::MAX, |request| request.send)
        };
        if self.until.drain && send > self.until.time { SimTime::MAX } else { send }
    }

    fn next_arrival(&self) -> SimTime {
        self.in_front_end.front().map_or(SimTime::MAX, |request| request.send + self.front_end)
    }

    fn send(&mut self) -> Result<(), EngineError> {
        let request = if self.closed {
            self.thinking.pop();
            self.time_passes()?;
            self.client.request_at(self.now)
        } else {
            let next = self.client.next_request();
            match std::mem::replace(&mut self.pending, next) {
                Some(request) => request,
                None => return Ok(()),
            }
        };
        self.sent += 1;
        self.observer.sent(&request);
        self.in_front_end.push_back(request);
        if self.front_end == SimSpan::ZERO { self.arrive() } else { Ok(()) }
    }

    /// Time must pass between two requests of one user, or a run that only time ends never does.
    fn time_passes(&mut self) -> Result<(), EngineError> {
        let (instant, sent) = self.sent_now;
        let sent = if instant == self.now { sent + 1 } else { 1 };
        self.sent_now = (self.now, sent);
        let users = u64::from(self.client.users().unwrap_or(u32::MAX));
        if self.until.requests == u64::MAX && sent > users {
            return Err(EngineError::StandsStill(self.now.as_secs_f64()));
        }
        Ok(())
    }

    /// A request reaches the router.
    fn arrive(&mut self) -> Result<(), EngineError> {
        let now = self.now;
        let Some(request) = self.in_front_end.pop_front() else {
            return Ok(());
        };
        let pick = self.router.pick();
        let outcome = match &mut self.nodes[pick as usize] {
            Node::Llm { replica, wakes } => {
                // A request that was sent because another one has just completed finds the steps of this
                // instant ended up to the replica where that was.
                let ended = self.served.0 == now && pick <= self.served.1;
                let limit = now + SimSpan::from_nanos(u64::from(ended));
                replica.run(limit, false, self.observer);
                debug_assert!(replica.completed.is_empty(), "completed before it was due");
                let outcome = replica.accept(&request);
                if outcome.is_ok() && replica.is_idle() && !*wakes {
                    *wakes = true;
                    self.waking.push_back(pick);
                }
                outcome
            }
            // It is due at the end of each step, so those before `now` have been served.
            Node::Stepwise { replica, wakes } => {
                let outcome = replica.accept(now, &request);
                if outcome.is_ok() && replica.end() == SimTime::MAX && !*wakes {
                    *wakes = true;
                    self.waking.push_back(pick);
                }
                outcome
            }
            Node::Synthetic(station) => {
                let Some((distribution, stream)) = &mut self.service else {
                    return Ok(());
                };
                let seconds = distribution.sample(stream);
                let service =
                    SimSpan::from_secs_f64(seconds).map_err(|_| EngineError::ServiceTime(u64::MAX))?;
                station.accept(now, &request, service, self.observer)
            }
        };
        match outcome {
            Ok(()) => {
                self.router.sent(pick);
                self.note_due(pick);
            }
            Err(reason) => self.reject(&request, reason),
        }
        Ok(())
    }

    fn reject(&mut self, request: &Request, reason: Rejection) {
        self.observer.rejected(self.now, request, reason);
        if self.closed {
            let think = self.client.think_time(request);
            self.thinking.push(self.now + think, ());
        }
    }

    /// Lets the node that is due go on by itself until something else happens, at `outside` or elsewhere.
    fn serve(&mut self, outside: SimTime) {
        let (due, id) = self.due.least();
        let elsewhere = match self.due.runner_up() {
            _ if !self.waking.is_empty() => self.now,
            due => due.unwrap_or(SimTime::MAX),
        };
        let limit = outside.min(elsewhere).min(self.until.time).max(due + SimSpan::from_nanos(1));
        let (ended, completed) = match &mut self.nodes[id as usize] {
            Node::Llm { replica, .. } => {
                (replica.run(limit, self.closed, self.observer), &mut replica.completed)
            }
            Node::Stepwise { replica, .. } => replica.run(limit, self.closed, self.observer),
            Node::Synthetic(station) => {
                (station.run(limit, self.closed, self.observer), &mut station.completed)
            }
        };
        self.now = self.now.max(ended);
        self.served = (self.now, id);
        self.router.completed(id, completed.len() as u32);
        if self.closed {
            for request in completed.iter() {
                let think = self.client.think_time(request);
                self.thinking.push(self.now + think, ());
            }
        }
        completed.clear();
        self.note_due(id);
    }

    fn wake(&mut self) {
        let Some(id) = self.waking.pop_front() else { return };
        match &mut self.nodes[id as usize] {
            Node::Llm { replica, wakes } => {
                *wakes = false;
                replica.wake(self.now, self.observer);
            }
            Node::Stepwise { replica, wakes } => {
                *wakes = false;
                replica.wake(self.now, self.observer);
            }
            Node::Synthetic(_) => {}
        }
        self.note_due(id);
    }

    fn note_due(&mut self, id: u32) {
        let due = match &self.nodes[id as usize] {
            // One alone is never ahead of others or behind them.
            Node::Llm { replica, .. } if self.nodes.len() == 1 => replica.end,
            Node::Llm { replica, .. } => replica.due(),
            // Any step may bring a completion.
            Node::Stepwise { replica, .. } => replica.end(),
            Node::Synthetic(station) => station.end,
        };
        self.due.set(id, due);
    }
}
