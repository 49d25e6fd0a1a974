//! Nothing panics, whatever is read.

use std::path::Path;

use knee::catalog::Catalog;
use knee::scenario::{Document, Override, scenario_names};
use proptest::prelude::*;

/// Resolving, and rendering what is wrong, must end quietly whatever the text.
fn survives(text: &str, set: &str) {
    let Ok(document) = Document::parse(text, None).map_err(|errors| errors.render(true)) else {
        return;
    };
    let changes: Vec<Override> = Override::parse(set).into_iter().collect();
    let resolved = document.with_overrides(&changes).and_then(|d| d.scenario(&Catalog::new(None)));
    if let Err(errors) = resolved {
        assert!(!errors.problems.is_empty());
        let _ = (errors.render(false), errors.problems.iter().map(|p| errors.line(p)).collect::<Vec<_>>());
    }
}

/// Values that a hand might put where another belongs.
const STRANGE: &[&str] = &[
    "-1",
    "0",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "9223372036854775807",
    "99999999999999999999",
    "\"\"",
    "\"é\u{1F600}\"",
    "[]",
    "[[]]",
    "[[0, 1], [1, 1]]",
    "{}",
    "{ constant = -1 }",
    "{ zipf = { max = 2, exponent = 99 } }",
    "true",
    "1979-05-27",
    "{ from = 1, to = 1e300, points = 9 }",
    "\"auto\"",
    "0.5",
    "4294967295",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}", set in "\\PC{0,40}") {
        survives(&text, &set);
    }

    #[test]
    fn a_shipped_scenario_with_a_strange_value_never_panics(
        which in any::<prop::sample::Index>(),
        line in any::<prop::sample::Index>(),
        value in prop::sample::select(STRANGE),
        other in prop::sample::select(STRANGE),
    ) {
        let names = scenario_names();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let text = std::fs::read_to_string(folder.join(format!("{}.toml", which.get(&names)))).unwrap();
        let keys: Vec<usize> = (0..).zip(text.lines()).filter(|(_, l)| l.contains(" = ")).map(|(i, _)| i).collect();
        let changed = *line.get(&keys);
        let lines = text.lines().enumerate().map(|(i, l)| match l.split_once(" = ") {
            Some((key, _)) if i == changed => format!("{key} = {value}\n"),
            _ => format!("{l}\n"),
        });
        let key = text.lines().nth(changed).and_then(|l| l.split_once(" = ")).map_or("seed", |(key, _)| key);
        survives(&lines.collect::<String>(), &format!("engine.{key}={other}"));
    }

    #[test]
    fn a_shipped_scenario_with_damaged_bytes_never_panics(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let names = scenario_names();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut text = std::fs::read(folder.join(format!("{}.toml", which.get(&names)))).unwrap();
        let at = at.index(text.len());
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes);
        survives(&String::from_utf8_lossy(&text), "seed=2");
    }
}
