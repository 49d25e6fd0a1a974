//! What a fleet costs, by the hour and by what it serves while its objectives hold.

use super::{Outcome, Row};
use crate::metrics::Group;

const HOURS_PER_DAY: f64 = 24.0;
/// As cloud price lists count.
const HOURS_PER_MONTH: f64 = 730.0;
const SECONDS_PER_HOUR: f64 = 3600.0;
const MILLION: f64 = 1e6;

/// Costs and yields of a row. Dollars are absent where no price is known. Each price of a million tokens
/// carries the whole cost: they are three ways to say it, not three parts of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Economics {
    /// `None` of a job, which ends.
    pub gpu_hours_per_day: Option<f64>,
    pub output_tokens_per_gpu_hour: f64,
    pub usd: Option<Dollars>,
}

/// The part of [`Economics`] that needs a price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dollars {
    pub per_hour: f64,
    pub per_month: f64,
    pub per_million_input_tokens: f64,
    pub per_million_output_tokens: f64,
    pub per_million_tokens: f64,
    pub requests_per_usd: f64,
}

impl Dollars {
    /// Tokens a day, input and output, at which an API at `usd` a million costs what the fleet costs.
    #[must_use]
    pub fn break_even_tokens_per_day(&self, usd: f64) -> f64 {
        self.per_hour * HOURS_PER_DAY / usd * MILLION
    }
}

impl Economics {
    /// Of a fleet under its mean rate, all day; of a job, while it lasts. `None` where there is no fleet.
    #[must_use]
    pub fn of(row: &Row) -> Option<Self> {
        let (point, per_s, gpus, is_lasting) = match &row.outcome {
            Outcome::Fleet(fleet) => (&fleet.point, fleet.rates.mean_per_s, fleet.gpus, true),
            Outcome::Job(fleet) => {
                (&fleet.point, fleet.requests / (fleet.hours * SECONDS_PER_HOUR), fleet.gpus, false)
            }
            Outcome::Never(_) => return None,
        };
        let total = |of: fn(&Group) -> u64| point.runs.iter().map(|run| of(&run.all)).sum::<u64>() as f64;
        let requests = total(|group| group.completed);
        if requests <= 0.0 {
            return None;
        }
        // Tokens of a mean request as it was served.
        let per_hour = per_s * SECONDS_PER_HOUR;
        let input = per_hour * total(|group| group.input_tokens) / requests;
        let output = per_hour * total(|group| group.output_tokens) / requests;
        let usd = row.usd_per_hour().map(|usd| Dollars {
            per_hour: usd,
            per_month: usd * HOURS_PER_MONTH,
            per_million_input_tokens: usd / input * MILLION,
            per_million_output_tokens: usd / output * MILLION,
            per_million_tokens: usd / (input + output) * MILLION,
            requests_per_usd: per_hour / usd,
        });
        Some(Self {
            gpu_hours_per_day: is_lasting.then(|| f64::from(gpus) * HOURS_PER_DAY),
            output_tokens_per_gpu_hour: output / f64::from(gpus),
            usd,
        })
    }
}
