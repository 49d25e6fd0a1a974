//! Are the standard errors of `knee calibrate` honest? Refits on resampled measurements of a real server.
//!
//! ```text
//! KNEE_DATA=... cargo test --release --test bootstrap -- --ignored --nocapture
//! ```
//!
//! Takes minutes, so it is not among the default tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use knee::calibrate::{Fit, Options, Parameter, Status, calibrate};
use knee::catalog::Catalog;
use knee::experiment::Silent;
use knee::rng::{Purpose, stream};
use knee::scenario::Document;
use knee::validate::{Cell, cells};

/// Resamples; the spread of a parameter over so many is known to 1 / sqrt(2 x 11) = 21 %.
const REFITS: u32 = 12;
/// Most users of a load that is taken: those of 128 take two thirds of the time.
const MOST_USERS: u32 = 64;

/// Qwen3-32B in bf16 under SGLang 0.5.1 on 2, 4 and 8 H100: 30 concurrency points up to 64 users.
fn measured(data: &Path) -> Vec<Cell> {
    let file = data.join("points/concurrency_curves.csv");
    let mut csv = csv::Reader::from_path(file).expect("curves");
    let header = csv.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let mut points: BTreeMap<String, String> = BTreeMap::new();
    for row in csv.records().map(|row| row.expect("a row")) {
        let get = |name: &str| row.get(at(name)).unwrap_or_default();
        let is_wanted = get("backend_version") == "0.5.1.post1" && get("model_path") == "Qwen/Qwen3-32B";
        if !is_wanted {
            continue;
        }
        let points = points.entry(get("tp_size").to_owned()).or_default();
        let users: u32 = get("concurrency").parse().expect("users");
        if users > MOST_USERS {
            continue;
        }
        // Writing to a string cannot fail. These runs have fixed lengths.
        let _ = writeln!(
            points,
            "{{ concurrency = {users}, completed = {}, input_tokens_mean = {}, output_tokens_mean = {}, \
             ttft_mean_ms = {}, tpot_mean_ms = {} }},",
            10 * users,
            get("isl"),
            get("osl"),
            get("silicon_ttft_ms"),
            get("silicon_tpot_ms")
        );
    }
    let mut set = "[model]\nname = 'qwen3-32b'\n[hardware]\ngpu = 'h100-sxm'\n[engine]\nname = 'sglang'\n\
                   version = '0.5'\n"
        .to_owned();
    for (gpus, points) in points {
        let _ = write!(
            set,
            "[[measurement]]\nname = 'TP{gpus}'\npoint = [\n{points}]\n[measurement.engine]\n\
             tensor_parallel_size = {gpus}\n"
        );
    }
    let document = Document::parse(&set, None).expect("TOML");
    let (measurements, _) = document.measurements(&Catalog::new(None)).expect("a valid set");
    cells(&measurements).expect("points")
}

fn fit(cells: &[Cell]) -> Fit {
    // One cell is held out, so that no half is fitted besides.
    let mut cells = cells.to_vec();
    let mut held_out = cells[0].clone();
    held_out.holdout = true;
    cells.push(held_out);
    calibrate(&cells, &Options::default(), &Silent).expect("a fit").fits.remove(0)
}

#[test]
#[ignore = "takes minutes and real measurements (KNEE_DATA)"]
fn standard_errors_are_the_spread_of_bootstrap_refits() {
    let Some(data) = std::env::var_os("KNEE_DATA").map(PathBuf::from) else {
        println!("skipped: KNEE_DATA is not set");
        return;
    };
    let all = measured(&data);
    assert_eq!(all.len(), 30);
    let whole = fit(&all);
    let mut draws = stream(1, Purpose::Sampling, 0);
    let mut refits: BTreeMap<Parameter, Vec<f64>> = BTreeMap::new();
    println!("{} loads fitted", all.len());
    for refit in 1..=REFITS {
        let resampled: Vec<Cell> = (0..all.len()).map(|_| all[draws.index(all.len())].clone()).collect();
        for one in fit(&resampled).parameters.iter().filter(|one| one.status == Status::Fitted) {
            refits.entry(one.parameter).or_default().push(one.value.ln());
        }
        println!("refit {refit} of {REFITS}");
    }
    let (mut covered, mut asked) = (0, 0);
    for one in whole.parameters.iter().filter(|one| one.status == Status::Fitted) {
        let (Some(error), Some(values)) = (one.standard_error, refits.get(&one.parameter)) else { continue };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = (squares / (values.len() - 1) as f64).sqrt();
        let stated = error / one.value;
        let within = values.iter().filter(|value| (*value - one.value.ln()).abs() <= 1.96 * stated).count();
        println!(
            "{}: {:.4}, stated {:.1} %, spread of {} refits {:.1} %, {within} within 1.96 stated errors",
            one.parameter.key(),
            one.value,
            100.0 * stated,
            values.len(),
            100.0 * spread
        );
        covered += within;
        asked += values.len();
    }
    // Of 95 % claimed, what may be missing to chance and to a spread that is itself estimated.
    assert!(asked > 0 && covered as f64 >= 0.88 * asked as f64, "{covered} of {asked}");
}
