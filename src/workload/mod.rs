//! What users ask of the system: when requests are sent, how long they are, and what was promised.
//!
//! [`Workload`] describes a load; [`RequestStream`] draws it, one request at a time. Recorded loads are
//! read by [`trace`]. Nothing here touches a file: callers hand in text.

mod distribution;
mod lengths;
mod slo;
mod stream;
pub mod trace;
mod varying;

use std::sync::Arc;

use crate::units::{SimTime, Tokens};

pub use distribution::{Distribution, LognormalError, MAX_P99_OVER_MEAN};
pub use lengths::{Lengths, parse_pairs, parse_quantiles};
pub use slo::{Metric, Objective, Slo, Statistic};
pub use stream::RequestStream;
pub use trace::{Trace, TraceError, TraceFormat};
pub use varying::{Interpolation, MmppState, RateProfile, mmpp_rate_per_s};

/// One request, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Position in the order of sending, from 0.
    pub index: u64,
    /// When the client sends it.
    pub send: SimTime,
    /// Prompt tokens, at least 1.
    pub input_tokens: Tokens,
    /// Tokens it will generate, at least 1 (0 only on a synthetic server that emits none).
    pub output_tokens: Tokens,
    /// Index into [`Workload::classes`].
    pub class: u16,
}

/// A load: arrivals and the classes that arrive.
#[derive(Clone, Debug)]
pub struct Workload {
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// Who sends them; never empty; shares add up to 1.
    pub classes: Vec<Class>,
}

/// When requests are sent.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Independent users: exponential gaps.
    Poisson { rate_per_s: f64 },
    /// Gamma-distributed gaps; squared coefficient of variation = 1/`burstiness` (vLLM's knob).
    Gamma { rate_per_s: f64, burstiness: f64 },
    /// Weibull-distributed gaps; `shape` below 1 is burstier than independent users, above 1 more regular.
    Weibull { rate_per_s: f64, shape: f64 },
    /// Equal gaps.
    Constant { rate_per_s: f64 },
    /// A Poisson process whose rate jumps between states, visited in turn (Markov-modulated); some state
    /// has a rate.
    Mmpp(Arc<[MmppState]>),
    /// A Poisson process whose rate is a given function of time: a daily curve, a ramp.
    Profile(Arc<RateProfile>),
    /// `users` who each wait for their answer, think, and ask again; all start at time 0.
    Closed { users: u32, think_time_s: Distribution },
    /// Every request at time 0.
    AllAtOnce,
    /// Recorded arrivals and lengths; its classes are the workload's, in the same order.
    Trace(Arc<Trace>),
}

impl Arrivals {
    /// Requests per second offered, where the arrivals alone decide it and it is the same at all times
    /// (on average, where it is random). A [`RateProfile`] has none: whether a system keeps up with its
    /// mean says nothing about its peak.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Poisson { rate_per_s }
            | Self::Gamma { rate_per_s, .. }
            | Self::Weibull { rate_per_s, .. }
            | Self::Constant { rate_per_s } => Some(*rate_per_s),
            Self::Mmpp(states) => Some(mmpp_rate_per_s(states)),
            Self::Profile(_) | Self::Closed { .. } | Self::AllAtOnce | Self::Trace(_) => None,
        }
    }

    /// Requests per second offered on average over time, also where the rate varies: how much work a
    /// span of time brings.
    #[must_use]
    pub fn mean_rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Profile(profile) => Some(profile.mean_per_s()),
            _ => self.rate_per_s(),
        }
    }
}

/// A group of requests with the same lengths and the same promises.
#[derive(Clone, Debug)]
pub struct Class {
    pub name: String,
    /// Fraction of the requests.
    pub share: f64,
    /// Smaller is served first under `scheduling_policy = "priority"`.
    pub priority: i32,
    pub lengths: Lengths,
    pub slo: Slo,
}
