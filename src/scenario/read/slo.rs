//! `slo = { ttft_p99_ms = 500, tpot_ms = 40, attainment = 0.99 }`.

use crate::nearest::{did_you_mean, nearest};
use crate::scenario::keys::{FRACTION, Kind, POSITIVE, class as keys};
use crate::scenario::node::{Entry, Value};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section, dotted};
use crate::workload::{Metric, Objective, Slo, Statistic};

/// `has_tokens`: whether the class emits tokens, without which there is no TTFT and no TPOT.
pub(super) fn read(reader: &mut Reader<'_>, class: &Section<'_>, has_tokens: bool) -> Slo {
    let mut slo = Slo::default();
    let Some(node) = class.find(&keys::SLO) else {
        return slo;
    };
    let path = class.dotted(keys::SLO.name);
    if !matches!(node.value, Value::Table(_)) {
        let label = format!("found {}, expected a table such as {{ ttft_p99_ms = 500 }}", node.describe());
        reader.problem(Problem::new(node.span, format!("wrong type for `{path}`")).label(label));
    }
    let mut attainment = None;
    for entry in node.entries() {
        let key = dotted(&path, &entry.key);
        if entry.key == "attainment" {
            attainment = reader.number_of(&entry.node, &Kind::Number(FRACTION), &key);
            continue;
        }
        let Some((metric, statistic)) = objective(&entry.key) else {
            unknown(reader, entry, &path);
            continue;
        };
        if metric.needs_output_tokens() && !has_tokens {
            let label = "a synthetic server has it only with output_tokens";
            reader.problem(Problem::new(entry.key_span, format!("`{key}` has no value")).label(label));
        }
        if let Some(limit_ms) = reader.number_of(&entry.node, &Kind::Number(POSITIVE), &key) {
            slo.objectives.push(Objective { metric, statistic, limit_s: limit_ms / 1000.0 });
        }
    }
    slo.attainment = attainment.unwrap_or(slo.attainment);
    slo
}

/// `<metric>_<statistic>_ms` or `<metric>_ms`.
fn objective(key: &str) -> Option<(Metric, Statistic)> {
    let stem = key.strip_suffix("_ms")?;
    let (metric, statistic) = match stem.split_once('_') {
        Some((metric, statistic)) => (metric, Statistic::from_key(statistic)?),
        None => (stem, Statistic::Request),
    };
    let metric = Metric::ALL.into_iter().find(|known| known.key() == metric)?;
    Some((metric, statistic))
}

fn unknown(reader: &mut Reader<'_>, entry: &Entry, path: &str) {
    let statistics = ["", "_mean", "_p50", "_p90", "_p95", "_p99", "_p999"];
    let names: Vec<String> = Metric::ALL
        .iter()
        .flat_map(|metric| statistics.iter().map(move |statistic| format!("{}{statistic}_ms", metric.key())))
        .chain(["attainment".to_owned()])
        .collect();
    let near = did_you_mean(&nearest(&entry.key, names.iter().map(String::as_str)));
    let label = near.unwrap_or_else(|| "no such objective".to_owned());
    let metrics: Vec<&str> = Metric::ALL.iter().map(|metric| metric.key()).collect();
    let help = format!(
        "objectives are <metric>_<statistic>_ms (mean, p50, p90, p95, p99, p999) or, for every request, \
         <metric>_ms with `attainment`; metrics: {}",
        metrics.join(", ")
    );
    let message = format!("unknown key `{}`", dotted(path, &entry.key));
    reader.problem(Problem::new(entry.key_span, message).label(label).help(help));
}
