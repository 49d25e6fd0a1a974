//! The next request, lazily.
//!
//! Each purpose (gap, class, input length, output length, pair, think time) has its own random stream, and
//! every request takes one variate of each, whether it is needed or not. So changing a rate or one class's
//! lengths leaves all other draws as they were, and two scenarios compared see the same users.

use std::sync::Arc;

use super::varying::Modulation;
use super::{Arrivals, Lengths, Request, Workload};
use crate::rng::{Purpose, Stream, stream};
use crate::units::{SimSpan, SimTime};

/// Draws the requests of one replication of a workload.
#[derive(Debug)]
pub struct RequestStream {
    workload: Arc<Workload>,
    /// Upper ends of the classes' shares of [0, 1].
    class_ends: Vec<f64>,
    next_index: u64,
    /// Sum of the gaps so far, in units of the mean gap, so that rounding never accumulates.
    standard_time: f64,
    /// Where a Markov-modulated process is.
    modulation: Option<Modulation>,
    gap: Stream,
    class: Stream,
    input: Stream,
    output: Stream,
    pair: Stream,
    think: Stream,
}

impl RequestStream {
    /// Streams for `replication` of `workload` under `seed`.
    #[must_use]
    pub fn new(workload: &Arc<Workload>, seed: u64, replication: u32) -> Self {
        let mut end = 0.0;
        let ends = workload.classes.iter().map(|class| {
            end += class.share;
            end
        });
        let of = |purpose| stream(seed, purpose, replication);
        let modulation = match &workload.arrivals {
            Arrivals::Mmpp(states) => Some(Modulation::new(states, seed, replication)),
            _ => None,
        };
        Self {
            class_ends: ends.collect(),
            workload: Arc::clone(workload),
            next_index: 0,
            standard_time: 0.0,
            modulation,
            gap: of(Purpose::ArrivalGap),
            class: of(Purpose::Class),
            input: of(Purpose::InputLength),
            output: of(Purpose::OutputLength),
            pair: of(Purpose::Pair),
            think: of(Purpose::ThinkTime),
        }
    }

    /// How many users a closed loop has; `None` for an open one.
    #[must_use]
    pub fn closed_users(&self) -> Option<u32> {
        match self.workload.arrivals {
            Arrivals::Closed { users, .. } => Some(users),
            _ => None,
        }
    }

    /// A request sent at `send`: its class and lengths are drawn, its index is the next one.
    #[must_use]
    pub fn draw(&mut self, send: SimTime) -> Request {
        let u = self.class.uniform();
        let last = self.class_ends.len().saturating_sub(1);
        let class = self.class_ends.partition_point(|end| *end <= u).min(last);
        let (input_tokens, output_tokens) = match &self.workload.classes[class].lengths {
            Lengths::Independent { input, output } => {
                let input = input.sample_tokens(&mut self.input);
                let output = match output {
                    Some(output) => output.sample_tokens(&mut self.output),
                    None => skip(&mut self.output),
                };
                skip(&mut self.pair);
                (input, output)
            }
            Lengths::Joint(pairs) => {
                skip(&mut self.input);
                skip(&mut self.output);
                pairs[self.pair.index(pairs.len())]
            }
        };
        let index = self.next_index;
        self.next_index += 1;
        Request { index, send, input_tokens, output_tokens, class: class as u16 }
    }

    /// How long a user of a closed loop thinks before asking again; zero in an open loop.
    #[must_use]
    pub fn think_time(&mut self) -> SimSpan {
        match &self.workload.arrivals {
            Arrivals::Closed { think_time_s, .. } => {
                let seconds = think_time_s.sample(&mut self.think);
                // Longer than the clock runs is for ever, which the engine reports.
                SimSpan::from_secs_f64(seconds).unwrap_or(SimSpan::MAX)
            }
            _ => SimSpan::ZERO,
        }
    }

    /// When the next request of an arrival process of independent gaps is sent: its standard gap has
    /// mean 1.
    fn advance(&mut self, rate_per_s: f64, standard_gap: impl Fn(&mut Stream) -> f64) -> SimTime {
        self.standard_time += standard_gap(&mut self.gap);
        time_at(self.standard_time / rate_per_s)
    }
}

/// Takes the variate that another class would have used; a request without it has no tokens.
fn skip(stream: &mut Stream) -> u32 {
    let _ = stream.uniform();
    0
}

/// The point of time `seconds` after the start; what lies beyond the clock never comes.
fn time_at(seconds: f64) -> SimTime {
    SimSpan::from_secs_f64(seconds).map_or(SimTime::MAX, |span| SimTime::ZERO + span)
}

/// The requests of an open loop, in order of sending. Endless, but for a trace (which ends with its
/// recording) and a closed loop (which has none: its requests are [`RequestStream::draw`]n by answers).
///
/// The first request of an arrival process with a rate comes one gap after the start.
impl Iterator for RequestStream {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let send = match &self.workload.arrivals {
            Arrivals::Poisson { rate_per_s } => {
                let rate = *rate_per_s;
                self.advance(rate, Stream::standard_exponential)
            }
            Arrivals::Gamma { rate_per_s, burstiness } => {
                let (rate, shape) = (*rate_per_s, *burstiness);
                self.advance(rate, |gap| gap.standard_gamma(shape) / shape)
            }
            Arrivals::Weibull { rate_per_s, shape } => {
                let (rate, shape) = (*rate_per_s, *shape);
                // By inversion: scale x E^(1/shape), whose mean is scale x Gamma(1 + 1/shape).
                let mean = libm::tgamma(1.0 + 1.0 / shape);
                self.advance(rate, |gap| libm::pow(gap.standard_exponential(), 1.0 / shape) / mean)
            }
            Arrivals::Mmpp(states) => {
                let modulation = self.modulation.as_mut()?;
                time_at(modulation.advance(states, self.gap.standard_exponential()))
            }
            Arrivals::Profile(profile) => {
                self.standard_time += self.gap.standard_exponential();
                time_at(profile.time_of(self.standard_time)?)
            }
            Arrivals::Constant { rate_per_s } => {
                self.standard_time += 1.0;
                time_at(self.standard_time / rate_per_s)
            }
            Arrivals::AllAtOnce => SimTime::ZERO,
            Arrivals::Closed { .. } => return None,
            Arrivals::Trace(trace) => {
                let request = trace.requests.get(usize::try_from(self.next_index).ok()?)?;
                self.next_index += 1;
                return Some(*request);
            }
        };
        Some(self.draw(send))
    }
}
