//! The plan for people: a ranked table a model, then why, what it costs, and what it rests on.

use std::collections::{BTreeMap, BTreeSet};

use super::{View, words};
use crate::experiment::plan::{Economics, Misfit, Outcome, Plan, Row};
use crate::report::format::{ABSENT, count, number};
use crate::report::table::{Columns, Look, MAX_WIDTH, Tone, labelled, wrapped};

/// The plan as text.
#[must_use]
pub fn table(plan: &Plan, look: Look) -> String {
    let mut lines = Vec::new();
    if let Some(template) = &plan.template {
        let text = format!("ASSUMED, because nothing was said: {}", template.in_words());
        lines.extend(look.paint_all(Tone::Strong, wrapped(&text, MAX_WIDTH)));
    }
    lines.extend(labelled("demand", &words::demand(plan)));
    let mut models: Vec<&str> = Vec::new();
    for row in &plan.rows {
        if !models.contains(&row.candidate.model.as_str()) {
            models.push(&row.candidate.model);
        }
    }
    for model in models {
        let rows: Vec<&Row> = plan.rows.iter().filter(|row| row.candidate.model == model).collect();
        lines.push(String::new());
        lines.push(look.paint(Tone::Strong, model));
        lines.extend(of_model(plan, &rows, look));
    }
    lines.push(String::new());
    lines.extend(footnotes(plan, look.today));
    lines.join("\n") + "\n"
}

fn of_model(plan: &Plan, rows: &[&Row], look: Look) -> Vec<String> {
    let mut lines = Vec::new();
    let sized: Vec<&&Row> = rows.iter().filter(|row| row.gpus().is_some()).collect();
    if !sized.is_empty() {
        let header = if plan.job.is_some() { JOB_HEADER.as_slice() } else { HEADER.as_slice() };
        let header: Vec<String> = header.iter().map(|text| (*text).to_owned()).collect();
        let mut columns = Columns::new(&header, 1);
        for row in &sized {
            columns.row(&cells(row));
        }
        lines.extend(columns.lines());
    }
    if let Some(best) = sized.first() {
        let text = match &best.outcome {
            Outcome::Job(fleet) => words::job(best, fleet),
            _ => View::of(best).map_or(String::new(), |view| words::why(best, &view)),
        };
        lines.extend(look.paint_all(Tone::Strong, labelled("cheapest", &text)));
        if let Some(economics) = Economics::of(best) {
            lines.extend(labelled("", &words::economics(plan, best, &economics)));
        }
    }
    for row in rows {
        if let Outcome::Never(reason) = &row.outcome {
            let text = format!("{}: {reason}", words::configuration(row));
            lines.extend(labelled("not met", &text));
        }
    }
    lines
}

const HEADER: [&str; 13] = [
    "\nconfiguration",
    "\nreplicas",
    "\nGPUs",
    "GPUs\nN+1",
    "TTFT ms\np99",
    "TPOT ms\np99",
    "E2E s\np50",
    "head-\nroom %",
    "\n$/h",
    "\n$/month",
    "$/M\ninput",
    "$/M\noutput",
    "$/M\ntotal",
];

const JOB_HEADER: [&str; 8] = [
    "\nconfiguration",
    "\nreplicas",
    "\nGPUs",
    "\nhours",
    "GPU-\nhours",
    "$ of\nthe job",
    "$/M\noutput",
    "$/M\ntotal",
];

fn cells(row: &Row) -> Vec<String> {
    let name = format!("{}{}", words::configuration(row), if row.pareto { " *" } else { "" });
    let economics = Economics::of(row);
    let usd = economics.and_then(|economics| economics.usd);
    let or_absent = |value: Option<f64>| value.map_or(ABSENT.to_owned(), number);
    if let Outcome::Job(fleet) = &row.outcome {
        return vec![
            name,
            fleet.replicas.to_string(),
            fleet.gpus.to_string(),
            number(fleet.hours),
            number(fleet.hours * f64::from(fleet.gpus)),
            or_absent(row.usd()),
            or_absent(usd.map(|usd| usd.per_million_output_tokens)),
            or_absent(usd.map(|usd| usd.per_million_tokens)),
        ];
    }
    let Some(view) = View::of(row) else {
        return vec![name];
    };
    let ms = |seconds: Option<f64>| or_absent(seconds.map(|seconds| seconds * 1e3));
    vec![
        name,
        view.fleet.replicas.to_string(),
        view.fleet.gpus.to_string(),
        view.gpus_n_plus_one().to_string(),
        ms(view.ttft_p99_s),
        ms(view.tpot_p99_s),
        or_absent(view.e2e_p50_s),
        words::headroom(&view),
        usd.map_or(ABSENT.to_owned(), |usd| format!("{:.2}", usd.per_hour)),
        usd.map_or(ABSENT.to_owned(), |usd| count(libm::rint(usd.per_month) as u64)),
        or_absent(usd.map(|usd| usd.per_million_input_tokens)),
        or_absent(usd.map(|usd| usd.per_million_output_tokens)),
        or_absent(usd.map(|usd| usd.per_million_tokens)),
    ]
}

fn footnotes(plan: &Plan, today: Option<(u32, u32)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (position, other) in plan.other_lengths.iter().enumerate() {
        let label = if position == 0 { "other lengths" } else { "" };
        lines.extend(labelled(label, &words::other_lengths(other)));
    }
    for (position, of) in plan.profile_errors.iter().enumerate() {
        let label = if position == 0 { "profile error" } else { "" };
        lines.extend(labelled(label, &words::profile_error(of)));
    }
    for (label, text) in misfits(&plan.misfits) {
        lines.extend(labelled(&label, &text));
    }
    let prices: BTreeSet<String> = plan
        .rows
        .iter()
        .filter_map(|row| Some(words::price(&row.candidate.gpu, row.price.as_ref()?, today)))
        .collect();
    if !prices.is_empty() {
        let text = prices.into_iter().collect::<Vec<_>>().join("; ");
        lines.extend(labelled("prices", &(text + "; see calibration/prices.toml for their sources")));
    }
    let Some(first) = plan.rows.first() else {
        return lines;
    };
    if plan.job.is_none() {
        lines.extend(labelled("N+1", N_PLUS_ONE));
        lines.extend(labelled("columns", COLUMNS));
    }
    let statistics = if plan.job.is_none() { STATISTICS } else { JOB_STATISTICS };
    lines.extend(labelled("statistics", &format!("{statistics}. {ERROR}; seed {}", first.scenario.seed)));
    lines
}

const N_PLUS_ONE: &str = "with one replica more than needed, the objectives hold while one is lost, for as long as its \
restart takes: modelled as the rest carrying the whole peak. Requests in flight at the loss and their retries are not \
modelled";
const COLUMNS: &str = "* no configuration of this model is both cheaper and faster; headroom: how far the peak may grow \
before the fleet saturates (objectives fail earlier); each $/M carries the whole cost at the mean rate, objectives met";
const STATISTICS: &str = "5 replications a fleet, 15 where a bound does not hold at first; a fleet counts only if the \
95 % bound of every objective holds and the rate is below the lower bound of its saturated throughput";
const JOB_STATISTICS: &str = "5 replications of a saturated replica; fleets are sized by the 95 % lower bound of its \
throughput, hours are by its mean, without ramp and drain";
const ERROR: &str = "The error of the step-time profiles is not in these bounds";

/// Candidates that cannot run, those of one model on one GPU with the same reason together.
fn misfits(misfits: &[Misfit]) -> Vec<(String, String)> {
    let mut grouped: BTreeMap<(&str, &str, &str), Vec<String>> = BTreeMap::new();
    for misfit in misfits {
        let candidate = &misfit.candidate;
        let key = (candidate.model.as_str(), candidate.gpu.as_str(), misfit.reason.as_str());
        let size = format!("x{}", candidate.tensor_parallel_size);
        let sizes = grouped.entry(key).or_default();
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    let text = |((model, gpu, reason), sizes): ((&str, &str, &str), Vec<String>)| {
        format!("{model} on {gpu} {}: {reason}", sizes.join(", "))
    };
    let label = |at: usize| if at == 0 { "do not fit".to_owned() } else { String::new() };
    grouped.into_iter().enumerate().map(|(at, entry)| (label(at), text(entry))).collect()
}
