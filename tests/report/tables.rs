//! The typed table behind `curve.csv` and `curve.parquet`, and what is ranked by it.

use std::collections::BTreeMap;

use knee::experiment::SloVerdict;
use knee::report::points::{Values, columns};
use knee::report::rank::{RankError, Ranked, Ranking, check, rank, ranked_columns};
use knee::report::table::Look;
use knee::report::{chart, csv, json, parquet, table};
use knee::scenario::Axis;
use parquet_crate::file::reader::{FileReader, SerializedFileReader};
use parquet_crate::record::Field;
use serde_json::Value;

use super::fixture;

extern crate parquet as parquet_crate;

fn read_back(bytes: Vec<u8>) -> Vec<BTreeMap<String, Field>> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a Parquet file");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| {
        row.expect("a row").get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
    })
    .collect()
}

#[test]
fn parquet_holds_what_the_table_holds_to_the_bit() {
    let result = fixture::grid();
    let rows = read_back(parquet::table(&columns(&result.axes, &result.points)).expect("a file"));
    assert_eq!(rows.len(), result.points.len());
    let columns = columns(&result.axes, &result.points);
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row.len(), columns.len());
        for column in &columns {
            let expected = match &column.values {
                Values::Simulated(values) | Values::Given(values) => values[at].map(Field::Double),
                Values::Whole(values) => values[at].map(Field::Long),
                Values::Flag(values) => values[at].map(Field::Bool),
                Values::Text(values) => values[at].clone().map(Field::Str),
            };
            assert_eq!(row[&column.name], expected.unwrap_or(Field::Null), "{} of row {at}", column.name);
        }
    }
    // No latency of an unstable point, and the same bytes every time.
    assert_eq!(rows[13]["ttft_p99_ms"], Field::Null);
    assert!(matches!(rows[0]["ttft_p99_ms"], Field::Double(_)));
    assert_eq!(rows[1]["engine.max_num_seqs"], Field::Long(256));
    assert_eq!(rows[0]["state"], Field::Str("stable".to_owned()));
    assert!(parquet::table(&columns).unwrap() == parquet::table(&columns).unwrap());
}

#[test]
fn csv_is_the_same_table_with_seven_digits() {
    let result = fixture::sweep();
    let bytes = csv::points(&result.axes, &result.points).unwrap();
    let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let columns = columns(&result.axes, &result.points);
    assert_eq!(header, columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>());
    for (at, record) in reader.records().enumerate() {
        let record = record.unwrap();
        for (cell, column) in record.iter().zip(&columns) {
            let digits =
                cell.trim_start_matches(['-', '0', '.']).chars().filter(char::is_ascii_digit).count();
            let Values::Simulated(values) = &column.values else { continue };
            match values[at] {
                None => assert_eq!(cell, "", "{}", column.name),
                Some(value) => {
                    let read: f64 = cell.parse().unwrap();
                    assert!(
                        (read - value).abs() <= 5.1e-7 * value.abs(),
                        "{}: {cell} for {value}",
                        column.name
                    );
                    assert!(digits <= 7 || value.abs() >= 1e7, "{}: {cell}", column.name);
                }
            }
        }
    }
}

#[test]
fn the_best_meet_their_objectives_and_are_in_order() {
    let result = fixture::sweep();
    let by = |metric: &str| rank(&result, &Ranking { top: Some((3, metric.to_owned())), pareto: Vec::new() });
    let meets = |at: &usize| result.points[*at].slo == SloVerdict::Met;
    // The loads ascend: the fastest are the first, and the last that meets its objectives yields most.
    let last = (0..result.points.len()).rfind(meets).unwrap();
    assert_eq!(by("ttft_p99_ms").unwrap().top.unwrap(), [0, 1, 2]);
    assert_eq!(by("output_tokens_per_s").unwrap().top.unwrap(), [last, last - 1, last - 2]);
    let unknown = by("ttft_p9_ms").unwrap_err();
    let RankError::NoMetric { metric, hint, there_are, .. } = &unknown;
    assert!(
        metric == "ttft_p9_ms" && there_are.contains("ttft_p99_ms") && !there_are.contains("state"),
        "{unknown}"
    );
    assert_eq!(hint, "did you mean `ttft_p99_ms`, `ttft_p95_ms` or `ttft_p90_ms`? ");
}

#[test]
fn metrics_are_checked_before_anything_runs_as_after_it() {
    for result in [fixture::sweep(), fixture::grid(), fixture::fleet()] {
        let values =
            |position: usize| result.points.iter().map(|point| point.coordinates[position].clone()).collect();
        let axes: Vec<Axis> = result
            .axes
            .iter()
            .enumerate()
            .map(|(position, key)| Axis { key: key.clone(), values: values(position) })
            .collect();
        let names = columns(&result.axes, &result.points).into_iter().map(|column| column.name);
        for metric in names.chain(["nonsense".to_owned(), "ttft_p99".to_owned()]) {
            let ranking = Ranking { top: Some((1, metric.clone())), pareto: vec![metric.clone()] };
            let before = check(&ranking, &axes, &result.points[0].scenario);
            assert_eq!(before.err(), rank(&result, &ranking).err(), "{metric}");
        }
    }
}

#[test]
fn the_frontier_is_what_no_other_point_beats() {
    let result = fixture::sweep();
    let of = |metrics: &[&str]| {
        let pareto = metrics.iter().map(|metric| (*metric).to_owned()).collect();
        rank(&result, &Ranking { top: None, pareto }).unwrap().pareto.unwrap()
    };
    // Throughput is bought with latency all along the curve.
    let met: Vec<usize> =
        (0..result.points.len()).filter(|at| result.points[*at].slo == SloVerdict::Met).collect();
    assert_eq!(of(&["output_tokens_per_s", "ttft_p99_ms"]), met);
    assert_eq!(of(&["ttft_p99_ms", "tpot_p99_ms"]), [0]);
}

#[test]
fn what_stands_out_is_marked_and_listed() {
    let result = fixture::grid();
    let ranked = Ranked { top: Some(vec![2, 0]), pareto: Some(vec![0, 5]) };
    let text = table::sweep(&result, &ranked, Look::default());
    println!("{text}");
    let marked = |mark: &str| text.lines().filter(|line| line.trim_start().starts_with(mark)).count();
    assert_eq!((marked("1. "), marked("2. * "), marked("* ")), (1, 1, 1), "{text}");
    assert!(text.contains("best") && text.contains("frontier *"), "{text}");
    assert!(!table::sweep(&result, &Ranked::default(), Look::default()).contains("best"));

    // The same for programs; and not a trace of it where nobody asked.
    let bytes = csv::table(&ranked_columns(&result, &ranked)).unwrap();
    let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
    let width = reader.headers().unwrap().len();
    assert_eq!(reader.headers().unwrap().iter().skip(width - 2).collect::<Vec<_>>(), ["rank", "pareto"]);
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    let cells = |at: usize| (records[at][width - 2].to_owned(), records[at][width - 1].to_owned());
    let expected = [(0, "2", "true"), (1, "", "false"), (2, "1", "false"), (5, "", "true")];
    let rows = read_back(parquet::table(&ranked_columns(&result, &ranked)).unwrap());
    let summary: Value = serde_json::from_str(&json::sweep(&result, &ranked).unwrap()).unwrap();
    for (at, rank, pareto) in expected {
        assert_eq!(cells(at), (rank.to_owned(), pareto.to_owned()), "{at}");
        let number: Option<i64> = rank.parse().ok();
        assert_eq!(rows[at]["rank"], number.map_or(Field::Null, Field::Long), "{at}");
        assert_eq!(rows[at]["pareto"], Field::Bool(pareto == "true"), "{at}");
        assert_eq!(summary["points"][at].get("rank").and_then(Value::as_i64), number, "{at}");
        assert_eq!(summary["points"][at]["pareto"], pareto == "true", "{at}");
    }
    assert_eq!(ranked_columns(&result, &Ranked::default()), columns(&result.axes, &result.points));
    let plain = json::sweep(&result, &Ranked::default()).unwrap();
    assert!(!plain.contains("\"rank\"") && !plain.contains("\"pareto\""));
}

#[test]
fn two_axes_make_a_map_and_one_does_not() {
    assert!(chart::heat(&fixture::sweep()).is_none());
    let svg = chart::heat(&fixture::fleet()).expect("a map").svg().expect("it is drawn");
    assert!(svg.contains("TTFT p99, ms") && svg.contains("unstable"), "no quantity");
    // Rate and slots vary together in this one: no grid.
    assert!(chart::heat(&fixture::grid()).is_none());
}
