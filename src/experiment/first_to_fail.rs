//! Which objective binds: the one that fails first as the load grows.
//!
//! It need not be the one that is farthest beyond its limit where a sweep first fails: past saturation TTFT is a
//! thousand times its limit whatever failed before. So where several fail there, or the backlog grows, loads in between
//! are simulated until one fails alone.

use std::sync::Arc;

use super::objective::Margin;
use super::point::{Point, run_point};
use super::stability::Verdict;
use crate::engine::EngineError;
use crate::scenario::Scenario;
use crate::workload::{Arrivals, Workload};

/// Loads in between that are simulated at most: they halve the gap each time.
const MOST_LOADS: usize = 6;

/// The objective that fails first between `holding`, the highest load that holds, and `failing`, a higher one that does
/// not, in words; `None` where the backlog grows before any does.
pub(super) fn first_to_fail(
    holding: Option<(f64, &Point)>,
    failing: (f64, &Point),
) -> Result<Option<String>, EngineError> {
    let (mut high, mut point) = (failing.0, failing.1.clone());
    let Some((mut low, at_low)) = holding else {
        return Ok(worst(&point));
    };
    let mut below = at_low.clone();
    for _ in 0..MOST_LOADS {
        if fails_alone(&point) {
            break;
        }
        let Some((middle, scenario)) = between(&point.scenario, low, high) else { break };
        let tried = run_point(&scenario)?;
        if tried.holds() { (low, below) = (middle, tried) } else { (high, point) = (middle, tried) }
    }
    Ok(worst(&point)
        .and_then(|worst| if fails_alone(&point) { Some(worst) } else { nearest(&below, &point) }))
}

/// Whether it is one objective that fails, of a system that keeps up.
fn fails_alone(point: &Point) -> bool {
    point.stability.verdict != Verdict::Unstable && failing(point).len() == 1
}

fn failing(point: &Point) -> Vec<Margin> {
    point.margins().into_iter().filter(|margin| margin.ratio.mean > 1.0).collect()
}

fn worst(point: &Point) -> Option<String> {
    point.worst().map(|margin| margin.objective)
}

/// Of the objectives that fail at `point`, the one that is nearest to its limit at the load below.
fn nearest(below: &Point, point: &Point) -> Option<String> {
    let failing = failing(point);
    let fails = |margin: &Margin| failing.iter().any(|one| one.objective == margin.objective);
    let candidates = below.margins().into_iter().filter(fails);
    let nearest = candidates.max_by(|a, b| a.ratio.mean.total_cmp(&b.ratio.mean));
    nearest.or_else(|| failing.into_iter().next()).map(|margin| margin.objective)
}

/// A load between two, with its scenario; `None` where there is none between, or the load is no number.
fn between(scenario: &Scenario, low: f64, high: f64) -> Option<(f64, Scenario)> {
    let middle = f64::midpoint(low, high);
    let (load, arrivals) = match &scenario.workload.arrivals {
        Arrivals::Poisson { .. } => (middle, Arrivals::Poisson { rate_per_s: middle }),
        Arrivals::Gamma { burstiness, .. } => {
            (middle, Arrivals::Gamma { rate_per_s: middle, burstiness: *burstiness })
        }
        Arrivals::Weibull { shape, .. } => (middle, Arrivals::Weibull { rate_per_s: middle, shape: *shape }),
        Arrivals::Constant { .. } => (middle, Arrivals::Constant { rate_per_s: middle }),
        Arrivals::Closed { think_time_s, .. } => {
            let users = middle.floor();
            let think_time_s = think_time_s.clone();
            (users, Arrivals::Closed { users: users as u32, think_time_s })
        }
        Arrivals::Mmpp(_) | Arrivals::Profile(_) | Arrivals::Trace(_) | Arrivals::AllAtOnce => return None,
    };
    if load <= low || load >= high {
        return None;
    }
    let mut scenario = scenario.clone();
    scenario.workload = Arc::new(Workload { arrivals, classes: scenario.workload.classes.clone() });
    Some((load, scenario))
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;
    use crate::experiment::{Silent, sweep};
    use crate::scenario::Document;

    /// TPOT passes 20 ms at some 25 req/s, TTFT half a second at 34; at 60 the backlog grows and TTFT is a thousand times
    /// its limit, TPOT not twice.
    const TEXT: &str = "
        [model]
        name = 'llama-3.1-8b'
        [hardware]
        gpu = 'h100-sxm'
        [engine]
        name = 'vllm'
        version = '0.23'
        max_num_seqs = 256
        [arrivals.poisson]
        rate_per_s = 12
        [[class]]
        name = 'chat'
        input_tokens = { lognormal = { mean = 512, p99 = 2048 } }
        output_tokens = { lognormal = { mean = 200, p99 = 1000 } }
        slo = { ttft_p99_ms = 500, tpot_p99_ms = 20 }
        [run]
        requests = 3000
        [sweep]
        'arrivals.poisson.rate_per_s' = [8, 60]
    ";

    fn binding(text: &str) -> Option<String> {
        let document = Document::parse(text, None).expect("TOML");
        let result = sweep(&document, &Catalog::new(None), &Silent).expect("a sweep");
        result.reading?.capacity?.binding
    }

    #[test]
    fn the_objective_that_fails_first_binds_not_the_one_that_explodes_later() {
        assert_eq!(binding(TEXT).as_deref(), Some("chat: TPOT p99 ≤ 20 ms"));
        let of_ttft = TEXT.replace("tpot_p99_ms = 20", "tpot_p99_ms = 200");
        assert_eq!(binding(&of_ttft).as_deref(), Some("chat: TTFT p99 ≤ 500 ms"));
    }
}
