//! What a plan says in sentences.

use super::View;
use crate::catalog::Standing;
use crate::experiment::plan::{
    Candidate, Demand, Economics, JobFleet, OtherLengths, Plan, PlanPrice, ProfileError, Row,
};
use crate::report::format::{chosen, counted, number, percent};
use crate::report::{money, provenance, reading};
use crate::units::{distinct, grouped};

/// `h100-sxm x2 fp8 max_num_seqs=256`.
pub(crate) fn configuration(row: &Row) -> String {
    let dtype = row.scenario.serving.as_ref().map_or("", |serving| serving.weight_dtype.name());
    let ranks = row.scenario.serving.as_ref().map_or(1, |serving| serving.ranks());
    let Candidate { gpu, tensor_parallel_size, settings, .. } = &row.candidate;
    let mut text = gpu.clone();
    if *tensor_parallel_size > 1 {
        text += &format!(" x{tensor_parallel_size}");
    }
    if ranks > 1 {
        text += &format!(" dp{ranks}");
    }
    text += &format!(" {dtype}");
    for (key, value) in settings {
        text += &match key.as_str() {
            "engine.name" | "engine.version" => format!(" {value}"),
            _ => format!(" {}={value}", key.rsplit('.').next().unwrap_or(key)),
        };
    }
    text
}

/// Headroom beyond which nobody plans.
const MOST_HEADROOM: f64 = 100.0;

/// How well founded the step times are that a row rests on.
pub(super) fn standing(row: &Row) -> &'static str {
    row.scenario.serving.as_ref().map_or("", |serving| match serving.standing() {
        Standing::Fitted => "never scored",
        Standing::Estimated if !serving.guessed().is_empty() => "guessed",
        standing => standing.name(),
    })
}

/// The engines of a table with their versions: `vllm 0.23`.
pub(super) fn engines(rows: &[&Row]) -> String {
    let servings = rows.iter().filter_map(|row| row.scenario.serving.as_ref());
    distinct(servings.map(|serving| provenance::engine_version(serving))).join(", ")
}

/// What the table cannot say of the profiles behind its best fleets: that fitted and estimated step times are ranked
/// together, and what they were fitted on or estimated from.
pub(super) fn profiles(rows: &[&Row]) -> Vec<String> {
    let mut texts = Vec::new();
    let has = |estimated: bool| rows.iter().any(|row| row.is_estimated() == estimated);
    if has(true) && has(false) {
        texts.push("calibrated and estimated step times are ranked together".to_owned());
    }
    let best = rows.iter().enumerate().filter(|(place, row)| *place == 0 || row.pareto);
    let elsewhere = best.filter_map(|(_, row)| {
        let serving = row.scenario.serving.as_ref()?;
        let not_fitted = serving.not_fitted();
        let is_fitted_here = !serving.profile.is_fitted_elsewhere(&serving.model.name);
        if is_fitted_here && not_fitted.is_empty() && serving.profile.standing != Standing::Estimated {
            return None;
        }
        let mut text = serving.foundation();
        if !not_fitted.is_empty() && serving.profile.standing != Standing::Estimated {
            text += &format!("; {} not fitted", not_fitted.join(", "));
        }
        Some((text, configuration(row)))
    });
    texts.extend(of_several(elsewhere));
    texts
}

/// What is to be said of configurations, those of which the same is said together.
fn of_several(said: impl Iterator<Item = (String, String)>) -> Vec<String> {
    grouped(said).into_iter().map(|(text, names)| format!("{}: {text}", names.join(", "))).collect()
}

/// The share of the requests that fleets refuse, whatever the load, those with the same share together.
pub(super) fn refused(rows: &[&Row]) -> Vec<String> {
    of_several(rows.iter().filter_map(|row| {
        let (share, why) = row.refused()?;
        let text = format!("{} % of the requests are refused at any load: {why}", number(100.0 * share));
        Some((text, configuration(row)))
    }))
}

/// The demand as it was stated, with what it was converted to.
pub(super) fn demand(plan: &Plan) -> String {
    let stated = match (plan.job, plan.demand) {
        (Some(job), _) => {
            return format!("{} requests within {} h", chosen(job.requests), chosen(job.window_h));
        }
        (None, None) => return "no demand".to_owned(),
        (None, Some(demand)) => match demand {
            Demand::RatePerS(rate) => format!("{} req/s", chosen(rate)),
            Demand::Users { users, think_time_s } => format!(
                "{} who think{} {} s between answer and next request: at most {} req/s, less the time that \
                 answers take",
                reading::load(users, "users"),
                if users == 1.0 { "s" } else { "" },
                chosen(think_time_s),
                number(users / think_time_s.max(f64::MIN_POSITIVE))
            ),
            Demand::TokensPerDay(per_day) => {
                format!("{} tokens a day, input and output", tokens(per_day))
            }
            Demand::Profile { mean_per_s, peak_per_s } => {
                format!("{} req/s on average, {} at the peak", number(mean_per_s), number(peak_per_s))
            }
        },
    };
    let rates = plan.rows.iter().filter_map(View::of).map(|view| view.fleet.rates);
    let (low, high) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rates| {
        (low.min(rates.peak_per_s), high.max(rates.peak_per_s))
    });
    let sized = if number(low) == number(high) {
        number(high)
    } else {
        format!("{} to {}", number(low), number(high))
    };
    let factor = match plan.demand {
        Some(Demand::Profile { .. }) => String::new(),
        _ if plan.peak_factor == 1.0 => " (no peak factor: spread evenly)".to_owned(),
        _ => format!(" (peak factor {})", chosen(plan.peak_factor)),
    };
    if high > 0.0 { format!("{stated}; fleets are sized for {sized} req/s{factor}") } else { stated }
}

/// Yields and costs that are not in the table.
pub(super) fn economics(plan: &Plan, row: &Row, economics: &Economics) -> String {
    let mut text = format!(
        "{}: {} output tokens per GPU-hour",
        configuration(row),
        tokens(economics.output_tokens_per_gpu_hour)
    );
    text += &economics
        .gpu_hours_per_day
        .map_or(String::new(), |hours| format!(", {} GPU-hours a day", chosen(hours)));
    let Some(usd) = &economics.usd else {
        return text + "; no price known: set cost.gpu_hour_usd";
    };
    text += &format!(", {} requests per dollar", number(usd.requests_per_usd));
    if let Some(api) = plan.api_usd_per_million_tokens {
        let own = usd.per_million_tokens;
        let verdict = if own < api { "cheaper than" } else { "dearer than" };
        text += &format!(
            "; ${} per M tokens is {verdict} the API's ${}; break-even at {} tokens a day",
            number(own),
            chosen(api),
            tokens(usd.break_even_tokens_per_day(api))
        );
    }
    text
}

/// Why this many, and how many would do if nobody waited.
pub(super) fn why(row: &Row, view: &View<'_>) -> String {
    let fleet = view.fleet;
    let per_replica = fleet.rates.peak_per_s / f64::from(fleet.replicas);
    let peak = fleet.saturated_per_s.mean;
    if view.worst_ratio.is_none() {
        return format!(
            "{}: {}; nobody waits for an answer, so no TTFT or TPOT objective binds and every replica runs near its \
             peak, {} of {} req/s",
            configuration(row),
            counted(u64::from(fleet.gpus), "GPU"),
            number(per_replica),
            number(peak)
        );
    }
    let mut text = format!("{}: {}", configuration(row), counted(u64::from(fleet.gpus), "GPU"));
    if let Some(reason) = &fleet.one_fewer {
        text += &format!("; with one replica fewer: {reason}");
    }
    let batch = view.gpus_without_objectives();
    if batch == fleet.gpus {
        text += &format!(
            ". The objectives cost no further GPU: each replica runs at {} of the {} req/s that it completes at its peak",
            number(per_replica),
            number(peak)
        );
    } else {
        text += &format!(
            ". As overnight batch {} would do: with no TTFT or TPOT objective each replica runs near its peak of {} \
             req/s, with them at {}",
            counted(u64::from(batch), "GPU"),
            number(peak),
            number(per_replica)
        );
    }
    text
}

/// Processing time and GPU-hours of a job.
pub(super) fn job(row: &Row, fleet: &JobFleet) -> String {
    let gpu_hours = fleet.hours * f64::from(fleet.gpus);
    let usd = row.usd().map_or(String::new(), |usd| format!(", ${}", number(usd)));
    format!(
        "{}: {} for {} h, {} GPU-hours{usd}; nobody waits, so each replica runs at its peak of {} req/s while it is full",
        configuration(row),
        counted(u64::from(fleet.gpus), "GPU"),
        number(fleet.hours),
        number(gpu_hours),
        number(fleet.saturated_per_s.mean)
    )
}

/// How far the answer moves with the lengths, a line a candidate.
pub(super) fn other_lengths(others: &[OtherLengths]) -> Vec<String> {
    let mut lines: Vec<(&Candidate, String)> = Vec::new();
    for other in others {
        let with = other.other_gpus.map_or("no fleet".to_owned(), |gpus| counted(u64::from(gpus), "GPU"));
        let lengths = if other.scale < 1.0 { "half" } else { "double" };
        let text = format!(", {with} with {lengths} lengths");
        match lines.iter_mut().find(|(candidate, _)| **candidate == other.candidate) {
            Some((_, line)) => *line += &text,
            None => {
                let Candidate { model, gpu, tensor_parallel_size, .. } = &other.candidate;
                let gpus = counted(u64::from(other.gpus), "GPU");
                let line = format!("{model} on {gpu} x{tensor_parallel_size}: {gpus} as assumed{text}");
                lines.push((&other.candidate, line));
            }
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// How far the answer moves with the profile's error.
pub(super) fn profile_error(of: &ProfileError) -> String {
    let Candidate { model, gpu, tensor_parallel_size, .. } = &of.candidate;
    let name = format!("{model} on {gpu} x{tensor_parallel_size}");
    let Some(error) = of.error else {
        return format!("{name}: {}", of.error_is_of.as_deref().unwrap_or("not known"));
    };
    let whose = of.error_is_of.as_ref().map_or(String::new(), |of| format!(", {of}"));
    let gpus = |gpus: Option<u32>| gpus.map_or("no fleet".to_owned(), |gpus| counted(u64::from(gpus), "GPU"));
    if error >= 1.0 {
        return format!(
            "{name}: {} as it is, {} with steps {} % longer (largest held-out error{whose})",
            counted(u64::from(of.gpus), "GPU"),
            gpus(of.gpus_if_longer),
            percent(error)
        );
    }
    format!(
        "{name}: {} as it is, {} with steps {} % longer, {} with as much shorter (largest held-out error{whose})",
        counted(u64::from(of.gpus), "GPU"),
        gpus(of.gpus_if_longer),
        percent(error),
        gpus(of.gpus_if_shorter)
    )
}

/// Where a price is from and how old it is in the month `today` (year and month).
pub(super) fn price(gpu: &str, price: &PlanPrice, today: Option<(u32, u32)>) -> String {
    let usd = price.usd_per_gpu_hour;
    let Some(listed) = &price.listed else {
        return format!("{gpu} ${usd:.2} per GPU-hour (the scenario)");
    };
    format!("{gpu} ${usd:.2} per GPU-hour ({}{})", listed.date, money::age(&listed.date, today))
}

/// `41 %` of room.
pub(super) fn headroom(view: &View<'_>) -> String {
    if view.headroom >= MOST_HEADROOM {
        return format!(">{}", percent(MOST_HEADROOM));
    }
    percent(libm::rint(view.headroom * 100.0) / 100.0)
}

/// `4.85 M` or `312,000`.
fn tokens(value: f64) -> String {
    if value >= 1e6 { format!("{} M", number(value / 1e6)) } else { number(value) }
}
