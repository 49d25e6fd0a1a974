//! One row per load point: what [`super::write`] writes, `curve.csv` of a run or a sweep, and tables
//! that people keep by hand with the usual short names (`isl_mean`, `out_tok_s`, `tp`).
//!
//! An empty cell, and a latency of 0, is a value that is not known.

use super::Imported;
use super::error::ImportError;
use super::numbers::small_count;
use super::point::{Arrival, LengthKind, LoadPoint, MeasuredAt, ServerFacts, TokenLengths};
use super::requests_csv::{Row, Table};
use crate::nearest::{did_you_mean, nearest};

/// The columns of a quantity: ours first, then others' names for it.
const RATE: &[&str] = &["rate_per_s", "offered_per_s", "rate_rps"];
const COMPLETED: &[&str] = &["completed", "n_requests"];
const INPUT_LENGTH: &[&str] = &["input_tokens_mean", "isl_mean", "isl"];
const OUTPUT_LENGTH: &[&str] = &["output_tokens_mean", "osl_mean", "osl"];
const REQUESTS_PER_S: &[&str] = &["requests_per_s", "completed_per_s", "req_s"];
const OUTPUT_PER_S: &[&str] = &["output_tokens_per_s", "out_tok_s"];
const TOTAL_PER_S: &[&str] = &["total_tokens_per_s", "total_tok_s"];
const MODEL: &[&str] = &["model", "model_path"];
const GPU: &[&str] = &["gpu", "system"];
const ENGINE: &[&str] = &["engine", "backend"];
const VERSION: &[&str] = &["version", "engine_version", "backend_version"];
const TENSOR: &[&str] = &["tensor_parallel_size", "tp", "tp_size"];
const WEIGHTS: &[&str] = &["weight_dtype", "precision"];
const PIPELINE: &[&str] = &["pipeline_parallel_size", "pp", "pp_size"];

const QUANTITIES: [&[&str]; 14] = [
    RATE,
    COMPLETED,
    INPUT_LENGTH,
    OUTPUT_LENGTH,
    REQUESTS_PER_S,
    OUTPUT_PER_S,
    TOTAL_PER_S,
    MODEL,
    GPU,
    ENGINE,
    VERSION,
    TENSOR,
    PIPELINE,
    WEIGHTS,
];
/// Columns of one name.
const OTHERS: [&str; 15] = [
    "label",
    "arrival",
    "concurrency",
    "failed",
    "duration_s",
    "input_tokens_per_s",
    "good_per_s",
    "measured_at",
    "input_tokens_kind",
    "output_tokens_kind",
    "input_tokens_min",
    "input_tokens_max",
    "output_tokens_min",
    "output_tokens_max",
    "burstiness",
];

/// Columns of a sweep that are none of a measurement, and called like one.
const OF_A_SWEEP: [&str; 2] = ["gpus", "usd_per_gpu_hour"];

pub(super) fn read(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let mut table = Table::new(name, text)?;
    let columns = Columns::new(&table);
    tell_unknown(into, &table);
    let mut empty = 0_u64;
    while let Some(row) = table.next_row()? {
        let point = columns.point(&row)?;
        if point.latencies().iter().all(|(_, stats)| stats.is_empty()) {
            empty += 1;
        } else {
            into.points.push(point);
        }
    }
    if into.points.is_empty() {
        return Err(ImportError::file(
            name,
            "no row with a latency",
            "a column such as `ttft_mean_ms`, filled",
        ));
    }
    into.understand(
        "columns by their names, latencies in ms; a 0 or an empty cell is a value that is not known",
    );
    if columns.nominal {
        into.understand("`isl` and `osl` are nominal lengths, not counted ones");
    }
    if empty > 0 {
        into.leave_out(&format!("rows without any latency: {empty}"));
    }
    Ok(())
}

/// Columns of other names are not read: one that may be a name of a column that is not there is warned of.
fn tell_unknown(into: &mut Imported, table: &Table<'_>) {
    let latencies = latency_columns()
        .flat_map(|(metric, statistic)| [format!("{metric}_{statistic}_ms"), format!("silicon_{metric}_ms")]);
    let latencies: Vec<String> = latencies.collect();
    let known = || QUANTITIES.concat().into_iter().chain(OTHERS).chain(latencies.iter().map(String::as_str));
    let unknown: Vec<&str> =
        table.names().filter(|name| !name.is_empty() && known().all(|known| known != *name)).collect();
    // A quantity that has a column is not meant by another one.
    let is_there = |name: &str| {
        let all = QUANTITIES.iter().find(|names| names.contains(&name));
        table.find(name).is_some() || all.is_some_and(|names| names.iter().any(|n| table.find(n).is_some()))
    };
    let absent: Vec<&str> = known().filter(|name| !is_there(name)).collect();
    for name in unknown.iter().filter(|name| !OF_A_SWEEP.contains(name)) {
        if let Some(question) = did_you_mean(&nearest(name, absent.iter().copied())) {
            into.warn("", &format!("column `{name}` is not known and not read; {question}"));
        }
    }
    if !unknown.is_empty() {
        into.leave_out(&format!("columns of other names: {}", unknown.join(", ")));
    }
}

/// Metrics and statistics that a table may have a column of.
fn latency_columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_all = LoadPoint::default();
    let of_all = of_all.latencies().map(|(metric, stats)| (metric, stats.named().map(|(name, _)| name)));
    of_all.into_iter().flat_map(|(metric, names)| names.into_iter().map(move |name| (metric, name)))
}

/// Where each quantity stands in a table.
struct Columns {
    /// By quantity, in the order of their constants above.
    find: Vec<(&'static [&'static str], usize)>,
    latencies: Vec<(&'static str, &'static str, usize)>,
    other: Vec<(&'static str, usize)>,
    nominal: bool,
}

impl Columns {
    fn new(table: &Table<'_>) -> Self {
        let find = QUANTITIES.into_iter().filter_map(|names| {
            let column = names.iter().find_map(|name| table.find(name))?;
            Some((names, column))
        });
        let mut latencies = Vec::new();
        for (metric, statistic) in latency_columns() {
            let ours = table.find(&format!("{metric}_{statistic}_ms"));
            let silicon = || table.find(&format!("silicon_{metric}_ms")).filter(|_| statistic == "mean");
            latencies.extend(ours.or_else(silicon).map(|column| (metric, statistic, column)));
        }
        let other = OTHERS.into_iter().filter_map(|name| Some((name, table.find(name)?)));
        Self {
            find: find.collect(),
            latencies,
            other: other.collect(),
            nominal: table.find("isl").is_some() && table.find("isl_mean").is_none(),
        }
    }

    fn column(&self, names: &[&str]) -> Option<usize> {
        self.find.iter().find(|(known, _)| *known == names).map(|(_, column)| *column)
    }

    fn number(&self, row: &Row<'_>, names: &[&str]) -> Result<Option<f64>, ImportError> {
        self.column(names).map_or(Ok(None), |column| row.number(column))
    }

    fn text<'t>(&self, row: &Row<'t>, names: &[&str]) -> Option<&'t str> {
        self.column(names).map(|column| row.text(column)).filter(|text| !text.is_empty())
    }

    fn other<'t>(&self, row: &Row<'t>, name: &str) -> Option<(usize, &'t str)> {
        let column = self.other.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)?;
        Some((column, row.text(column))).filter(|(_, text)| !text.is_empty())
    }

    fn other_number(&self, row: &Row<'_>, name: &str) -> Result<Option<f64>, ImportError> {
        self.other(row, name).map_or(Ok(None), |(column, _)| row.number(column))
    }

    fn point(&self, row: &Row<'_>) -> Result<LoadPoint, ImportError> {
        let users = match self.other(row, "concurrency") {
            Some((column, _)) => small(row, column)?,
            None => None,
        };
        let label =
            self.other(row, "label").map_or_else(|| format!("line {}", row.line()), |(_, t)| t.to_owned());
        let mut point = LoadPoint {
            label,
            rate_per_s: self.rate(row)?,
            concurrency: users,
            input_tokens: self.lengths(row, INPUT_LENGTH, "input_tokens")?,
            output_tokens: self.lengths(row, OUTPUT_LENGTH, "output_tokens")?,
            completed: self.column(COMPLETED).map_or(Ok(None), |column| row.count(column))?,
            failed: self.other(row, "failed").map_or(Ok(None), |(column, _)| row.count(column))?,
            duration_s: self.other_number(row, "duration_s")?,
            requests_per_s: self.number(row, REQUESTS_PER_S)?,
            input_tokens_per_s: self.other_number(row, "input_tokens_per_s")?,
            output_tokens_per_s: self.number(row, OUTPUT_PER_S)?,
            total_tokens_per_s: self.number(row, TOTAL_PER_S)?,
            good_per_s: self.other_number(row, "good_per_s")?,
            server: self.server(row)?,
            ..LoadPoint::default()
        };
        point.arrival = self.arrival(row, &point)?;
        if self.other(row, "measured_at").is_some_and(|(_, text)| text == "server") {
            point.measured_at = MeasuredAt::Server;
        }
        for (metric, statistic, column) in &self.latencies {
            let value = row.number(*column)?.filter(|ms| *ms > 0.0).map(|ms| ms * 1e-3);
            for (_, stats) in point.latencies_mut().into_iter().filter(|(name, _)| name == metric) {
                for (_, slot) in stats.named_mut().into_iter().filter(|(name, _)| name == statistic) {
                    *slot = value;
                }
            }
        }
        Ok(point)
    }

    /// A rate; `inf` is none.
    fn rate(&self, row: &Row<'_>) -> Result<Option<f64>, ImportError> {
        if self.text(row, RATE).is_some_and(|text| text.eq_ignore_ascii_case("inf")) {
            return Ok(None);
        }
        Ok(self.number(row, RATE)?.filter(|rate| *rate > 0.0))
    }

    fn arrival(&self, row: &Row<'_>, point: &LoadPoint) -> Result<Arrival, ImportError> {
        let burstiness = self.other_number(row, "burstiness")?.filter(|value| *value > 0.0);
        let by_load = if point.rate_per_s.is_none() && point.concurrency.is_some() {
            Arrival::Closed
        } else {
            Arrival::Unknown
        };
        Ok(match self.other(row, "arrival").map(|(_, text)| text) {
            Some("poisson") => Arrival::Poisson,
            Some("gamma") => burstiness.map_or(Arrival::Unknown, |burstiness| Arrival::Gamma { burstiness }),
            Some("constant") => Arrival::Constant,
            Some("closed") => Arrival::Closed,
            // `--request-rate inf` under a limit is a closed loop.
            Some("inf") if point.concurrency.is_some() => Arrival::Closed,
            Some("all_at_once" | "inf" | "burst") => Arrival::AllAtOnce,
            Some("unknown") => Arrival::Unknown,
            _ => by_load,
        })
    }

    fn lengths(
        &self,
        row: &Row<'_>,
        names: &[&str],
        name: &str,
    ) -> Result<Option<TokenLengths>, ImportError> {
        let Some(mean) = self.number(row, names)?.filter(|mean| *mean > 0.0) else { return Ok(None) };
        let min = self.other_number(row, &format!("{name}_min"))?;
        let max = self.other_number(row, &format!("{name}_max"))?;
        let kind = match (self.other(row, &format!("{name}_kind")).map(|(_, text)| text), min, max) {
            (Some("constant"), ..) => LengthKind::Constant,
            (Some("uniform"), Some(min), Some(max)) => LengthKind::Uniform { min, max },
            (Some("nominal"), ..) => LengthKind::Nominal,
            (None, ..) if self.nominal => LengthKind::Nominal,
            _ => LengthKind::Mean,
        };
        Ok(Some(TokenLengths { mean, kind }))
    }

    fn server(&self, row: &Row<'_>) -> Result<ServerFacts, ImportError> {
        let owned = |names| self.text(row, names).map(String::from);
        let small = |names| self.column(names).map_or(Ok(None), |column| small(row, column));
        let engine = owned(ENGINE).map(|engine| match engine.to_lowercase().as_str() {
            "trtllm" | "tensorrt_llm" => "tensorrt-llm".to_owned(),
            lower => lower.to_owned(),
        });
        Ok(ServerFacts {
            model: owned(MODEL),
            gpu: owned(GPU),
            engine,
            version: owned(VERSION),
            quantization: owned(WEIGHTS),
            tensor_parallel_size: small(TENSOR)?,
            pipeline_parallel_size: small(PIPELINE)?,
            ..ServerFacts::default()
        })
    }
}

/// Users or GPUs; 0 is none known.
fn small(row: &Row<'_>, column: usize) -> Result<Option<u32>, ImportError> {
    match row.count(column)? {
        None => Ok(None),
        Some(count) if count <= u64::from(u32::MAX) => Ok(small_count(count)),
        Some(_) => Err(row.error(column, &format!("a whole number from 0 to {}", u32::MAX))),
    }
}
