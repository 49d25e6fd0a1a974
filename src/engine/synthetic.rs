//! A replica without model or GPU: identical servers behind one queue, first come first served.

use std::collections::VecDeque;

use super::config::SyntheticServer;
use super::observer::{Finished, Observer, Rejection};
use crate::des::EventQueue;
use crate::units::{SimSpan, SimTime};
use crate::workload::Request;

#[derive(Clone, Copy, Debug)]
struct Job {
    request: Request,
    service: SimSpan,
    started: SimTime,
}

/// What queueing theory calls a G/G/c(/K) station.
#[derive(Clone, Debug)]
pub(super) struct Station {
    id: u32,
    servers: u32,
    queue_limit: Option<u32>,
    busy: u32,
    queue: VecDeque<Job>,
    in_service: EventQueue<Job>,
    /// Until when the observer knows the state.
    told: SimTime,
    /// When the next service ends; `MAX` if nobody is served.
    pub end: SimTime,
    /// Completions since the caller last cleared it.
    pub completed: Vec<Request>,
}

impl Station {
    pub fn new(id: u32, server: &SyntheticServer) -> Self {
        Self {
            id,
            servers: server.servers,
            queue_limit: server.queue_limit,
            busy: 0,
            queue: VecDeque::new(),
            in_service: EventQueue::new(),
            told: SimTime::ZERO,
            end: SimTime::MAX,
            completed: Vec::new(),
        }
    }

    pub fn in_flight(&self) -> u32 {
        self.busy + self.queue.len() as u32
    }

    /// Takes in a request that will need `service`, or says why not.
    pub fn accept(
        &mut self,
        now: SimTime,
        request: &Request,
        service: SimSpan,
        observer: &mut impl Observer,
    ) -> Result<(), Rejection> {
        let full = self.queue_limit.is_some_and(|limit| self.queue.len() >= limit as usize);
        if self.busy == self.servers && full {
            return Err(Rejection::QueueFull);
        }
        self.tell(now, observer);
        let job = Job { request: *request, service, started: now };
        if self.busy < self.servers {
            self.serve(job, now);
        } else {
            self.queue.push_back(job);
        }
        Ok(())
    }

    /// Ends the services that end before `limit`, the earliest in any case. Stops after one if
    /// `stop_on_completion`. Returns when the last of them ended.
    pub fn run(&mut self, limit: SimTime, stop_on_completion: bool, observer: &mut impl Observer) -> SimTime {
        let mut now = self.end;
        while let Some((time, job)) = self.in_service.pop() {
            now = time;
            self.tell(now, observer);
            self.busy -= 1;
            self.finish(&job, now, observer);
            if let Some(next) = self.queue.pop_front() {
                self.serve(Job { started: now, ..next }, now);
            }
            self.end = self.in_service.peek().unwrap_or(SimTime::MAX);
            if self.end >= limit || stop_on_completion {
                break;
            }
        }
        now
    }

    fn serve(&mut self, job: Job, now: SimTime) {
        self.busy += 1;
        let end = now + job.service;
        self.in_service.push(end, job);
        self.end = self.end.min(end);
    }

    /// Output tokens, if the class has any, come evenly over the service.
    fn finish(&mut self, job: &Job, now: SimTime, observer: &mut impl Observer) {
        let tokens = job.request.output_tokens;
        let gap = SimSpan::from_nanos(job.service.as_nanos() / u64::from(tokens.max(1)));
        if tokens > 1 {
            observer.token_gaps(now, job.request.class, gap, tokens - 1);
        }
        let first_token = match tokens {
            0 | 1 => now,
            _ => job.started + gap,
        };
        self.completed.push(job.request);
        observer.finished(
            self.id,
            &Finished {
                request: job.request,
                scheduled: job.started,
                first_token,
                done: now,
                preemptions: 0,
            },
        );
    }

    fn tell(&mut self, now: SimTime, observer: &mut impl Observer) {
        if now > self.told {
            observer.served(self.id, self.told, now, self.busy, self.queue.len() as u32);
            self.told = now;
        }
    }
}
