//! Sweeps whose axes move together or are sampled.

use knee::catalog::Catalog;
use knee::experiment::{Silent, number, sweep};
use knee::scenario::{Document, Override, SweepMode};

use super::{MINIMAL, SYNTHETIC, refusal, scenario};

const RATE: &str = "sweep.\"arrivals.poisson.rate_per_s\"";
const SEQS: &str = "sweep.\"engine.max_num_seqs\"";

fn of(sets: &[String]) -> knee::scenario::Scenario {
    scenario(MINIMAL, &sets.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn zipped_axes_move_together() {
    let sets = [
        "sweep.mode=zip",
        "sweep.\"arrivals.poisson.rate_per_s\"=[2, 4, 6]",
        "sweep.\"run.requests\"=[200, 400, 600]",
        "run.replications=1",
    ];
    let changes: Vec<Override> = sets.iter().map(|set| Override::parse(set).unwrap()).collect();
    let document = Document::parse(SYNTHETIC, None).unwrap().with_overrides(&changes).unwrap();
    let result = sweep(&document, &Catalog::new(None), &Silent).unwrap();
    let points: Vec<Vec<f64>> =
        result.points.iter().map(|p| p.coordinates.iter().filter_map(number).collect()).collect();
    assert_eq!(points, [[2.0, 200.0], [4.0, 400.0], [6.0, 600.0]]);
}

#[test]
fn a_latin_hypercube_hits_every_stratum_of_every_axis_once() {
    let sets = |seed: u64| {
        of(&[
            "sweep.mode=latin_hypercube".to_owned(),
            "sweep.samples=50".to_owned(),
            format!("{RATE}={{ from = 1, to = 51 }}"),
            format!("{SEQS}={{ from = 1, to = 1024, scale = \"log\" }}"),
            "sweep.\"model.weight_dtype\"=[\"bf16\", \"fp8\"]".to_owned(),
            format!("seed={seed}"),
        ])
    };
    let scenario = sets(1);
    assert_eq!(scenario.sweep_mode, SweepMode::Zip);
    let mut rates: Vec<f64> = scenario.sweep[0].values.iter().filter_map(number).collect();
    assert!(rates.windows(2).any(|pair| pair[0] > pair[1]), "not in order");
    rates.sort_by(f64::total_cmp);
    for (stratum, rate) in rates.iter().enumerate() {
        let low = 1.0 + stratum as f64;
        assert!((low..low + 1.0).contains(rate), "{rate} in stratum {stratum}");
    }
    let seqs: Vec<f64> = scenario.sweep[1].values.iter().filter_map(number).collect();
    assert_eq!(seqs.iter().filter(|seqs| **seqs <= 32.0).count(), 25);
    let first = &scenario.sweep[2].values[0];
    assert_eq!(scenario.sweep[2].values.iter().filter(|value| *value == first).count(), 25);
    // The same seed, the same sample.
    assert_eq!(sets(1).sweep, scenario.sweep);
    assert_ne!(sets(2).sweep, scenario.sweep);
}

#[test]
fn designs_that_cannot_be_are_refused() {
    let two = format!("{RATE}=[1, 2]");
    let three = format!("{SEQS}=[1, 2, 3]");
    let cases = [
        (vec!["sweep.mode=zip", &two, &three], "different numbers of values"),
        (vec!["sweep.mode=grid", &two], "expected one of product, zip, latin_hypercube"),
        (vec!["sweep.mode=latin_hypercube", &two], "missing key `sweep.samples`"),
        (vec!["sweep.samples=9", &two], "of mode \"latin_hypercube\" only"),
        (vec!["sweep.mode=latin_hypercube", "sweep.samples=1", &two], "expected a whole number from 2"),
    ];
    for (sets, words) in cases {
        let message = refusal(MINIMAL, &sets);
        assert!(message.contains(words), "{sets:?}: {message}");
    }
}

#[test]
fn a_combination_is_not_run_twice() {
    let axes = |sweep: &str| {
        let changes = [Override::parse(&format!("sweep={{{sweep}}}")).unwrap()];
        Document::parse(MINIMAL, None).unwrap().with_overrides(&changes).unwrap().axes()
    };
    for sweep in [
        "\"engine.max_num_seqs\"=[8,16,8]",
        "\"arrivals.poisson.rate_per_s\"=[1,2,1.0]",
        "\"deployment.router\"=[\"random\",\"random\"]",
        "\"engine.max_num_seqs\"={values=[8,8]}",
    ] {
        let text = axes(sweep).expect_err("a value twice").render(false);
        assert!(text.contains("has a value twice"), "{text}");
    }
    // Together with others a value may come again.
    let zipped = "mode=\"zip\",\"engine.max_num_seqs\"=[8,8],\"deployment.replicas\"=[1,2]";
    assert_eq!(axes(zipped).unwrap().0[0].values.len(), 2);
}
