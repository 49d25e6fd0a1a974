//! Is one scenario better than another? Paired differences on common random numbers.
//!
//! Replication r of both scenarios draws the same users from the same streams, so most of the noise is
//! in both and leaves their difference. Each difference has its own 95 % interval: of twenty metrics that
//! do not differ, one will on average be called different.

use super::Verdict;
use super::capacity::paired;
use super::estimate::Estimate;
use super::point::{Point, run_point};
use super::precision::{Precision, relative_half_width, wanted};
use crate::engine::EngineError;
use crate::metrics::{Latency, RunMode, RunSummary, latency_of};
use crate::scenario::{Difference, Scenario, Serving};
use crate::workload::{Arrivals, Lengths, Metric};

/// What a paired difference shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The second is better, its interval leaving out no difference.
    Better,
    Worse,
    NoneShown,
}

/// One metric of both.
#[derive(Clone, Debug)]
pub struct Row {
    /// `TTFT p99`.
    pub metric: String,
    /// `ms`, `req/s`.
    pub unit: &'static str,
    pub a: Estimate,
    pub b: Estimate,
    /// Second less first, paired by replication.
    pub difference: Estimate,
    pub change: Change,
}

impl Row {
    /// The difference and its half-width relative to the first's value.
    #[must_use]
    pub fn relative(&self) -> Option<Estimate> {
        let scale = self.a.mean.abs();
        (scale > 0.0).then(|| Estimate {
            mean: self.difference.mean / scale,
            half_width: self.difference.half_width.map(|half_width| half_width / scale),
        })
    }
}

/// Both points and what is shown.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub a: Point,
    pub b: Point,
    pub rows: Vec<Row>,
    /// Why numbers may not be comparable, and what is withheld.
    pub cautions: Vec<String>,
    /// Keys that are not the same in both, for who has both documents ([`crate::scenario::Document::differences`]).
    pub differences: Vec<Difference>,
}

/// Tokens of a word of English text where the model is of the GPT family: OpenAI's rule of thumb, "1
/// token ~= 3/4 words" (help.openai.com, "What are tokens and how to count them?"). gpt-oss has that
/// family's vocabulary of 201,088; for other families nothing as authoritative is published.
const GPT_TOKENS_PER_WORD: f64 = 4.0 / 3.0;
const GPT_VOCABULARY: u32 = 201_088;

/// Runs both scenarios, adds replications to both until every shown latency difference is as precise as
/// asked, if anything was asked, and compares. `tokens_per_word`: of both, where the asker knows them.
///
/// # Errors
/// What stops a run: see [`EngineError`].
pub fn compare(
    a: &Scenario,
    b: &Scenario,
    precision: Option<Precision>,
    tokens_per_word: [Option<f64>; 2],
) -> Result<Comparison, EngineError> {
    let mut replications = a.run.replications.max(b.run.replications);
    loop {
        let at = |scenario: &Scenario| {
            let mut scenario = scenario.clone();
            // A recorded load stays as it is: it has one replication.
            if !matches!(scenario.workload.arrivals, Arrivals::Trace(_)) {
                scenario.run.replications = replications;
            }
            run_point(&scenario)
        };
        let (a, b) = (at(a)?, at(b)?);
        let rows = rows(&a, &b, tokens_per_word);
        let widest = rows.iter().filter_map(Row::relative).map(|difference| {
            relative_half_width(&Estimate { mean: 1.0, half_width: difference.half_width })
        });
        let widest = widest.fold(0.0, f64::max);
        match precision {
            Some(asked) if widest > asked.relative && replications < asked.max_replications => {
                replications = wanted(replications, widest, asked.relative).min(asked.max_replications);
            }
            _ => {
                let mut cautions = cautions(&a, &b, tokens_per_word);
                if let Some(asked) = precision.filter(|asked| widest > asked.relative) {
                    cautions.push(format!(
                        "{replications} replications do not make every difference as precise as {:.1} %",
                        asked.relative * 100.0
                    ));
                }
                return Ok(Comparison { a, b, rows, cautions, differences: Vec::new() });
            }
        }
    }
}

/// A statistic of a latency, in seconds.
type Pick = fn(&Latency) -> f64;

/// A metric: name, unit, whether more is better, and its value in a run.
type Measure<'a> = (String, &'static str, bool, Box<dyn Fn(&Point, &RunSummary) -> Option<f64> + 'a>);

fn rows(a: &Point, b: &Point, tokens_per_word: [Option<f64>; 2]) -> Vec<Row> {
    let mut measures: Vec<Measure> = Vec::new();
    if shows_latency(a) && shows_latency(b) {
        for (metric, name) in [(Metric::Ttft, "TTFT"), (Metric::Tpot, "TPOT"), (Metric::E2e, "E2E")] {
            let statistics: [(&str, Pick); 2] =
                [("mean", |latency| latency.mean_s), ("p99", |latency| latency.p99_s)];
            for (statistic, of) in statistics {
                let value =
                    move |_: &Point, run: &RunSummary| latency_of(&run.all, metric).map(|l| of(l) * 1e3);
                measures.push((format!("{name} {statistic}"), "ms", false, Box::new(value)));
            }
        }
    }
    measures.push(("throughput".to_owned(), "req/s", true, Box::new(|_, run| Some(run.all.completed_per_s))));
    measures.push((
        "output".to_owned(),
        "tok/s",
        true,
        Box::new(|_, run| Some(run.all.output_tokens_per_s).filter(|tokens| *tokens > 0.0)),
    ));
    measures.push(("goodput".to_owned(), "req/s", true, Box::new(|_, run| run.all.good_per_s)));
    measures.push(("cost of output".to_owned(), "$/M tok", false, Box::new(usd_per_million_tokens)));
    let words = words_ratio(a, b, tokens_per_word);
    if let Some([in_a, in_b]) = words {
        // The points are told apart by their address: each has its own tokeniser.
        let per_word = move |point: &Point| if std::ptr::eq(point, a) { in_a } else { in_b };
        measures.push((
            "output in words".to_owned(),
            "words/s",
            true,
            Box::new(move |point, run| {
                Some(run.all.output_tokens_per_s / per_word(point)).filter(|words| *words > 0.0)
            }),
        ));
        measures.push((
            "cost of output in words".to_owned(),
            "$/M words",
            false,
            Box::new(move |point, run| Some(usd_per_million_tokens(point, run)? * per_word(point))),
        ));
    }
    let mut rows: Vec<Row> = measures.iter().filter_map(|measure| row(a, b, measure)).collect();
    if usd_per_hour(a).is_some_and(|usd| usd_per_hour(b) == Some(usd)) {
        // At one price an hour a cost is the price over an output: to test it as well could only contradict.
        for (output, cost) in [("output", "cost of output"), ("output in words", "cost of output in words")] {
            let shown = rows.iter().find(|row| row.metric == output).map(|row| row.change);
            for row in rows.iter_mut().filter(|row| row.metric == cost) {
                row.change = shown.unwrap_or(row.change);
            }
        }
    }
    rows
}

fn row(a: &Point, b: &Point, (metric, unit, more_is_better, value): &Measure) -> Option<Row> {
    let of = |point: &Point| -> Option<Vec<f64>> { point.runs.iter().map(|run| value(point, run)).collect() };
    let (in_a, in_b) = (of(a)?, of(b)?);
    let (difference, shown) = match paired(&in_a, &in_b) {
        Some(paired) => paired,
        None => (Estimate { mean: in_b.first()? - in_a.first()?, half_width: None }, false),
    };
    let change = match (shown, (difference.mean > 0.0) == *more_is_better) {
        (false, _) => Change::NoneShown,
        (true, true) => Change::Better,
        (true, false) => Change::Worse,
    };
    let (a, b) = (Estimate::of(&in_a)?, Estimate::of(&in_b)?);
    Some(Row { metric: metric.clone(), unit, a, b, difference, change })
}

fn usd_per_million_tokens(point: &Point, run: &RunSummary) -> Option<f64> {
    let tokens_per_hour = run.all.output_tokens_per_s * 3600.0;
    let usd_per_hour = usd_per_hour(point)?;
    (tokens_per_hour > 0.0 && usd_per_hour > 0.0).then(|| usd_per_hour / tokens_per_hour * 1e6)
}

/// What the whole deployment costs in an hour; `None` if no price is known.
fn usd_per_hour(point: &Point) -> Option<f64> {
    let (usd_per_gpu_hour, _) = point.scenario.price.as_ref()?;
    Some(usd_per_gpu_hour * f64::from(point.scenario.gpus))
}

/// No steady-state latency is compared where the backlog grows, or may.
fn shows_latency(point: &Point) -> bool {
    point.stability.verdict == Verdict::Stable || point.scenario.run.mode == RunMode::Benchmark
}

/// Tokens per word of both, where the models differ and both are known.
fn words_ratio(a: &Point, b: &Point, given: [Option<f64>; 2]) -> Option<[f64; 2]> {
    if model(a) == model(b) && given == [None, None] {
        return None;
    }
    let known = |point: &Point, given: Option<f64>| {
        let vocabulary = point.scenario.serving.as_ref().map(|serving| serving.model.vocab_size);
        given.or((vocabulary == Some(GPT_VOCABULARY)).then_some(GPT_TOKENS_PER_WORD))
    };
    Some([known(a, given[0])?, known(b, given[1])?])
}

fn model(point: &Point) -> Option<&str> {
    point.scenario.serving.as_ref().map(|serving| serving.model.name.as_str())
}

/// That the step times of both are not equally well founded, or that those of one were fitted on another model. What
/// both have in common is in the head.
fn of_profiles(a: &Scenario, b: &Scenario) -> Option<String> {
    let (a, b) = (a.serving.as_ref()?, b.serving.as_ref()?);
    let elsewhere = |one: &Serving| one.profile.is_fitted_elsewhere(&one.model.name);
    let basis = |one: &Serving| (one.profile.name.clone(), one.foundation(), one.not_fitted());
    if a.standing() == b.standing() && (basis(a) == basis(b) || !(elsewhere(a) || elsewhere(b))) {
        return None;
    }
    let text = |one: &Serving| {
        let parts = one.not_fitted();
        let rest =
            if parts.is_empty() { String::new() } else { format!(", {} not fitted", parts.join(", ")) };
        format!("{} ({}{rest})", one.profile.name, one.foundation())
    };
    Some(format!(
        "different step times: A {}, B {}; the errors of profiles are not in the intervals, and those of two do not \
         cancel",
        text(a),
        text(b)
    ))
}

/// Differences between the scenarios that make their numbers mean different things.
fn cautions(a: &Point, b: &Point, tokens_per_word: [Option<f64>; 2]) -> Vec<String> {
    let mut cautions = Vec::new();
    let (first, second) = (&a.scenario, &b.scenario);
    if model(a) != model(b) {
        let names = format!("{} and {}", model(a).unwrap_or("none"), model(b).unwrap_or("none"));
        cautions.push(match words_ratio(a, b, tokens_per_word) {
            Some([in_a, in_b]) => format!(
                "different models ({names}), whose tokens are different pieces of text; converted at \
                 {in_a:.3} and {in_b:.3} tokens per word"
            ),
            None => format!(
                "different models ({names}), whose tokens are different pieces of text; how many make a word \
                 is not known for both: give --tokens-per-word-a and --tokens-per-word-b"
            ),
        });
    }
    cautions.extend(of_profiles(first, second));
    if first.gpus != second.gpus {
        cautions.push(format!(
            "different scope: {} and {} GPUs; throughput is of the whole deployment",
            first.gpus, second.gpus
        ));
    }
    if first.run.mode != second.run.mode {
        cautions
            .push("one is a steady state and the other a finite benchmark with ramp and drain".to_owned());
    }
    if is_closed(first) != is_closed(second) {
        cautions.push(
            "one is an open loop and the other a closed loop: latencies mean different things".to_owned(),
        );
    }
    if !same_lengths(first, second) {
        cautions.push("classes or lengths differ: latencies and rates are of different requests".to_owned());
    }
    match (first.workload.arrivals.rate_per_s(), second.workload.arrivals.rate_per_s()) {
        (Some(a), Some(b)) if a != b => cautions.push(format!("different loads: {a} and {b} req/s")),
        _ => {}
    }
    if first.seed != second.seed {
        cautions.push("different seeds: the users are not the same, so differences are noisier".to_owned());
    }
    for (name, point) in [("A", a), ("B", b)] {
        if !shows_latency(point) {
            cautions.push(format!(
                "{name} is not shown to be stable: latencies are withheld ({})",
                point.stability.reason
            ));
        }
    }
    cautions
}

fn is_closed(scenario: &Scenario) -> bool {
    matches!(scenario.workload.arrivals, Arrivals::Closed { .. })
}

fn same_lengths(a: &Scenario, b: &Scenario) -> bool {
    let lengths = |scenario: &Scenario| -> Vec<(f64, Lengths)> {
        scenario.workload.classes.iter().map(|class| (class.share, class.lengths.clone())).collect()
    };
    lengths(a) == lengths(b)
}
