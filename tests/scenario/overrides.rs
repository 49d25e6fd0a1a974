//! Values from the command line and from the axes of a sweep.

use knee::catalog::Catalog;
use knee::metrics::RunMode;
use knee::scenario::{AxisValue, Document, Override, RunLength};
use knee::workload::{Arrivals, Distribution};

use super::{MINIMAL, SYNTHETIC, assert_refused, refusal, scenario};

#[test]
fn an_override_replaces_its_alternatives_and_takes_the_blame() {
    let closed = scenario(MINIMAL, &["arrivals.closed.users=7", "arrivals.closed.think_time_s=2.5"]);
    let Arrivals::Closed { users, think_time_s } = &closed.workload.arrivals else {
        panic!("not a closed loop")
    };
    assert_eq!((users, think_time_s), (&7, &Distribution::Constant { value: 2.5 }));
    let all = scenario(MINIMAL, &["arrivals.all_at_once=true", "run.requests=40"]);
    assert!(matches!(all.workload.arrivals, Arrivals::AllAtOnce));
    assert_eq!((all.run.mode, all.run.replications), (RunMode::Benchmark, 1));
    let timed = scenario(MINIMAL, &["run.requests=40", "run.duration_s=60"]);
    assert_eq!(timed.run.length, RunLength::DurationS(60.0));
    // A version may be written as it is published, and without quotes.
    for version in ["0.19", "0.19.0", "\"0.19\""] {
        let scenario = scenario(MINIMAL, &[&format!("engine.version={version}")]);
        assert_eq!(scenario.serving.unwrap().engine.version, "0.19");
    }
    assert_refused(
        MINIMAL,
        &["engine.max_num_seqs=many"],
        "
error: wrong type for `engine.max_num_seqs`
 --> command line:1:27
  |
1 | --set engine.max_num_seqs=many
  |                           ^^^^ found the text \"many\", expected a whole number from 1 to 1000000",
    );
    let message = refusal(MINIMAL, &["engine.max_num_seq=4"]);
    assert!(
        message.contains("did you mean `max_num_seqs`?") && message.contains("command line:1:7"),
        "{message}"
    );
    assert!(Override::parse("engine.max_num_seqs").is_err() && Override::parse("=3").is_err());
    assert!(Document::parse("", None).unwrap().with_overrides(&[Override::new("a..b", "1")]).is_err());
}

#[test]
fn a_class_is_addressed_by_name_or_number() {
    let text = format!(
        "{SYNTHETIC}[[class]]\nname = \"chat\"\nshare = 0.7\n[[class]]\nname = \"code\"\nshare = 0.3\n"
    );
    let scenario =
        scenario(&text, &["class.chat.share=0.4", "class.1.share=0.6", "class.code.slo.e2e_p99_ms=300"]);
    let classes = &scenario.workload.classes;
    assert_eq!((classes[0].share, classes[1].share), (0.4, 0.6));
    assert_eq!(classes[1].slo.objectives[0].limit_s, 0.3);
    let message = refusal(&text, &["class.cod.share=0.4"]);
    assert!(message.contains("no class `cod`") && message.contains("there are: chat, code"), "{message}");
}

#[test]
fn axes_are_lists_or_ranges_and_their_points_resolve() {
    let text = format!(
        "{MINIMAL}[sweep]\n\"arrivals.poisson.rate_per_s\" = {{ from = 1, to = 4, points = 4 }}\n\
         \"engine.max_num_seqs\" = {{ from = 1, to = 100, points = 3, scale = \"log\" }}\n\
         \"hardware.gpu\" = [\"h100-sxm\", \"h200-sxm\"]\n"
    );
    let document = Document::parse(&text, None).unwrap();
    let catalog = Catalog::new(None);
    let base = document.scenario(&catalog).unwrap();
    let values: Vec<&[AxisValue]> = base.sweep.iter().map(|axis| axis.values.as_slice()).collect();
    assert_eq!(values[0], [1.0, 2.0, 3.0, 4.0].map(AxisValue::Float));
    assert_eq!(values[1], [1, 10, 100].map(AxisValue::Integer));
    let point = |axis: usize, value: usize| {
        let axis = &base.sweep[axis];
        Override::point(&axis.key, &axis.values[value])
    };
    let point = document.with_overrides(&[point(0, 2), point(1, 1), point(2, 1)]).unwrap();
    let point = point.scenario(&catalog).unwrap();
    assert_eq!(point.workload.arrivals.rate_per_s(), Some(3.0));
    assert_eq!(point.serving.unwrap().hardware.name, "h200-sxm");

    for (axis, words) in [
        ("\"arrivals.poisson.rate_per_s\" = [1, -2]", "found -2, expected a number above 0"),
        ("\"arrivals.poisson.rate_per_s\" = []", "found 0 values"),
        ("\"arrivals.poisson.rate_per_s\" = { from = 1, to = 4 }", "expected a list or { from = 1"),
        (
            "\"engine.max_num_seqs\" = { from = 1.5, to = 4, points = 2 }",
            "found 1.5, expected a whole number",
        ),
        ("\"engine.batching\" = [\"statik\"]", "expected one of \"continuous\", \"static\""),
        ("arrivals.poisson.rate_per_s = [1]", "put the whole dotted key in quotes"),
    ] {
        let message = refusal(&format!("{MINIMAL}[sweep]\n{axis}\n"), &[]);
        assert!(message.contains(words), "{axis}:\n{message}");
    }
}

#[test]
fn problems_name_the_option_that_brought_them() {
    let refused = |change: Override| {
        let document = Document::parse(MINIMAL, None).unwrap().with_overrides(&[change]).unwrap();
        document.scenario(&Catalog::new(None)).expect_err("it is wrong").render(false)
    };
    let text = refused(Override::pair("--vary", "engine.max_num_seq", "8"));
    assert!(
        text.contains("1 | --vary engine.max_num_seq=8") && text.contains("--> command line:1:8"),
        "{text}"
    );
    let text = refused(Override::parse_of("--set-b", "run.requests=0").unwrap());
    assert!(text.contains("1 | --set-b run.requests=0"), "{text}");
    let text = refused(Override::option("--seed", "seed", "-1"));
    assert!(text.contains("1 | --seed -1") && text.contains("--> command line:1:8"), "{text}");
    let text = Override::parse_of("--set-a", "nonsense").unwrap_err().render(false);
    assert!(text.contains("`--set-a nonsense` is not `key=value`"), "{text}");
}

#[test]
fn documents_differ_in_what_changes_a_run() {
    let document = |text: &str| Document::parse(text, None).expect("TOML");
    let a = "name = 'a'\n[hardware]\ngpu = 'l4'\nprofile = 'auto'\n[engine]\ntensor_parallel_size = 1\nmax_num_seqs = 64\n\
             [arrivals.poisson]\nrate_per_s = 12.0\n[[class]]\nname = 'x'\ninput_tokens = { constant = 5 }\n";
    let b = "name = 'b'\n[hardware]\ngpu = 'l4'\n[engine]\nmax_num_seqs = 128\n[deployment]\nreplicas = 1\n\
             [arrivals.constant]\nrate_per_s = 12\n[[class]]\nname = 'x'\ninput_tokens = 5\n";
    let found = document(a).differences(&document(b));
    let texts: Vec<(&str, Option<&str>, Option<&str>)> =
        found.iter().map(|one| (one.key.as_str(), one.a.as_deref(), one.b.as_deref())).collect();
    assert_eq!(
        texts,
        [
            ("engine.max_num_seqs", Some("64"), Some("128")),
            ("arrivals.poisson.rate_per_s", Some("12"), None),
            ("arrivals.constant.rate_per_s", None, Some("12")),
            ("class.x.input_tokens", Some("{ constant = 5 }"), Some("5")),
        ]
    );
    assert!(document(a).differences(&document(a)).is_empty());
    // A default that is spelt out is one only beside itself.
    let two =
        document(a).with_overrides(&[Override::new("engine.tensor_parallel_size", "2")]).expect("a key");
    assert!(two.differences(&document(b)).iter().any(|one| one.key == "engine.tensor_parallel_size"));
}
