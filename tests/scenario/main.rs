//! Scenario files: what they mean, what they default to, and what is said when they are wrong.

mod meaning;
mod overrides;
mod refusals;
mod robustness;
mod shipped;
mod sweeps;
mod varying;

use knee::catalog::Catalog;
use knee::scenario::{Document, Override, Scenario, ScenarioErrors};

/// The smallest file that says everything that must be said.
const MINIMAL: &str = r#"
[model]
name = "llama-3.1-8b"
[hardware]
gpu = "h100-sxm"
[arrivals.poisson]
rate_per_s = 12.0
[[class]]
input_tokens = 512
output_tokens = 200
"#;

const SYNTHETIC: &str = r#"
[engine]
name = "synthetic"
service_time = { exponential = { mean_s = 0.1 } }
[arrivals.poisson]
rate_per_s = 8
"#;

fn resolve(text: &str, sets: &[&str]) -> Result<Scenario, ScenarioErrors> {
    let changes: Vec<Override> = sets.iter().map(|set| Override::parse(set).unwrap()).collect();
    Document::parse(text, None)?.with_overrides(&changes)?.scenario(&Catalog::new(None))
}

fn scenario(text: &str, sets: &[&str]) -> Scenario {
    resolve(text, sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The rendered problems of a scenario that must be refused.
fn refusal(text: &str, sets: &[&str]) -> String {
    resolve(text, sets).expect_err("it must be refused").render(false)
}

/// The one message, whole.
#[track_caller]
fn assert_refused(text: &str, sets: &[&str], expected: &str) {
    assert_eq!(refusal(text, sets), expected.trim_start_matches('\n').trim_end());
}

/// `MINIMAL` with `from` replaced.
fn minimal(from: &str, to: &str) -> String {
    assert!(MINIMAL.contains(from));
    MINIMAL.replacen(from, to, 1)
}
