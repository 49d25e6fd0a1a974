//! One load: vLLM's result table, then what a load generator cannot see.

use super::{Columns, Look, MAX_WIDTH, Tone, headline, labelled, wrapped};
use crate::engine::Server;
use crate::experiment::{Estimate, Point, SloVerdict, Verdict};
use crate::metrics::Latency;
use crate::report::fold::{self, Part};
use crate::report::format::{self, ABSENT, count, counted, interval, number, percent};
use crate::report::{explain, money, provenance, reading};
use crate::workload::{Arrivals, Metric};

/// Width of vLLM's table; names are padded to [`NAME_WIDTH`].
const WIDTH: usize = 50;
const NAME_WIDTH: usize = 40;

/// The whole answer of a run.
#[must_use]
pub fn run(point: &Point, look: Look) -> String {
    let scenario = &point.scenario;
    let load = match provenance::load(scenario) {
        load if fold::is_finite_batch(point) => load,
        load => format!("{load} ({})", provenance::arrivals(scenario)),
    };
    let mut lines = headline(&[scenario], &load, look);
    lines.push(String::new());
    lines.extend(vllm_table(point));
    lines.push(String::new());
    if point.scenario.workload.classes.len() > 1 || point.slo != SloVerdict::NoObjectives {
        lines.extend(classes(point));
        lines.push(String::new());
    }
    lines.extend(replicas(point));
    lines.push(String::new());
    lines.extend(time_spent(point).into_iter().flat_map(|text| labelled("time went to", &text)));
    lines.extend(step_made_of(point).into_iter().flat_map(|text| labelled("a mean step", &text)));
    lines.extend(labelled("limits", &limits(point)));
    lines.extend(verdict(point, look));
    lines.extend(cost(point, look).into_iter().flat_map(|text| labelled("cost", &text)));
    lines.extend(objectives(point).into_iter().flat_map(|text| labelled("objectives", &text)));
    lines.extend(promises(point).iter().flat_map(|text| labelled("", text)));
    lines.push(String::new());
    let statistics = provenance::statistics(std::slice::from_ref(point), scenario.seed);
    lines.extend(look.paint_all(Tone::Quiet, wrapped(&statistics, MAX_WIDTH)));
    lines.join("\n") + "\n"
}

fn ruled(title: &str, rule: char) -> String {
    let gap = WIDTH.saturating_sub(title.chars().count());
    let left = gap / 2;
    format!("{}{title}{}", rule.to_string().repeat(left), rule.to_string().repeat(gap - left))
}

fn named(name: &str, value: &str) -> String {
    format!("{name:<NAME_WIDTH$} {value}")
}

/// The table that `vllm bench serve` prints, with its names and in its order.
fn vllm_table(point: &Point) -> Vec<String> {
    let mut lines = vec![ruled(" Serving Benchmark Result ", '=')];
    let sum = |value: fn(&crate::metrics::Group) -> u64| count(fold::total(point, |run| value(&run.all)));
    let runs = match point.runs.len() {
        1 => String::new(),
        runs => format!(" in {runs} replications"),
    };
    lines.push(named("Successful requests:", &(sum(|group| group.completed) + &runs)));
    lines.push(named("Failed requests:", &sum(|group| group.rejected)));
    match &point.scenario.workload.arrivals {
        Arrivals::Closed { users, .. } => {
            lines.push(named("Maximum request concurrency:", &count(u64::from(*users))));
        }
        Arrivals::Poisson { rate_per_s }
        | Arrivals::Gamma { rate_per_s, .. }
        | Arrivals::Weibull { rate_per_s, .. }
        | Arrivals::Constant { rate_per_s } => {
            lines.push(named("Request rate configured (RPS):", &format::chosen(*rate_per_s)));
        }
        // No one rate was configured.
        Arrivals::Mmpp(_) | Arrivals::Profile(_) | Arrivals::AllAtOnce | Arrivals::Trace(_) => {}
    }
    let mut rate = |name: &str, value: Option<Estimate>| {
        lines.extend(value.map(|value| named(name, &interval(&value))));
    };
    let all = |value: fn(&crate::metrics::Group) -> f64| {
        fold::group_value(point, Part::All, |group| Some(value(group))).filter(|value| value.mean > 0.0)
    };
    let duration = fold::over_runs(point, |run| Some(run.window.end_s - run.window.start_s));
    rate("Benchmark duration (s):", duration);
    lines.extend(token_totals(point));
    let mut rate = |name: &str, value: Option<Estimate>| {
        lines.extend(value.map(|value| named(name, &interval(&value))));
    };
    rate("Request throughput (req/s):", all(|group| group.completed_per_s));
    rate("Request goodput (req/s):", fold::group_value(point, Part::All, |group| group.good_per_s));
    rate("Output token throughput (tok/s):", all(|group| group.output_tokens_per_s));
    rate(
        "Total token throughput (tok/s):",
        all(|group| group.input_tokens_per_s + group.output_tokens_per_s),
    );
    for (metric, name, title) in [
        (Metric::Ttft, "TTFT", "Time to First Token"),
        (Metric::Tpot, "TPOT", "Time per Output Token (excl. 1st token)"),
        (Metric::Itl, "ITL", "Inter-token Latency"),
        (Metric::E2e, "E2EL", "End-to-end Latency"),
    ] {
        lines.extend(latency_block(point, metric, name, title));
    }
    lines.push("=".repeat(WIDTH));
    lines.extend(reading::refusals(std::slice::from_ref(point)));
    if !fold::shows_latency(point) {
        let why = match point.stability.verdict {
            Verdict::Undecided => {
                "Latencies are withheld: whether the system keeps up is undecided; longer runs may tell."
            }
            _ => {
                "Latencies are withheld: in a system that does not keep up they are only the length of the run."
            }
        };
        lines.push(why.into());
    }
    lines
}

fn token_totals(point: &Point) -> Vec<String> {
    let input = fold::total(point, |run| run.all.input_tokens);
    let output = fold::total(point, |run| run.all.output_tokens);
    if output == 0 {
        return Vec::new();
    }
    vec![named("Total input tokens:", &count(input)), named("Total generated tokens:", &count(output))]
}

fn latency_block(point: &Point, metric: Metric, name: &str, title: &str) -> Vec<String> {
    type Pick = fn(&Latency) -> f64;
    let statistics: [(&str, Pick); 3] = [
        ("Mean", |latency| latency.mean_s),
        ("Median", |latency| latency.p50_s),
        ("P99", |latency| latency.p99_s),
    ];
    let mut lines = Vec::new();
    for (statistic, pick) in statistics {
        if let Some(value) = fold::latency(point, Part::All, metric, pick) {
            lines.push(named(&format!("{statistic} {name} (ms):"), &interval(&format::in_ms(&value))));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, ruled(title, '-'));
    }
    lines
}

fn text(value: Option<Estimate>, text: impl Fn(&Estimate) -> String) -> String {
    value.as_ref().map_or(ABSENT.to_owned(), text)
}

fn classes(point: &Point) -> Vec<String> {
    let streams = fold::has_metric(point, Metric::Ttft);
    let shown: &[Metric] = if streams { &[Metric::Ttft, Metric::Tpot, Metric::E2e] } else { &[Metric::E2e] };
    let mut header: Vec<String> =
        ["class", "completed\nreq/s", "goodput\nreq/s", "good\n%"].map(String::from).to_vec();
    header.extend(shown.iter().map(|metric| format!("{} p99\nms", reading::metric_name(*metric))));
    let mut table = Columns::new(&header, 1);
    for (index, class) in point.scenario.workload.classes.iter().enumerate() {
        let part = Part::Class(index);
        let value = |pick: fn(&crate::metrics::Group) -> Option<f64>| fold::group_value(point, part, pick);
        let mut row = vec![
            class.name.clone(),
            text(value(|group| Some(group.completed_per_s)), interval),
            text(value(|group| group.good_per_s), interval),
            text(value(|group| group.good_fraction), |share| percent(share.mean)),
        ];
        row.extend(shown.iter().map(|metric| {
            let p99 = fold::latency(point, part, *metric, |latency| latency.p99_s);
            text(p99.map(|value| format::in_ms(&value)), interval)
        }));
        table.row(&row);
    }
    table.lines()
}

fn replicas(point: &Point) -> Vec<String> {
    let llm = matches!(point.scenario.system.server, Server::Llm(_));
    let mut header: Vec<String> =
        ["replica", "completed", "busy\n%", "running", "waiting"].map(String::from).to_vec();
    if llm {
        header.extend(
            ["KV mean\n%", "KV max\n%", "preemptions", "steps", "tokens\nper step"].map(String::from),
        );
    }
    let mut table = Columns::new(&header, 1);
    for replica in 0..point.scenario.system.replicas as usize {
        let mean = |pick: fn(&crate::metrics::ReplicaSummary) -> f64| {
            fold::over_runs(point, |run| run.replicas.get(replica).map(pick))
        };
        let sum = |pick: fn(&crate::metrics::ReplicaSummary) -> u64| {
            count(fold::total(point, |run| run.replicas.get(replica).map_or(0, pick)))
        };
        let share = |value: Option<Estimate>| text(value, |share| percent(share.mean));
        let mut row = vec![
            replica.to_string(),
            sum(|replica| replica.completed),
            share(mean(|replica| replica.busy)),
            text(mean(|replica| replica.running), format::mean),
            text(mean(|replica| replica.waiting), format::mean),
        ];
        if llm {
            row.push(share(mean(|replica| replica.kv_use)));
            row.push(share(mean(|replica| replica.kv_use_max)));
            row.push(sum(|replica| replica.preemptions));
            row.push(sum(|replica| replica.steps));
            row.push(text(mean(|replica| f64::from(replica.mean_step.tokens)), format::mean));
        }
        table.row(&row);
    }
    table.lines()
}

/// Mean end-to-end time split into queue, prefill and decode.
fn time_spent(point: &Point) -> Option<String> {
    let mean =
        |metric| fold::latency(point, Part::All, metric, |latency| latency.mean_s).map(|value| value.mean);
    let (queue, end_to_end) = (mean(Metric::Queue)?, mean(Metric::E2e)?);
    if end_to_end <= 0.0 {
        return None;
    }
    let synthetic = point.scenario.serving.is_none();
    let part = |name: &str, seconds: f64| {
        format!("{name} {} ({} %)", format::latency(seconds.max(0.0)), percent(seconds.max(0.0) / end_to_end))
    };
    Some(match mean(Metric::Ttft) {
        Some(first) if !synthetic => {
            [part("queue", queue), part("prefill", first - queue), part("decode", end_to_end - first)]
                .join(", ")
        }
        _ => [part("queue", queue), part("service", end_to_end - queue)].join(", "),
    })
}

/// What a step of the run's average content spends its time on.
fn step_made_of(point: &Point) -> Option<String> {
    let (shape, terms) = explain::mean_step(point)?;
    let parts: Vec<String> = explain::shares(&terms)
        .into_iter()
        .filter(|(_, share)| *share >= 0.01)
        .map(|(name, share)| format!("{name} {:.0} %", share * 100.0))
        .collect();
    let content =
        format!("{} sequences, {} tokens", count(u64::from(shape.sequences)), count(u64::from(shape.tokens)));
    Some(format!("{content}, {}: {}", format::latency(terms.total_s()), parts.join(", ")))
}

/// How near the run is to each limit of the engine.
fn limits(point: &Point) -> String {
    let busy = fold::replica_mean(point, |replica| replica.busy);
    let busy = text(busy, |share| format!("busy {} % of the time", percent(share.mean)));
    let Server::Llm(server) = &point.scenario.system.server else {
        return busy;
    };
    let running = fold::replica_mean(point, |replica| replica.running).map_or(0.0, |value| value.mean);
    let tokens = fold::replica_mean(point, |replica| f64::from(replica.mean_step.tokens))
        .map_or(0.0, |value| value.mean);
    let kv = fold::replica_mean(point, |replica| replica.kv_use_max).map_or(0.0, |value| value.mean);
    format!(
        "{busy}; {} of {} sequence slots; {} of {} budget tokens a step; KV at most {} %",
        number(running),
        count(u64::from(server.total_seqs())),
        number(tokens),
        count(u64::from(server.batcher.max_num_batched_tokens) * u64::from(server.ranks())),
        percent(kv),
    )
}

fn verdict(point: &Point, look: Look) -> Vec<String> {
    let tone = match point.stability.verdict {
        Verdict::Stable => Tone::Good,
        Verdict::Unstable => Tone::Bad,
        Verdict::Undecided => Tone::Plain,
    };
    // A finite batch is no third verdict between stable and unstable: the reason alone says what it is.
    let text = if fold::is_finite_batch(point) {
        point.stability.reason.clone()
    } else {
        format!("{}: {}", reading::state(point), point.stability.reason)
    };
    look.paint_all(tone, labelled("stability", &text)).collect()
}

fn objectives(point: &Point) -> Option<String> {
    match &point.slo {
        SloVerdict::NoObjectives => None,
        SloVerdict::Met if point.runs.len() == 1 => {
            Some("met in this run; one replication, no confidence claimed".to_owned())
        }
        SloVerdict::Met => Some("met, with confidence".to_owned()),
        SloVerdict::Missed { binding } => Some(format!("missed: {binding}")),
        SloVerdict::Unclear { binding } => {
            let margins = point.margins();
            let bound =
                margins.iter().any(|margin| margin.objective == *binding && margin.ratio.upper() > 1.0);
            let why = if bound { " passes, its confidence bound does not" } else { "" };
            Some(format!("not shown to hold: {binding}{why}"))
        }
        SloVerdict::Unstable => Some("cannot hold: the system does not keep up".to_owned()),
    }
}

/// What a finite batch takes as a whole, and a million of its output tokens.
fn cost(point: &Point, look: Look) -> Option<String> {
    let job = money::job(point)?;
    let gpus = point.scenario.gpus;
    if gpus == 0 {
        return None;
    }
    let mut text = format!(
        "{} s on {}: {} GPU-hours",
        interval(&job.makespan_s),
        counted(u64::from(gpus), "GPU"),
        interval(&job.gpu_hours)
    );
    let economics = money::economics(point)?;
    match (job.usd, economics.usd_per_million_output_tokens, economics.price) {
        (Some(job), Some(tokens), Some(price)) => {
            text += &format!(
                ", {} for the job; {} per M output tokens ({})",
                money::usd(&job),
                money::usd(&tokens),
                price.in_words(look.today)
            );
        }
        _ => text += "; no price known: set cost.gpu_hour_usd",
    }
    Some(text)
}

/// What was promised to each class.
fn promises(point: &Point) -> Vec<String> {
    let classes = point.scenario.workload.classes.iter();
    let promised = classes.filter(|class| !class.slo.objectives.is_empty());
    promised
        .map(|class| {
            let objectives = class.slo.objectives.iter();
            let texts: Vec<String> =
                objectives.map(|objective| reading::objective(objective, class.slo.attainment)).collect();
            format!("{}: {}", class.name, texts.join(", "))
        })
        .collect()
}
