//! One load that was measured, and its simulation.

use std::sync::Arc;

use super::figure::{Answer, Figures};
use super::files::{self, MeasurementError};
use crate::catalog::ProfileValues;
use crate::engine::{
    Client, EngineError, Finished, LlmServer, Observer, Rejection, RunUntil, Server, Step, System, run,
};
use crate::scenario::{MeasuredData, MeasuredPoint, Measurement, Serving};
use crate::units::{SimSpan, SimTime, Tokens};
use crate::workload::{Arrivals, Class, Distribution, Lengths, Request, RequestStream, Slo, Workload};

/// Prompts per user where a concurrency point does not say how many requests were sent.
const REQUESTS_PER_USER: u64 = 10;
/// Requests where a load without users does not say.
const REQUESTS_WITHOUT_USERS: u64 = 1000;
/// Seed of drawn lengths and arrivals: fixed, so that a fit sees the same users throughout.
const SEED: u64 = 1;

/// How requests were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// At recorded times.
    Recorded,
    /// Random arrivals.
    RatePerS(f64),
    AllAtOnce,
    /// A closed loop of so many users. They all start at time 0, as load generators do; those of a
    /// recorded run when they did, one with each of the first requests.
    Users(u32),
}

/// One load that was measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The measurement it belongs to.
    pub measurement: Arc<Measurement>,
    /// What tells it from others of the measurement; empty for a recorded run.
    pub label: String,
    pub load: Load,
    /// Mean tokens of a request.
    pub mean_input_tokens: f64,
    pub mean_output_tokens: f64,
    pub measured: Figures,
    /// Scored, never fitted.
    pub holdout: bool,
    /// In order of sending.
    requests: Arc<[Request]>,
}

/// What a simulated cell came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    pub figures: Figures,
    /// Requests that the deployment refused: they fit neither context nor pool.
    pub refused: usize,
}

/// The cells of measurements, in their order.
///
/// # Errors
/// A file that cannot be read or holds what cannot be.
pub fn cells(measurements: &[Measurement]) -> Result<Vec<Cell>, MeasurementError> {
    let mut all = Vec::new();
    for measurement in measurements {
        let shared = Arc::new(measurement.clone());
        let before = all.len();
        match &measurement.data {
            MeasuredData::Requests { file, client_max_in_flight } => {
                let (requests, answers) = files::requests(file)?;
                all.push(Cell::of_requests(shared, requests, &answers, *client_max_in_flight));
            }
            MeasuredData::Points { file } => {
                all.extend(files::points(file)?.iter().map(|point| Cell::of_point(&shared, point)));
            }
            MeasuredData::Inline(points) => {
                all.extend(points.iter().map(|point| Cell::of_point(&shared, point)));
            }
        }
        if all.len() == before {
            return Err(MeasurementError::NoFigure { name: measurement.name.clone() });
        }
    }
    let is_measured =
        |cell: &Cell| super::Figure::ALL.iter().any(|figure| cell.measured.get(*figure).is_some());
    if let Some(cell) = all.iter().find(|cell| !is_measured(cell)) {
        return Err(MeasurementError::NoFigure { name: cell.name() });
    }
    check_repeated(&all)?;
    Ok(all)
}

/// That no cell is there twice: what was measured once counts once.
///
/// # Errors
/// The first that is there twice.
pub fn check_repeated(cells: &[Cell]) -> Result<(), MeasurementError> {
    for (index, cell) in cells.iter().enumerate() {
        if let Some(first) = cells[..index].iter().find(|other| cell.is_same_as(other)) {
            return Err(MeasurementError::Repeated { first: first.place(), second: cell.place() });
        }
    }
    Ok(())
}

impl Cell {
    fn of_requests(
        measurement: Arc<Measurement>,
        requests: Vec<Request>,
        answers: &[Answer],
        users: Option<u32>,
    ) -> Self {
        let ends = requests.iter().zip(answers).map(|(r, a)| r.send.as_secs_f64() + a.e2e_s);
        let span_s = ends.fold(0.0, f64::max);
        let mean = |tokens: fn(&Request) -> Tokens| {
            requests.iter().map(|request| f64::from(tokens(request))).sum::<f64>() / requests.len() as f64
        };
        Self {
            label: String::new(),
            // Users without a request of their own would have nothing to do.
            load: users.map_or(Load::Recorded, |users| {
                Load::Users(users.min(u32::try_from(requests.len()).unwrap_or(u32::MAX)))
            }),
            mean_input_tokens: mean(|request| request.input_tokens),
            mean_output_tokens: mean(|request| request.output_tokens),
            measured: Figures::of(answers, span_s),
            holdout: measurement.holdout,
            requests: requests.into(),
            measurement,
        }
    }

    fn of_point(measurement: &Arc<Measurement>, point: &MeasuredPoint) -> Self {
        let of = |column: &str| point.get(column).unwrap_or(1.0);
        let (input, output) = (of("input_tokens_mean"), of("output_tokens_mean"));
        // The readers let no point without a load through.
        let (arrival, amount) = point.load().unwrap_or(("all_at_once", 0.0));
        let load = match arrival {
            "closed" => Load::Users(amount as u32),
            "all_at_once" => Load::AllAtOnce,
            _ => Load::RatePerS(amount),
        };
        let arrivals = match arrival {
            "poisson" => Arrivals::Poisson { rate_per_s: amount },
            "gamma" => Arrivals::Gamma { rate_per_s: amount, burstiness: of("burstiness") },
            "constant" => Arrivals::Constant { rate_per_s: amount },
            // Of a closed loop only the lengths are drawn ahead.
            _ => Arrivals::AllAtOnce,
        };
        let default_count = match load {
            Load::Users(users) => REQUESTS_PER_USER * u64::from(users),
            _ => REQUESTS_WITHOUT_USERS,
        };
        let count = point.get("completed").map_or(default_count, |count| count as u64);
        let lengths = |mean: f64, min: &str, max: &str| {
            let (min, max) = (point.get(min).unwrap_or(mean), point.get(max).unwrap_or(mean));
            let scale = drawn_over_nominal(mean, min, max);
            Distribution::Uniform { min: scale * min, max: scale * max }
        };
        let lengths = Lengths::Independent {
            input: lengths(input, "input_tokens_min", "input_tokens_max"),
            output: Some(lengths(output, "output_tokens_min", "output_tokens_max")),
        };
        let mut measured = Figures::default();
        for figure in super::Figure::ALL {
            if let Some(value) = point.get(figure.column()) {
                measured.set(figure, value);
            }
        }
        let load_name = match load {
            Load::Users(users) => format!("{users} users"),
            Load::RatePerS(rate) => format!("{rate} req/s"),
            Load::AllAtOnce | Load::Recorded => "all at once".to_owned(),
        };
        Self {
            measurement: Arc::clone(measurement),
            label: format!("{load_name}, {} in, {} out", libm::rint(input), libm::rint(output)),
            load,
            mean_input_tokens: input,
            mean_output_tokens: output,
            measured,
            holdout: measurement.holdout,
            requests: draw(arrivals, lengths, count).into(),
        }
    }

    /// Its measurement's name, and what tells it from others of it.
    #[must_use]
    pub fn name(&self) -> String {
        let name = &self.measurement.name;
        if self.label.is_empty() { name.clone() } else { format!("{name}: {}", self.label) }
    }

    /// Its name and, of what is in a file, the file.
    fn place(&self) -> String {
        match &self.measurement.data {
            MeasuredData::Requests { file, .. } | MeasuredData::Points { file } => {
                format!("{} ({})", self.name(), file.display())
            }
            MeasuredData::Inline(_) => self.name(),
        }
    }

    /// Whether both are the same figures of the same requests on the same deployment.
    fn is_same_as(&self, other: &Self) -> bool {
        // Deployments are compared as they are written out, and only where all the rest is the same.
        let deployment = |cell: &Self| format!("{:?}", cell.measurement.system);
        self.measured == other.measured
            && self.load == other.load
            && self.requests == other.requests
            && deployment(self) == deployment(other)
    }

    /// The parts of its deployment.
    #[must_use]
    pub fn serving(&self) -> &Serving {
        &self.measurement.serving
    }

    #[must_use]
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Its deployment with other step-time parameters.
    #[must_use]
    pub fn system_with(&self, values: &ProfileValues) -> System {
        let System { replicas, router, server } = &self.measurement.system;
        let Server::Llm(server) = server else { return self.measurement.system.clone() };
        let serving = self.serving();
        let cost = serving.cost(values);
        let front_end = SimSpan::from_secs_f64(values.front_end_s).unwrap_or(SimSpan::ZERO);
        let (pipeline, speculation) = (serving.pipeline(values), serving.speculation(values));
        let server = LlmServer { cost, front_end, pipeline, speculation, ..(**server).clone() };
        System { replicas: *replicas, router: *router, server: Server::Llm(Box::new(server)) }
    }

    /// Simulates it on `system`, as it was measured.
    ///
    /// # Errors
    /// What stops a run: see [`EngineError`].
    pub fn simulate(&self, system: &System) -> Result<Simulated, EngineError> {
        let users = match self.load {
            // Users without a request of their own have nothing to do.
            Load::Users(users) => Some(users.min(u32::try_from(self.requests.len()).unwrap_or(u32::MAX))),
            Load::Recorded | Load::RatePerS(_) | Load::AllAtOnce => None,
        };
        simulate(system, &self.requests, users)
    }

    /// Requests per second that were sent whatever became of them; `None` in a closed loop.
    #[must_use]
    pub fn offered_per_s(&self) -> Option<f64> {
        match self.load {
            Load::Users(_) | Load::AllAtOnce => None,
            Load::RatePerS(rate) => Some(rate),
            Load::Recorded => {
                let last_s = self.requests.last()?.send.as_secs_f64();
                (last_s > 0.0).then(|| (self.requests.len() - 1) as f64 / last_s)
            }
        }
    }

    /// Requests per second that `system` completes of this cell's requests when all of them, and at least
    /// `at_least`, are there from the start.
    ///
    /// # Errors
    /// What stops a run: see [`EngineError`].
    pub fn saturated_per_s(&self, system: &System, at_least: usize) -> Result<Option<f64>, EngineError> {
        let repeats = at_least.div_ceil(self.requests.len().max(1)).max(1);
        let all = std::iter::repeat_n(&self.requests, repeats).flat_map(|requests| requests.iter());
        let at_once = all.enumerate().map(|(index, request)| Request {
            index: index as u64,
            send: SimTime::ZERO,
            ..*request
        });
        let requests: Vec<Request> = at_once.collect();
        Ok(simulate(system, &requests, None)?.figures.get(super::Figure::RequestThroughput))
    }
}

/// Mean of the lengths that were sent over the middle of the range they were drawn from: a few dozen prompts miss
/// it by some per cent, and TTFT with them. 1 within half a token, which is rounding of the bounds.
fn drawn_over_nominal(mean: f64, min: f64, max: f64) -> f64 {
    let middle = f64::midpoint(min, max);
    if (mean - middle).abs() <= 0.5 { 1.0 } else { mean / middle }
}

fn draw(arrivals: Arrivals, lengths: Lengths, count: u64) -> Vec<Request> {
    let class = Class { name: String::new(), share: 1.0, priority: 0, lengths, slo: Slo::default() };
    let workload = Arc::new(Workload { arrivals, classes: vec![class] });
    RequestStream::new(&workload, SEED, 0).take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
}

fn simulate(system: &System, requests: &[Request], users: Option<u32>) -> Result<Simulated, EngineError> {
    let until = RunUntil { requests: requests.len() as u64, time: SimTime::MAX, drain: true };
    let mut client = Replay { requests: requests.iter(), users, starts: requests };
    let mut lives = Lives { answers: Vec::with_capacity(requests.len()), refused: 0 };
    let end = run(system, &mut client, until, SEED, 0, &mut lives)?;
    let figures = Figures::of(&lives.answers, end.time.as_secs_f64());
    Ok(Simulated { figures, refused: lives.refused })
}

/// Sends given requests, at their send times or as a closed loop of `users`.
struct Replay<'a> {
    requests: std::slice::Iter<'a, Request>,
    users: Option<u32>,
    /// The requests, of which the first of each user says when it starts.
    starts: &'a [Request],
}

impl Client for Replay<'_> {
    fn next_request(&mut self) -> Option<Request> {
        self.requests.next().copied()
    }

    fn users(&self) -> Option<u32> {
        self.users
    }

    /// Recorded users start when they did: starting them at once would line up their answers for good.
    fn first_send(&self, user: u32) -> SimTime {
        self.starts.get(user as usize).map_or(SimTime::ZERO, |request| request.send)
    }

    fn request_at(&mut self, send: SimTime) -> Request {
        // The engine asks for no more than `RunUntil::requests`.
        let request = self.requests.next().copied();
        let none = Request { index: 0, send, input_tokens: 1, output_tokens: 1, class: 0 };
        Request { send, ..request.unwrap_or(none) }
    }

    fn think_time(&mut self, _request: &Request) -> SimSpan {
        SimSpan::ZERO
    }
}

/// Keeps what each request came to.
struct Lives {
    answers: Vec<Answer>,
    refused: usize,
}

impl Observer for Lives {
    fn sent(&mut self, _request: &Request) {}
    fn rejected(&mut self, _now: SimTime, _request: &Request, _reason: Rejection) {
        self.refused += 1;
    }
    fn step(&mut self, _replica: u32, _step: &Step<'_>) {}
    fn served(&mut self, _replica: u32, _from: SimTime, _to: SimTime, _busy: u32, _waiting: u32) {}
    fn token_gaps(&mut self, _now: SimTime, _class: u16, _gap: SimSpan, _count: u32) {}
    fn preempted(&mut self, _now: SimTime, _replica: u32, _class: u16) {}
    fn finished(&mut self, _replica: u32, life: &Finished) {
        self.answers.push(Answer {
            ttft_s: life.first_token.since(life.request.send).as_secs_f64(),
            e2e_s: life.done.since(life.request.send).as_secs_f64(),
            output_tokens: life.request.output_tokens,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 819 to 1,024 has 921.5 in its middle; ten prompts that were drawn from it had 900 on average.
    #[test]
    fn lengths_have_the_mean_that_was_sent() {
        assert_eq!(drawn_over_nominal(921.6, 819.0, 1024.0).to_bits(), 1.0_f64.to_bits());
        assert!((drawn_over_nominal(900.0, 819.0, 1024.0) - 900.0 / 921.5).abs() < 1e-12);
    }
}
