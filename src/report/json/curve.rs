//! The reading of a curve.

use serde::Serialize;

use crate::experiment::{self, Combination, CurveReading, Estimate, SweepResult};
use crate::report::money::{self, Price};
use crate::report::{grid, reading};

#[derive(Serialize)]
pub(super) struct ReadingBody {
    load_unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<CapacityBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stability_limit: Option<StabilityBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knee: Option<KneeBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostBody>,
}

#[derive(Serialize)]
pub(super) struct Interval {
    mean: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_width: Option<f64>,
}

impl From<&Estimate> for Interval {
    fn from(estimate: &Estimate) -> Self {
        Self { mean: estimate.mean, half_width: estimate.half_width }
    }
}

#[derive(Serialize)]
struct CapacityBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    guaranteed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_failing: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Interval>,
    /// Where the estimate came out, if not between the two above.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<String>,
}

#[derive(Serialize)]
struct StabilityBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    last_stable: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_unstable: Option<f64>,
    saturated_per_s: Interval,
    binding: String,
}

#[derive(Serialize)]
struct KneeBody {
    load: f64,
    from: f64,
    to: f64,
    curve: String,
}

#[derive(Serialize)]
struct CostBody {
    at: &'static str,
    output_tokens_per_gpu_hour: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_per_million_output_tokens: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
}

/// One combination of a grid's other axes and what its curve says.
#[derive(Serialize)]
pub(super) struct CombinationBody {
    combination: String,
    reading: ReadingBody,
}

/// The readings of a grid's curves.
pub(super) fn combinations(result: &SweepResult) -> Vec<CombinationBody> {
    let load = experiment::load_axis(&result.axes);
    let body = |combination: &Combination| CombinationBody {
        combination: grid::name(&result.axes, load, &combination.others),
        reading: body(&combination.reading, None),
    };
    result.combinations.iter().map(body).collect()
}

/// The reading of a sweep that is a curve.
pub(super) fn reading_body(result: &SweepResult, reading: &CurveReading) -> ReadingBody {
    let cost = reading::priced_point(result).and_then(|(point, at)| {
        let economics = money::economics(point)?;
        Some(CostBody {
            at,
            output_tokens_per_gpu_hour: economics.output_tokens_per_gpu_hour.mean,
            usd_per_million_output_tokens: economics.usd_per_million_output_tokens.map(|usd| usd.mean),
            price: economics.price,
        })
    });
    body(reading, cost)
}

fn body(reading: &CurveReading, cost: Option<CostBody>) -> ReadingBody {
    ReadingBody {
        load_unit: reading.load_unit,
        capacity: reading.capacity.as_ref().map(|capacity| CapacityBody {
            guaranteed: capacity.guaranteed,
            first_failing: capacity.first_failing,
            estimate: capacity.estimate.as_ref().map(Interval::from),
            doubt: capacity.doubt,
            binding: capacity.binding.clone(),
        }),
        stability_limit: reading.stability_limit.as_ref().map(|limit| StabilityBody {
            last_stable: limit.last_stable,
            first_unstable: limit.first_unstable,
            saturated_per_s: Interval::from(&limit.saturated_per_s),
            binding: limit.binding.clone(),
        }),
        knee: reading.knee.as_ref().map(|knee| KneeBody {
            load: knee.load,
            from: knee.from,
            to: knee.to,
            curve: reading::quantity_name(knee.metric, knee.statistic),
        }),
        cost,
    }
}
