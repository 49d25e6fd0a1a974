//! One run: clients send, the router sends on, replicas serve, until there is nothing left to ask.

use std::collections::VecDeque;

use super::config::{Server, System};
use super::observer::{Observer, Rejection};
use super::replica::Replica;
use super::router::Router;
use super::staged::StagedReplica;
use super::synthetic::Station;
use crate::des::{EventQueue, Rank};
use crate::rng::{Purpose, Stream, keyed, stream};
use crate::units::{SimSpan, SimTime};
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
    #[error("simulated time ran past the clock's 584 years; a rate or a step time is out of all proportion")]
    ClockExhausted,
    #[error(
        "a user's whole cycle takes no time at {0} s: give think_time_s, a service time above 0, or run.requests"
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
    Run::new(system, client, until, seed, replication, observer).go()
}

#[derive(Clone, Copy, Debug)]
enum Event {
    End(u32),
    Wake(u32),
}

#[derive(Debug)]
enum Node<'a> {
    Llm { replica: Box<Replica<'a>>, wakes: bool },
    Staged { replica: Box<StagedReplica<'a>>, wakes: bool },
    Synthetic(Box<Station>),
}

impl Node<'_> {
    fn end(&self) -> SimTime {
        match self {
            Self::Llm { replica, .. } => replica.end,
            Self::Staged { replica, .. } => replica.end,
            Self::Synthetic(station) => station.end,
        }
    }
}

struct Run<'a, C, O> {
    client: &'a mut C,
    observer: &'a mut O,
    until: RunUntil,
    nodes: Vec<Node<'a>>,
    router: Router,
    events: EventQueue<Event>,
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
        client: &'a mut C,
        until: RunUntil,
        seed: u64,
        replication: u32,
        observer: &'a mut O,
    ) -> Self {
        let acceptance = keyed(seed, Purpose::Acceptance, replication);
        let nodes = (0..system.replicas)
            .map(|id| match &system.server {
                Server::Llm(server) if server.pipeline.is_some() || server.speculation.is_some() => {
                    let replica = Box::new(StagedReplica::new(id, server, acceptance));
                    Node::Staged { replica, wakes: false }
                }
                Server::Llm(server) => {
                    Node::Llm { replica: Box::new(Replica::new(id, server)), wakes: false }
                }
                Server::Synthetic(server) => Node::Synthetic(Box::new(Station::new(id, server))),
            })
            .collect();
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
            events: EventQueue::new(),
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
            Some(users) => (0..users)
                .for_each(|user| self.thinking.push(self.client.first_send(user), Rank::Arrival, ())),
            None => self.pending = self.client.next_request(),
        }
        let mut now = SimTime::ZERO;
        loop {
            let send = self.next_send();
            let arrival = self.next_arrival();
            let event = self.events.peek().map_or(SimTime::MAX, |(time, _)| time);
            let time = send.min(arrival).min(event);
            if !self.until.drain && (time > self.until.time || self.sent >= self.until.requests) {
                let end = if time > self.until.time { self.until.time } else { now };
                return Ok(RunEnd { time: end, sent: self.sent });
            }
            if time == SimTime::MAX {
                return self.finished(now);
            }
            now = if time == send {
                self.send(time)?;
                time
            } else if time == arrival {
                self.arrive(time)?;
                time
            } else {
                self.event(send.min(arrival))
            };
        }
    }

    /// Nothing is scheduled before the end of the clock. If anybody is still being served, or would send
    /// if there were time, the clock has run out.
    fn finished(&self, now: SimTime) -> Result<RunEnd, EngineError> {
        let would_send = self.pending.is_some() || self.thinking.peek().is_some();
        if would_send && self.sent < self.until.requests && self.until.time == SimTime::MAX {
            return Err(EngineError::ClockExhausted);
        }
        let stuck = self.nodes.iter().any(|node| match node {
            Node::Llm { replica, .. } => replica.in_flight() > 0,
            Node::Staged { replica, .. } => replica.in_flight() > 0,
            Node::Synthetic(station) => station.in_flight() > 0,
        });
        if stuck { Err(EngineError::ClockExhausted) } else { Ok(RunEnd { time: now, sent: self.sent }) }
    }

    fn next_send(&self) -> SimTime {
        if self.sent >= self.until.requests {
            return SimTime::MAX;
        }
        let send = if self.closed {
            self.thinking.peek().map_or(SimTime::MAX, |(time, _)| time)
        } else {
            self.pending.as_ref().map_or(SimTime::MAX, |request| request.send)
        };
        if self.until.drain && send > self.until.time { SimTime::MAX } else { send }
    }

    fn next_arrival(&self) -> SimTime {
        self.in_front_end.front().map_or(SimTime::MAX, |request| request.send + self.front_end)
    }

    fn send(&mut self, now: SimTime) -> Result<(), EngineError> {
        let request = if self.closed {
            self.thinking.pop();
            self.time_passes(now)?;
            self.client.request_at(now)
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
        if self.front_end == SimSpan::ZERO { self.arrive(now) } else { Ok(()) }
    }

    /// Time must pass between two requests of one user, or a run that only time ends never does.
    fn time_passes(&mut self, now: SimTime) -> Result<(), EngineError> {
        let (instant, sent) = self.sent_now;
        let sent = if instant == now { sent + 1 } else { 1 };
        self.sent_now = (now, sent);
        let users = u64::from(self.client.users().unwrap_or(u32::MAX));
        if self.until.requests == u64::MAX && sent > users {
            return Err(EngineError::StandsStill(now.as_secs_f64()));
        }
        Ok(())
    }

    /// A request reaches the router.
    fn arrive(&mut self, now: SimTime) -> Result<(), EngineError> {
        let Some(request) = self.in_front_end.pop_front() else {
            return Ok(());
        };
        let pick = self.router.pick();
        let outcome = match &mut self.nodes[pick as usize] {
            Node::Llm { replica, wakes } => {
                let outcome = replica.accept(&request);
                if outcome.is_ok() && replica.is_idle() && !*wakes {
                    *wakes = true;
                    self.events.push(now, Rank::Wake, Event::Wake(pick));
                }
                outcome
            }
            Node::Staged { replica, wakes } => {
                let outcome = replica.accept(&request);
                if outcome.is_ok() && replica.is_idle() && !*wakes {
                    *wakes = true;
                    self.events.push(now, Rank::Wake, Event::Wake(pick));
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
                let before = station.end;
                let outcome = station.accept(now, &request, service, self.observer);
                if station.end < before {
                    self.events.push(station.end, Rank::End, Event::End(pick));
                }
                outcome
            }
        };
        match outcome {
            Ok(()) => self.router.sent(pick),
            Err(reason) => self.reject(now, &request, reason),
        }
        Ok(())
    }

    fn reject(&mut self, now: SimTime, request: &Request, reason: Rejection) {
        self.observer.rejected(now, request, reason);
        if self.closed {
            let think = self.client.think_time(request);
            self.thinking.push(now + think, Rank::Arrival, ());
        }
    }

    /// Takes the earliest event; a replica goes on by itself until something else happens. Returns the
    /// time to which it got.
    fn event(&mut self, next_outside: SimTime) -> SimTime {
        let Some((time, event)) = self.events.pop() else {
            return SimTime::ZERO;
        };
        match event {
            Event::Wake(id) => {
                match &mut self.nodes[id as usize] {
                    Node::Llm { replica, wakes } => {
                        *wakes = false;
                        replica.wake(time, self.observer);
                    }
                    Node::Staged { replica, wakes } => {
                        *wakes = false;
                        replica.wake(time, self.observer);
                    }
                    Node::Synthetic(_) => return time,
                }
                let end = self.nodes[id as usize].end();
                self.schedule_end(id, end);
                time
            }
            // A synthetic server's next end may have moved forward since; that event came first.
            Event::End(id) if self.nodes[id as usize].end() != time => time,
            Event::End(id) => {
                let next_event = self.events.peek().map_or(SimTime::MAX, |(time, _)| time);
                let horizon = next_outside.min(next_event).min(self.until.time);
                let now = match &mut self.nodes[id as usize] {
                    Node::Llm { replica, .. } => replica.run(horizon, self.closed, self.observer),
                    Node::Staged { replica, .. } => replica.run(horizon, self.closed, self.observer),
                    Node::Synthetic(station) => station.run(horizon, self.closed, self.observer),
                };
                self.completions(id, now);
                let end = self.nodes[id as usize].end();
                self.schedule_end(id, end);
                now
            }
        }
    }

    fn schedule_end(&mut self, id: u32, end: SimTime) {
        if end < SimTime::MAX {
            self.events.push(end, Rank::End, Event::End(id));
        }
    }

    fn completions(&mut self, id: u32, now: SimTime) {
        let completed = match &mut self.nodes[id as usize] {
            Node::Llm { replica, .. } => &mut replica.completed,
            Node::Staged { replica, .. } => &mut replica.completed,
            Node::Synthetic(station) => &mut station.completed,
        };
        self.router.completed(id, completed.len() as u32);
        if self.closed {
            for request in completed.iter() {
                let think = self.client.think_time(request);
                self.thinking.push(now + think, Rank::Arrival, ());
            }
        }
        completed.clear();
    }
}
