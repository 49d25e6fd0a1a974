//! Named workloads for those who say nothing about lengths and objectives.
//!
//! They are assumptions, not measurements: an answer that rests on one says so first, and is repeated for
//! half and double lengths to show how far it moves.

/// A workload that people mean when they say a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Template {
    pub name: &'static str,
    /// Mean and 99th percentile of the lognormal lengths, in tokens.
    pub input_tokens: (f64, f64),
    pub output_tokens: (f64, f64),
    /// 99th percentiles of TTFT and TPOT in ms; `None` where nobody waits.
    pub slo_ms: Option<(f64, f64)>,
}

/// Every template.
pub const TEMPLATES: [Template; 5] = [
    Template {
        name: "chat",
        input_tokens: (512.0, 4096.0),
        output_tokens: (200.0, 1000.0),
        slo_ms: Some((1000.0, 50.0)),
    },
    Template {
        name: "code",
        input_tokens: (2000.0, 12_000.0),
        output_tokens: (150.0, 800.0),
        slo_ms: Some((1000.0, 40.0)),
    },
    Template {
        name: "rag",
        input_tokens: (4000.0, 12_000.0),
        output_tokens: (300.0, 1000.0),
        slo_ms: Some((2000.0, 60.0)),
    },
    Template {
        name: "long-document",
        input_tokens: (12_000.0, 60_000.0),
        output_tokens: (500.0, 1500.0),
        slo_ms: Some((15_000.0, 80.0)),
    },
    Template {
        name: "offline",
        input_tokens: (6000.0, 24_000.0),
        output_tokens: (400.0, 1200.0),
        slo_ms: None,
    },
];

impl Template {
    /// The template called `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        TEMPLATES.into_iter().find(|template| template.name == name)
    }

    /// The keys of its class in a scenario with their values, lengths times `scale`.
    #[must_use]
    pub fn class_keys(&self, scale: f64) -> Vec<(String, String)> {
        let lengths = |(mean, p99): (f64, f64)| {
            format!("{{ lognormal = {{ mean = {:?}, p99 = {:?} }} }}", mean * scale, p99 * scale)
        };
        let mut keys = vec![
            ("class.0.name".to_owned(), format!("\"{}\"", self.name)),
            ("class.0.input_tokens".to_owned(), lengths(self.input_tokens)),
            ("class.0.output_tokens".to_owned(), lengths(self.output_tokens)),
        ];
        keys.extend(self.slo_ms.map(|(ttft, tpot)| {
            ("class.0.slo".to_owned(), format!("{{ ttft_p99_ms = {ttft:?}, tpot_p99_ms = {tpot:?} }}"))
        }));
        keys
    }

    /// In words: `chat: 512 input and 200 output tokens on average (p99 4096 and 1000), ...`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let objectives = match self.slo_ms {
            Some((ttft, tpot)) => format!("TTFT p99 ≤ {ttft} ms and TPOT p99 ≤ {tpot} ms"),
            None => "no objective: nobody waits".to_owned(),
        };
        format!(
            "{}: {} input and {} output tokens on average (p99 {} and {}), {objectives}",
            self.name, self.input_tokens.0, self.output_tokens.0, self.input_tokens.1, self.output_tokens.1
        )
    }
}
