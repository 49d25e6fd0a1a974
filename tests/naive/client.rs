//! Who sends the requests.

use knee::units::{SimSpan, SimTime, Tokens};
use knee::workload::Request;

/// What is sent.
#[derive(Clone, Debug)]
pub enum Load {
    /// Whatever happens; in order of `send`, indices from 0.
    Open(Vec<Request>),
    /// Users who send at 0, wait for the answer (a refusal is one), think, and send again.
    Closed {
        users: u32,
        /// Thinking after the answer to request i: entry i, from the start again when they run out.
        think: Vec<SimSpan>,
        /// Prompt tokens, output tokens and class of request i, likewise.
        requests: Vec<(Tokens, Tokens, u16)>,
        /// Requests sent by all users together.
        total: u64,
    },
}

/// A client at work.
pub struct Client {
    front_end: SimSpan,
    /// Sends to come in the order in which they were decided; indices of a closed loop are given later.
    sends: Vec<Send>,
    closed: Option<Closed>,
}

struct Send {
    at: SimTime,
    /// `None` in a closed loop: the request is known when it is sent.
    request: Option<Request>,
}

struct Closed {
    think: Vec<SimSpan>,
    requests: Vec<(Tokens, Tokens, u16)>,
    total: u64,
    sent: u64,
}

impl Client {
    pub fn new(load: Load, front_end: SimSpan) -> Self {
        match load {
            Load::Open(requests) => Self {
                front_end,
                sends: requests.into_iter().map(|r| Send { at: r.send, request: Some(r) }).collect(),
                closed: None,
            },
            Load::Closed { users, think, requests, total } => Self {
                front_end,
                sends: (0..users).map(|_| Send { at: SimTime::ZERO, request: None }).collect(),
                closed: Some(Closed { think, requests, total, sent: 0 }),
            },
        }
    }

    /// When the next request reaches the engine.
    pub fn next_arrival(&self) -> Option<SimTime> {
        if self.closed.as_ref().is_some_and(|closed| closed.sent == closed.total) {
            return None;
        }
        self.sends.iter().map(|send| send.at + self.front_end).min()
    }

    /// The next request that reaches the engine at `now`: of those sent at the same time, the one decided
    /// first. The front end delays all alike, so the order of arrival is the order of sending.
    pub fn take_arrival(&mut self, now: SimTime) -> Option<Request> {
        if self.next_arrival() != Some(now) {
            return None;
        }
        let first = self.sends.iter().position(|send| send.at + self.front_end == now)?;
        let send = self.sends.remove(first);
        send.request.or_else(|| self.closed.as_mut().map(|closed| closed.request(send.at)))
    }

    /// Request `index` was completed or refused at `now`.
    pub fn answered(&mut self, index: u64, now: SimTime) {
        if let Some(closed) = &self.closed {
            let at = now + closed.think[(index % closed.think.len() as u64) as usize];
            self.sends.push(Send { at, request: None });
        }
    }
}

impl Closed {
    fn request(&mut self, send: SimTime) -> Request {
        let index = self.sent;
        self.sent += 1;
        let (input_tokens, output_tokens, class) =
            self.requests[(index % self.requests.len() as u64) as usize];
        Request { index, send, input_tokens, output_tokens, class }
    }
}
