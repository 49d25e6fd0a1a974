//! The figures that a load generator reports of a run, and how they follow from its requests.

use crate::stats::mean;

/// One figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    TtftMean,
    TtftP50,
    TtftP99,
    TpotMean,
    TpotP50,
    TpotP99,
    E2eMean,
    E2eP50,
    E2eP99,
    RequestThroughput,
    OutputThroughput,
}

/// Figures that move together, because they describe the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Ttft,
    Tpot,
    E2e,
    Throughput,
}

impl Family {
    pub const ALL: [Self; 4] = [Self::Ttft, Self::Tpot, Self::E2e, Self::Throughput];
}

impl Figure {
    pub const ALL: [Self; 11] = [
        Self::TtftMean,
        Self::TtftP50,
        Self::TtftP99,
        Self::TpotMean,
        Self::TpotP50,
        Self::TpotP99,
        Self::E2eMean,
        Self::E2eP50,
        Self::E2eP99,
        Self::RequestThroughput,
        Self::OutputThroughput,
    ];

    /// The column of a file of load points, which carries the unit.
    #[must_use]
    pub const fn column(self) -> &'static str {
        match self {
            Self::TtftMean => "ttft_mean_ms",
            Self::TtftP50 => "ttft_p50_ms",
            Self::TtftP99 => "ttft_p99_ms",
            Self::TpotMean => "tpot_mean_ms",
            Self::TpotP50 => "tpot_p50_ms",
            Self::TpotP99 => "tpot_p99_ms",
            Self::E2eMean => "e2e_mean_ms",
            Self::E2eP50 => "e2e_p50_ms",
            Self::E2eP99 => "e2e_p99_ms",
            Self::RequestThroughput => "requests_per_s",
            Self::OutputThroughput => "output_tokens_per_s",
        }
    }

    /// For people, without the unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TtftMean => "TTFT mean",
            Self::TtftP50 => "TTFT p50",
            Self::TtftP99 => "TTFT p99",
            Self::TpotMean => "TPOT mean",
            Self::TpotP50 => "TPOT p50",
            Self::TpotP99 => "TPOT p99",
            Self::E2eMean => "E2E mean",
            Self::E2eP50 => "E2E p50",
            Self::E2eP99 => "E2E p99",
            Self::RequestThroughput => "throughput",
            Self::OutputThroughput => "output throughput",
        }
    }

    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::TtftMean | Self::TtftP50 | Self::TtftP99 => Family::Ttft,
            Self::TpotMean | Self::TpotP50 | Self::TpotP99 => Family::Tpot,
            Self::E2eMean | Self::E2eP50 | Self::E2eP99 => Family::E2e,
            Self::RequestThroughput | Self::OutputThroughput => Family::Throughput,
        }
    }
}

/// The figures of one run, in the unit of their [`Figure::column`]; absent where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures([Option<f64>; Figure::ALL.len()]);

/// What a request of a run was to its user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    pub ttft_s: f64,
    pub e2e_s: f64,
    pub output_tokens: u32,
}

impl Figures {
    #[must_use]
    pub fn get(&self, figure: Figure) -> Option<f64> {
        self.0[figure as usize]
    }

    pub fn set(&mut self, figure: Figure, value: f64) {
        self.0[figure as usize] = Some(value);
    }

    /// Those that are there.
    pub fn iter(&self) -> impl Iterator<Item = (Figure, f64)> + '_ {
        Figure::ALL.into_iter().filter_map(|figure| Some((figure, self.get(figure)?)))
    }

    /// The figures of `answers` over `span_s`, from the first request sent to the last token.
    pub(super) fn of(answers: &[Answer], span_s: f64) -> Self {
        let mut figures = Self::default();
        let ttft: Vec<f64> = answers.iter().map(|answer| answer.ttft_s).collect();
        let e2e: Vec<f64> = answers.iter().map(|answer| answer.e2e_s).collect();
        let several = answers.iter().filter(|answer| answer.output_tokens > 1);
        let tpot: Vec<f64> = several.map(|a| (a.e2e_s - a.ttft_s) / f64::from(a.output_tokens - 1)).collect();
        figures.put([Figure::TtftMean, Figure::TtftP50, Figure::TtftP99], ttft);
        figures.put([Figure::TpotMean, Figure::TpotP50, Figure::TpotP99], tpot);
        figures.put([Figure::E2eMean, Figure::E2eP50, Figure::E2eP99], e2e);
        if span_s > 0.0 && !answers.is_empty() {
            let tokens: f64 = answers.iter().map(|answer| f64::from(answer.output_tokens)).sum();
            figures.set(Figure::RequestThroughput, answers.len() as f64 / span_s);
            figures.set(Figure::OutputThroughput, tokens / span_s);
        }
        figures
    }

    /// Mean, median and 99th percentile of latencies in seconds, in ms.
    fn put(&mut self, [average, p50, p99]: [Figure; 3], mut seconds: Vec<f64>) {
        seconds.sort_by(f64::total_cmp);
        if let Some(value) = mean(&seconds) {
            self.set(average, value * 1e3);
            self.set(p50, quantile(&seconds, 0.5) * 1e3);
            self.set(p99, quantile(&seconds, 0.99) * 1e3);
        }
    }
}

/// The quantile of sorted values as load generators compute it: linear between ranks `q (n - 1)`.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = q * (sorted.len() - 1) as f64;
    let low = rank as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * (rank - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: TTFT 10 and 30 ms; TPOT (110 - 10) / 10 = 10 ms of the first, none of the second.
    #[test]
    fn figures_follow_from_requests() {
        let answers = [
            Answer { ttft_s: 0.010, e2e_s: 0.110, output_tokens: 11 },
            Answer { ttft_s: 0.030, e2e_s: 0.030, output_tokens: 1 },
        ];
        let figures = Figures::of(&answers, 2.0);
        let near = |figure: Figure, value: f64| {
            assert!((figures.get(figure).unwrap() - value).abs() < 1e-9, "{figure:?}");
        };
        near(Figure::TtftMean, 20.0);
        near(Figure::TtftP99, 29.8);
        near(Figure::TpotMean, 10.0);
        near(Figure::E2eP50, 70.0);
        near(Figure::RequestThroughput, 1.0);
        near(Figure::OutputThroughput, 6.0);
    }

    #[test]
    fn nothing_has_no_figures() {
        assert_eq!(Figures::of(&[], 1.0).iter().count(), 0);
    }
}
