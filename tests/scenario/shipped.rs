//! The scenarios that come with the program.

use std::path::Path;

use knee::catalog::Catalog;
use knee::scenario::{AxisValue, Document, Override, RunLength, scenario_names};

#[test]
fn every_shipped_scenario_resolves_with_every_point_of_its_sweep() {
    let catalog = Catalog::new(None);
    let names = scenario_names();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        let document = Document::load(&name).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let scenario = document.scenario(&catalog).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert!(
            !scenario.description.is_empty() && scenario.warnings.is_empty(),
            "{name}: {:?}",
            scenario.warnings
        );
        assert!(!scenario.sweep.is_empty(), "{name} shows nothing to sweep");
        for axis in &scenario.sweep {
            for value in &axis.values {
                let point = document.with_overrides(&[Override::point(&axis.key, value)]).unwrap();
                point.scenario(&catalog).unwrap_or_else(|errors| panic!("{name}, {axis:?}: {errors}"));
            }
        }
    }
}

#[test]
fn the_worked_example_is_the_one_that_was_asked_for() {
    let scenario = Document::load("worked-example").unwrap().scenario(&Catalog::new(None)).unwrap();
    assert_eq!(scenario.run.length, RunLength::DurationS(60.0));
    for rate in [20.0, 30.0] {
        assert!(scenario.sweep[0].values.contains(&AxisValue::Float(rate)));
    }
    assert_eq!(scenario.workload.classes[0].lengths.mean_tokens().1, 150.0);
}

#[test]
fn a_scenario_is_found_by_path_or_stem_and_an_unknown_one_is_suggested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    assert!(Document::load(&folder.join("fleet.toml").display().to_string()).is_ok());
    assert!(Document::load("fleet.toml").is_ok());
    let message = Document::load("chat-h10").unwrap_err().render(false);
    assert!(
        message.contains("no scenario `chat-h10`") && message.contains("did you mean `chat-h100`?"),
        "{message}"
    );
}
