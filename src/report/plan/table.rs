//! The plan for people: a ranked table a model, then why, what it costs, and what it rests on.

use std::collections::BTreeSet;

use super::{View, words};
use crate::experiment::plan::{Candidate, Economics, Misfit, Outcome, Plan, Row};
use crate::report::format::{ABSENT, count, counted, number};
use crate::report::table::{Columns, Look, MAX_WIDTH, Tone, labelled, wrapped};
use crate::units::{distinct, grouped};

/// The plan as text.
#[must_use]
pub fn table(plan: &Plan, look: Look) -> String {
    let mut lines = Vec::new();
    if let Some(template) = &plan.template {
        let text = format!("ASSUMED, because nothing was said: {}", template.in_words());
        lines.extend(look.paint_all(Tone::Strong, wrapped(&text, MAX_WIDTH)));
    }
    lines.extend(labelled("demand", &words::demand(plan)));
    for model in distinct(plan.rows.iter().map(|row| row.candidate.model.as_str())) {
        let rows: Vec<&Row> = plan.rows.iter().filter(|row| row.candidate.model == model).collect();
        lines.push(String::new());
        let engines = words::engines(&rows);
        let under = if engines.is_empty() { String::new() } else { format!(" under {engines}") };
        lines.push(format!("{}{under}", look.paint(Tone::Strong, model)));
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
        let mut columns = Columns::new(&header, 2);
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
    lines.extend(founded(&sized).into_iter().flat_map(|text| labelled("best founded", &text)));
    let sized: Vec<&Row> = sized.into_iter().copied().collect();
    for (position, text) in words::profiles(&sized).iter().enumerate() {
        lines.extend(labelled(if position == 0 { "profiles" } else { "" }, text));
    }
    for (position, text) in words::refused(&sized).iter().enumerate() {
        lines.extend(labelled(if position == 0 { "refused" } else { "" }, text));
    }
    lines.extend(unmet(rows));
    lines
}

/// The cheapest fleet that does not rest on an estimate, where the cheapest of all does.
fn founded(sized: &[&&Row]) -> Option<String> {
    let (first, others) = sized.split_first()?;
    if !first.is_estimated() {
        return None;
    }
    let name = words::configuration(first);
    Some(match others.iter().find(|row| !row.is_estimated()) {
        Some(row) => format!(
            "{name} rests on an estimate of its step times; cheapest that does not: {}, {}{}",
            words::configuration(row),
            counted(u64::from(row.gpus().unwrap_or_default()), "GPU"),
            row.usd_per_hour().map_or(String::new(), |usd| format!(", ${usd:.2} an hour"))
        ),
        None => format!("{name}, as every fleet of this table, rests on an estimate of its step times"),
    })
}

/// What meets the objectives with no number of replicas, those with the same reason together.
fn unmet(rows: &[&Row]) -> Vec<String> {
    let by_reason = grouped(rows.iter().filter_map(|row| {
        let Outcome::Never(unmet) = &row.outcome else { return None };
        Some((unmet.reason.as_str(), (words::configuration(row), unmet.times_limit)))
    }));
    let text = |(reason, fleets): (&str, Vec<(String, Option<f64>)>)| {
        let times = if fleets[0].1.is_some() { ", times the limit" } else { "" };
        let names: Vec<String> = fleets
            .into_iter()
            .map(|(name, times)| times.map_or(name.clone(), |times| format!("{name} {times:.2}")))
            .collect();
        format!("{reason}{times}: {}", names.join(", "))
    };
    by_reason.into_iter().flat_map(|group| labelled("not met", &text(group))).collect()
}

const HEADER: [&str; 13] = [
    "\nconfiguration",
    "\nprofile",
    "repli-\ncas",
    "\nGPUs",
    "GPUs\nN+1",
    "TTFT ms\np99",
    "TPOT ms\np99",
    "E2E s\np50",
    "head-\nroom %",
    "\n$/h",
    "\n$/month",
    "$/M\noutput",
    "$/M\ntotal",
];

const JOB_HEADER: [&str; 9] = [
    "\nconfiguration",
    "\nprofile",
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
            words::standing(row).to_owned(),
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
        words::standing(row).to_owned(),
        view.fleet.replicas.to_string(),
        view.fleet.gpus.to_string(),
        view.gpus_n_plus_one().to_string(),
        ms(view.ttft_p99_s),
        ms(view.tpot_p99_s),
        or_absent(view.e2e_p50_s),
        words::headroom(&view),
        usd.map_or(ABSENT.to_owned(), |usd| format!("{:.2}", usd.per_hour)),
        usd.map_or(ABSENT.to_owned(), |usd| count(libm::rint(usd.per_month) as u64)),
        or_absent(usd.map(|usd| usd.per_million_output_tokens)),
        or_absent(usd.map(|usd| usd.per_million_tokens)),
    ]
}

fn footnotes(plan: &Plan, today: Option<(u32, u32)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (position, text) in words::other_lengths(&plan.other_lengths).iter().enumerate() {
        lines.extend(labelled(if position == 0 { "other lengths" } else { "" }, text));
    }
    for (position, of) in plan.profile_errors.iter().enumerate() {
        let label = if position == 0 { "profile error" } else { "" };
        lines.extend(labelled(label, &words::profile_error(of)));
    }
    for note in &plan.notes {
        lines.extend(labelled("note", note));
    }
    for (label, lacks_memory) in [("do not fit", true), ("cannot run", false)] {
        let of_kind: Vec<&Misfit> =
            plan.misfits.iter().filter(|misfit| misfit.missing_mib.is_some() == lacks_memory).collect();
        for (position, text) in misfits(&of_kind).iter().enumerate() {
            lines.extend(labelled(if position == 0 { label } else { "" }, text));
        }
    }
    let prices: BTreeSet<String> = plan
        .rows
        .iter()
        .filter_map(|row| Some(words::price(&row.candidate.gpu, row.price.as_ref()?, today)))
        .collect();
    if !prices.is_empty() {
        let text = prices.into_iter().collect::<Vec<_>>().join("; ");
        lines.extend(labelled("prices", &(text + " (calibration/prices.toml)")));
    }
    let Some(first) = plan.rows.first() else {
        return lines;
    };
    if plan.job.is_none() {
        lines.extend(labelled("N+1", N_PLUS_ONE));
        lines.extend(labelled("columns", COLUMNS));
    }
    lines.extend(standings(&plan.rows).into_iter().flat_map(|text| labelled("profile", &text)));
    let statistics = if plan.job.is_none() { STATISTICS } else { JOB_STATISTICS };
    lines.extend(labelled("statistics", &format!("{statistics}; {ERROR}; seed {}", first.scenario.seed)));
    lines
}

const N_PLUS_ONE: &str =
    "one replica more: the rest carries the peak within the objectives while one is lost";
const COLUMNS: &str = "* none of its model is both cheaper and faster; headroom: room of the peak before the fleet \
saturates (objectives fail earlier); $/M: the whole cost over the tokens of the mean rate";
const STATISTICS: &str =
    "every objective holds with its 95 % bound, over 5 to 15 replications, below saturation";
const JOB_STATISTICS: &str = "the whole job at once, ramp and last answers too, over 10 replications: sized by the 95 % upper bound of what it takes, hours by its mean";
const ERROR: &str = "errors of profiles are not in it";

/// What the words of the column `profile` mean, those that stand there.
const STANDINGS: [(&str, &str); 4] = [
    ("calibrated", "fitted to measured servers"),
    ("never scored", "fitted, with an error nobody knows"),
    ("estimated", "kernels measured, or a fit carried to what it was not fitted on"),
    ("guessed", "kernels of another GPU or format"),
];

fn standings(rows: &[Row]) -> Option<String> {
    let sized = || rows.iter().filter(|row| row.gpus().is_some());
    let is_there = |word: &str| sized().any(|row| words::standing(row) == word);
    let there: Vec<String> = STANDINGS
        .iter()
        .filter(|(word, _)| is_there(word))
        .map(|(word, meaning)| format!("{word}: {meaning}"))
        .collect();
    (!there.is_empty()).then(|| there.join("; "))
}

/// Candidates that cannot run: those that lack memory by model, each GPU with its sizes; the others by reason.
fn misfits(misfits: &[&Misfit]) -> Vec<String> {
    let sizes = misfits.iter().map(|Misfit { candidate, reason, missing_mib }| {
        let Candidate { model, gpu, tensor_parallel_size, weight_dtype, settings } = candidate;
        let heading = match missing_mib {
            Some(_) => {
                let dtype = weight_dtype.as_ref().map_or(String::new(), |dtype| format!(" in {dtype}"));
                let settings: String =
                    settings.iter().map(|(key, value)| format!(" {key}={value}")).collect();
                format!("{model}{dtype}{settings}, GiB of memory missing on each GPU")
            }
            None => format!("{model}: {reason}"),
        };
        let missing = missing_mib.map_or(String::new(), |mib| format!(" {:.1}", f64::from(mib) / 1024.0));
        (heading, (gpu.as_str(), format!("x{tensor_parallel_size}{missing}")))
    });
    let one_gpu = |(gpu, sizes): (&str, Vec<String>)| format!("{gpu} {}", distinct(sizes).join(", "));
    let all = |gpus| grouped(gpus).into_iter().map(one_gpu).collect::<Vec<_>>().join("; ");
    grouped(sizes).into_iter().map(|(heading, gpus)| format!("{heading}: {}", all(gpus))).collect()
}
