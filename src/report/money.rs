//! What work costs: tokens of a GPU-hour, dollars of a million tokens, GPU-hours of a job.

use serde::Serialize;

use crate::catalog::age_months;
use crate::experiment::{Estimate, Point, Verdict};
use crate::report::fold::{self, Part};
use crate::report::format::{counted, interval, scaled};
use crate::scenario::Scenario;

const SECONDS_PER_HOUR: f64 = 3600.0;
const MILLION: f64 = 1e6;

/// What one GPU costs for an hour, and who says so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    pub usd_per_gpu_hour: f64,
    /// Year and month; absent where the scenario sets the price itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    pub source: String,
}

/// The price of a scenario's GPUs; `None` if none is known, or there are no GPUs.
#[must_use]
pub fn price(scenario: &Scenario) -> Option<Price> {
    let (usd_per_gpu_hour, words) = scenario.price.clone().filter(|_| scenario.gpus > 0)?;
    let listed = scenario.serving.as_ref().and_then(|serving| serving.hardware.price.as_ref());
    // The scenario gives the source in words; the catalog's own has a date beside it.
    Some(match listed.filter(|listed| words.starts_with(&listed.source)) {
        Some(listed) => {
            Price { usd_per_gpu_hour, date: Some(listed.date.clone()), source: listed.source.clone() }
        }
        None => Price { usd_per_gpu_hour, date: None, source: words },
    })
}

impl Price {
    /// `$2.99 per GPU-hour, dstack, 2024-11, 24 months old` or `$2.50 per GPU-hour from the scenario`: who and when,
    /// without how it was worked out. `today` is a year and month; without it the age is left out.
    #[must_use]
    pub fn in_words(&self, today: Option<(u32, u32)>) -> String {
        // What follows a comma or semicolon is how it was worked out; brackets are part of who says it.
        let who = self.source.split([',', ';']).next().unwrap_or_default().trim();
        match &self.date {
            Some(date) => {
                let age = age(date, today);
                format!("${:.2} per GPU-hour, {who}, {date}{age}", self.usd_per_gpu_hour)
            }
            None => format!("${:.2} per GPU-hour from {who}", self.usd_per_gpu_hour),
        }
    }
}

/// `, 24 months old`, where both months are known.
#[must_use]
pub fn age(date: &str, today: Option<(u32, u32)>) -> String {
    let months = today.and_then(|(year, month)| age_months(date, year, month));
    months.map_or(String::new(), |months| format!(", {} old", counted(u64::from(months), "month")))
}

/// What a point yields for a GPU-hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Economics {
    pub output_tokens_per_gpu_hour: Estimate,
    /// Dollars for a million output tokens; `None` if no price is known.
    pub usd_per_million_output_tokens: Option<Estimate>,
    pub price: Option<Price>,
}

/// Tokens and dollars at a point; `None` without GPUs or without tokens.
#[must_use]
pub fn economics(point: &Point) -> Option<Economics> {
    let scenario = &point.scenario;
    let per_s = fold::group_value(point, Part::All, |group| Some(group.output_tokens_per_s))?;
    if scenario.gpus == 0 || per_s.mean <= 0.0 {
        return None;
    }
    let per_gpu_hour = scaled(&per_s, SECONDS_PER_HOUR / f64::from(scenario.gpus));
    let price = price(scenario);
    let usd = price.as_ref().map(|price| {
        let mean = price.usd_per_gpu_hour / per_gpu_hour.mean * MILLION;
        // To first order a quotient has the relative half-width of its denominator.
        let relative = per_gpu_hour.half_width.map(|half| half / per_gpu_hour.mean);
        Estimate { mean, half_width: relative.map(|relative| relative * mean) }
    });
    Some(Economics { output_tokens_per_gpu_hour: per_gpu_hour, usd_per_million_output_tokens: usd, price })
}

/// Dollars for a million output tokens where the deployment can go on like that: at stable loads and for
/// finite batches.
#[must_use]
pub fn usd_per_million(point: &Point) -> Option<Estimate> {
    let lasting = point.stability.verdict == Verdict::Stable || fold::is_finite_batch(point);
    economics(point).filter(|_| lasting)?.usd_per_million_output_tokens
}

/// What a finite batch takes as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub makespan_s: Estimate,
    pub gpu_hours: Estimate,
    pub usd: Option<Estimate>,
}

/// The cost of a finite batch; `None` for any other load.
#[must_use]
pub fn job(point: &Point) -> Option<Job> {
    if !fold::is_finite_batch(point) {
        return None;
    }
    let makespan_s = fold::over_runs(point, |run| Some(run.window.end_s - run.window.start_s))?;
    let gpu_hours = scaled(&makespan_s, f64::from(point.scenario.gpus) / SECONDS_PER_HOUR);
    let usd = price(&point.scenario).map(|price| scaled(&gpu_hours, price.usd_per_gpu_hour));
    Some(Job { makespan_s, gpu_hours, usd })
}

/// `20.0 ±0.2 M` or `312,000 ±900`: tokens of an hour.
#[must_use]
pub fn tokens(value: &Estimate) -> String {
    if value.mean >= MILLION {
        format!("{} M", interval(&scaled(value, 1.0 / MILLION)))
    } else {
        interval(value)
    }
}

/// `$0.125 ±0.003`.
#[must_use]
pub fn usd(value: &Estimate) -> String {
    format!("${}", interval(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_price_is_not_cut_at_a_bracket() {
        let words = |source: &str| {
            let price =
                Price { usd_per_gpu_hour: 2.8, date: Some("2026-08".to_owned()), source: source.to_owned() };
            price.in_words(Some((2026, 11)))
        };
        assert_eq!(
            words("above SemiAnalysis cost of ownership (1.48 to 2.10)"),
            "$2.80 per GPU-hour, above SemiAnalysis cost of ownership (1.48 to 2.10), 2026-08, 3 months old"
        );
        assert_eq!(
            words("between SemiAnalysis cost of ownership (1.41) and AWS p5en 36.17 / 8"),
            "$2.80 per GPU-hour, between SemiAnalysis cost of ownership (1.41) and AWS p5en 36.17 / 8, 2026-08, 3 months old"
        );
        assert_eq!(
            words("dstack, 23.92 / 8; range in 2025 and 2026: 1.30 to 4.90"),
            "$2.80 per GPU-hour, dstack, 2026-08, 3 months old"
        );
    }
}
