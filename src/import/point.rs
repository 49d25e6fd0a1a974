//! What an importer delivers: load points, requests and facts about the server, in our words.
//!
//! Times are seconds, throughputs are of the whole deployment over the stated duration, and what a file
//! does not say is `None`, never 0.

use serde::Serialize;

/// One measured load: what was sent and what came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadPoint {
    /// Where in its source it stands, such as `line 3` or `benchmarks[0]`; empty if it is all of it.
    pub label: String,
    /// How requests were sent.
    pub arrival: Arrival,
    /// Requests per second offered, where a rate decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Requests that the client keeps in flight: the users of a closed loop, else a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<TokenLengths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<TokenLengths>,
    /// Requests that ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// The window that throughput is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens_per_s: Option<f64>,
    /// Requests per second that met the tool's own objectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_per_s: Option<f64>,
    /// Send to first token.
    pub ttft: LatencyStats,
    /// (E2E - TTFT) / (output tokens - 1), per request.
    pub tpot: LatencyStats,
    /// Gaps between tokens, pooled, the first excluded.
    pub itl: LatencyStats,
    /// Send to last token.
    pub e2e: LatencyStats,
    /// E2E / output tokens, per request.
    pub ntpot: LatencyStats,
    /// Where the latencies were taken.
    pub measured_at: MeasuredAt,
    /// What served it.
    pub server: ServerFacts,
}

/// How requests were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Exponential gaps.
    Poisson,
    /// Gamma gaps, squared coefficient of variation 1/`burstiness`.
    Gamma { burstiness: f64 },
    /// Equal gaps.
    Constant,
    /// Users who each wait for their answer.
    Closed,
    /// Every request at once (`--request-rate inf`).
    AllAtOnce,
    /// The file does not say.
    #[default]
    Unknown,
}

impl Arrival {
    /// The name in `curve.csv`: the scenario's `[arrivals.*]` kind, or `unknown`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Gamma { .. } => "gamma",
            Self::Constant => "constant",
            Self::Closed => "closed",
            Self::AllAtOnce => "all_at_once",
            Self::Unknown => "unknown",
        }
    }
}

/// Where latencies were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredAt {
    /// By the load generator, network and front end included.
    #[default]
    Client,
    /// By the server's own counters.
    Server,
}

/// Token lengths of the requests of a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TokenLengths {
    pub mean: f64,
    pub kind: LengthKind,
}

/// What is known about lengths besides their mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthKind {
    /// Every request has this length.
    Constant,
    /// Uniform between the two.
    Uniform { min: f64, max: f64 },
    /// Counted; the distribution is not in the file.
    Mean,
    /// Asked for, not counted.
    Nominal,
}

impl LengthKind {
    /// The name in `curve.csv`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Uniform { .. } => "uniform",
            Self::Mean => "mean",
            Self::Nominal => "nominal",
        }
    }
}

impl TokenLengths {
    pub(super) const fn mean(mean: f64) -> Self {
        Self { mean, kind: LengthKind::Mean }
    }

    /// Counted lengths, constant if nothing varied.
    pub(super) fn counted(mean: f64, min: Option<f64>, max: Option<f64>) -> Self {
        let constant = min.is_some() && min == max;
        Self { mean, kind: if constant { LengthKind::Constant } else { LengthKind::Mean } }
    }
}

/// Mean and percentiles of a latency, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyStats {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
}

impl LatencyStats {
    /// The statistics by their names in `curve.csv`.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("mean", self.mean_s),
            ("p50", self.p50_s),
            ("p90", self.p90_s),
            ("p95", self.p95_s),
            ("p99", self.p99_s),
        ]
    }

    /// As [`LatencyStats::named`], to be set.
    pub(super) const fn named_mut(&mut self) -> [(&'static str, &mut Option<f64>); 5] {
        [
            ("mean", &mut self.mean_s),
            ("p50", &mut self.p50_s),
            ("p90", &mut self.p90_s),
            ("p95", &mut self.p95_s),
            ("p99", &mut self.p99_s),
        ]
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named().iter().all(|(_, value)| value.is_none())
    }

    /// Exact statistics of `values` (percentiles interpolated, as numpy does).
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else { return Self::default() };
        let at = |q: f64| {
            let position = q * last as f64;
            let (low, high) = (values[position as usize], values[(position as usize + 1).min(last)]);
            Some(low + (high - low) * position.fract())
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self { mean_s: Some(mean), p50_s: at(0.5), p90_s: at(0.9), p95_s: at(0.95), p99_s: at(0.99) }
    }
}

impl LoadPoint {
    /// The latencies by our names.
    #[must_use]
    pub const fn latencies(&self) -> [(&'static str, &LatencyStats); 5] {
        [
            ("ttft", &self.ttft),
            ("tpot", &self.tpot),
            ("itl", &self.itl),
            ("e2e", &self.e2e),
            ("ntpot", &self.ntpot),
        ]
    }

    /// As [`LoadPoint::latencies`], to be set.
    pub(super) const fn latencies_mut(&mut self) -> [(&'static str, &mut LatencyStats); 5] {
        [
            ("ttft", &mut self.ttft),
            ("tpot", &mut self.tpot),
            ("itl", &mut self.itl),
            ("e2e", &mut self.e2e),
            ("ntpot", &mut self.ntpot),
        ]
    }

    /// Mean E2E as reported, else from mean TTFT, TPOT and output length (exact where all outputs are of
    /// one length).
    #[must_use]
    pub fn e2e_mean_s(&self) -> Option<f64> {
        let composed = || {
            let tokens = (self.output_tokens?.mean - 1.0).max(0.0);
            Some(self.ttft.mean_s? + if tokens > 0.0 { self.tpot.mean_s? * tokens } else { 0.0 })
        };
        self.e2e.mean_s.or_else(composed)
    }

    /// Mean number in flight by Little's law: completed per second times mean E2E.
    #[must_use]
    pub fn in_flight(&self) -> Option<f64> {
        Some(self.requests_per_s? * self.e2e_mean_s()?)
    }

    /// A point from its requests: rates over the time from the first send to the last answer, exact
    /// statistics. The arrival process is not guessed.
    pub(super) fn of_requests(requests: &[MeasuredRequest]) -> Self {
        let ended = |request: &MeasuredRequest| request.send_s + request.e2e_s;
        let first = requests.iter().map(|r| r.send_s).fold(f64::INFINITY, f64::min);
        let last = requests.iter().map(ended).fold(f64::NEG_INFINITY, f64::max);
        let last_send = requests.iter().map(|r| r.send_s).fold(f64::NEG_INFINITY, f64::max);
        let duration = last - first;
        if !(duration > 0.0 && duration.is_finite()) {
            return Self { completed: Some(requests.len() as u64), ..Self::default() };
        }
        let sum = |pick: fn(&MeasuredRequest) -> u32| requests.iter().map(|r| f64::from(pick(r))).sum();
        let (input, output): (f64, f64) = (sum(|r| r.input_tokens), sum(|r| r.output_tokens));
        let of = |pick: fn(&MeasuredRequest) -> Option<f64>| {
            LatencyStats::of(requests.iter().filter_map(pick).collect())
        };
        Self {
            rate_per_s: (last_send > first).then(|| (requests.len() - 1) as f64 / (last_send - first)),
            input_tokens: lengths_of(requests, |r| r.input_tokens),
            output_tokens: lengths_of(requests, |r| r.output_tokens),
            completed: Some(requests.len() as u64),
            duration_s: Some(duration),
            requests_per_s: Some(requests.len() as f64 / duration),
            input_tokens_per_s: Some(input / duration),
            output_tokens_per_s: Some(output / duration),
            total_tokens_per_s: Some((input + output) / duration),
            ttft: of(|r| r.ttft_s),
            tpot: of(MeasuredRequest::tpot_s),
            e2e: of(|r| Some(r.e2e_s)),
            ntpot: of(|r| (r.output_tokens > 0).then(|| r.e2e_s / f64::from(r.output_tokens))),
            ..Self::default()
        }
    }
}

fn lengths_of(requests: &[MeasuredRequest], pick: fn(&MeasuredRequest) -> u32) -> Option<TokenLengths> {
    let min = requests.iter().map(pick).min()?;
    let max = requests.iter().map(pick).max()?;
    let sum: f64 = requests.iter().map(|r| f64::from(pick(r))).sum();
    let mean = sum / requests.len() as f64;
    Some(TokenLengths::counted(mean, Some(f64::from(min)), Some(f64::from(max))))
}

/// One measured request that ended well.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeasuredRequest {
    /// Index of its load point in [`super::Imported::points`].
    pub point: usize,
    /// When it was sent, from the first request of its point.
    pub send_s: f64,
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Send to first token, where measured (not without streaming).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_s: Option<f64>,
    /// Send to last token.
    pub e2e_s: f64,
}

impl MeasuredRequest {
    /// (E2E - TTFT) / (output tokens - 1); `None` for a single token.
    #[must_use]
    pub fn tpot_s(&self) -> Option<f64> {
        let gaps = self.output_tokens.checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some((self.e2e_s - self.ttft_s?) / f64::from(gaps))
    }
}

/// What a file says about the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerFacts {
    /// As the file names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// As the file names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Engine and version as a scenario names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_parallel_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_parallel_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_parallel_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_expert_parallel: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_num_seqs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_num_batched_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_memory_utilization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_cache_dtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_prefix_caching: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_chunked_prefill: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_gpu_blocks: Option<u64>,
    /// `GPU KV cache size: N tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_cache_tokens: Option<u64>,
    /// `Maximum concurrency for N tokens per request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<f64>,
    /// Per GPU, GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_kv_cache_gib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights_gib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation_peak_gib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_torch_gib: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_graphs_gib: Option<f64>,
    /// Memory the driver reports, GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_memory_gib: Option<f64>,
}

/// Takes from `$from` what `$into` does not know.
macro_rules! fill {
    ($into:ident, $from:ident, $($field:ident),+ $(,)?) => {
        $(if $into.$field.is_none() { $into.$field.clone_from(&$from.$field); })+
    };
}

impl ServerFacts {
    /// Takes from `other` what is not known here.
    pub fn fill_from(&mut self, other: &Self) {
        fill!(
            self,
            other,
            model,
            gpu,
            engine,
            version,
            tensor_parallel_size,
            pipeline_parallel_size,
            data_parallel_size,
            enable_expert_parallel,
            replicas,
            max_model_len,
            max_num_seqs,
            max_num_batched_tokens,
            gpu_memory_utilization,
            block_size,
            kv_cache_dtype,
            enable_prefix_caching,
            enable_chunked_prefill,
            quantization,
            num_gpu_blocks,
            kv_cache_tokens,
            max_concurrency,
            available_kv_cache_gib,
            weights_gib,
            activation_peak_gib,
            non_torch_gib,
            cuda_graphs_gib,
            total_memory_gib,
        );
    }
}
