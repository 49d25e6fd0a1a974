//! The answer of `knee plan`: table, JSON, CSV. One view of a row for all of them.

mod columns;
mod csv;
mod json;
mod table;
mod words;

use crate::experiment::plan::{Fleet, Outcome, Row};
use crate::experiment::{Estimate, objective};
use crate::metrics::Latency;
use crate::report::fold::{self, Part};
use crate::workload::Metric;

pub use csv::csv;
pub use json::json;
pub use table::table;
pub(crate) use words::configuration;

/// What every output shows of a fleet that meets the objectives.
struct View<'a> {
    fleet: &'a Fleet,
    ttft_p99_s: Option<f64>,
    tpot_p99_s: Option<f64>,
    e2e_p50_s: Option<f64>,
    /// Worst value over limit with its interval; `None` without objectives.
    worst_ratio: Option<Estimate>,
    /// Saturated throughput of the fleet over the peak rate, less one.
    headroom: f64,
}

impl<'a> View<'a> {
    fn of(row: &'a Row) -> Option<Self> {
        let Outcome::Fleet(fleet) = &row.outcome else {
            return None;
        };
        let latency = |metric, of: fn(&Latency) -> f64| {
            fold::latency(&fleet.point, Part::All, metric, of).map(|value| value.mean)
        };
        let classes = &fleet.point.scenario.workload.classes;
        let worst = objective::margins(classes, &fleet.point.runs)
            .into_iter()
            .map(|margin| margin.ratio)
            .max_by(|a, b| a.mean.total_cmp(&b.mean));
        let saturated = fleet.saturated_per_s.mean * f64::from(fleet.replicas);
        Some(Self {
            fleet,
            ttft_p99_s: latency(Metric::Ttft, |latency| latency.p99_s),
            tpot_p99_s: latency(Metric::Tpot, |latency| latency.p99_s),
            e2e_p50_s: latency(Metric::E2e, |latency| latency.p50_s),
            worst_ratio: worst,
            headroom: saturated / fleet.rates.peak_per_s - 1.0,
        })
    }

    /// GPUs with which the objectives still hold when one replica is lost: one replica more, for this
    /// many are the fewest that meet them.
    fn gpus_n_plus_one(&self) -> u32 {
        self.fleet.gpus / self.fleet.replicas * (self.fleet.replicas + 1)
    }

    /// GPUs that would do without objectives.
    fn gpus_without_objectives(&self) -> u32 {
        self.fleet.gpus / self.fleet.replicas * self.fleet.replicas_without_objectives
    }
}
