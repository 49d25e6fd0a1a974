//! The parameters that can be fitted: where they stand in a profile, their bounds and their scale.

use crate::catalog::{AllReduce, Hardware, ProfileValues};

/// A parameter of the step-time model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// e of the weights' compute type.
    Compute,
    /// b: weight streaming.
    Memory,
    /// e of routed experts.
    ExpertCompute,
    /// Rows at which routed experts reach half of their compute.
    ExpertHalfTokens,
    /// Columns of a slice of an expert at which it reaches half of its compute.
    ExpertHalfWidth,
    /// Reading routed experts, over dense matrices.
    ExpertMemory,
    /// phi: how far tokens pick alike experts.
    ExpertCorrelation,
    /// h: tokens at which GEMMs reach half of their compute.
    HalfTokens,
    /// `b_kv`: reading KV.
    KvMemory,
    /// `b_kv` of an fp8 cache.
    Fp8KvMemory,
    /// `e_a`: prefill attention.
    AttentionCompute,
    /// t0 per layer.
    OverheadPerLayer,
    /// Launching a step with prompt tokens, per layer.
    PrefillLaunchPerLayer,
    /// `t_seq`.
    PerSequence,
    /// fr.
    FrontEnd,
    /// Share of compute that is lost while it never pauses.
    Throttle,
    /// Start-up time of all-reduces, as a multiple of the hardware's.
    AllReduceStartup,
    /// Bus bandwidth of all-reduces, as a multiple of the hardware's.
    AllReduceBus,
}

use Parameter::*;

impl Parameter {
    /// All of them, in a profile's order.
    pub const ALL: [Self; 18] = [
        Compute,
        Memory,
        ExpertCompute,
        ExpertHalfTokens,
        ExpertHalfWidth,
        ExpertMemory,
        ExpertCorrelation,
        HalfTokens,
        KvMemory,
        Fp8KvMemory,
        AttentionCompute,
        OverheadPerLayer,
        PrefillLaunchPerLayer,
        PerSequence,
        FrontEnd,
        Throttle,
        AllReduceStartup,
        AllReduceBus,
    ];

    /// Its key in a profile, in whose unit its values are.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Compute => "compute",
            Memory => "memory",
            ExpertCompute => "expert_compute",
            ExpertHalfTokens => "expert_half_tokens",
            ExpertHalfWidth => "expert_half_width",
            ExpertMemory => "expert_memory",
            ExpertCorrelation => "expert_correlation",
            HalfTokens => "half_tokens",
            KvMemory => "kv_memory",
            Fp8KvMemory => "fp8_kv_memory",
            AttentionCompute => "attention_compute",
            OverheadPerLayer => "overhead_per_layer_us",
            PrefillLaunchPerLayer => "prefill_launch_per_layer_us",
            PerSequence => "per_sequence_us",
            FrontEnd => "front_end_ms",
            Throttle => "throttle",
            AllReduceStartup => "all_reduce_startup",
            AllReduceBus => "all_reduce_bus",
        }
    }

    /// The one of that key.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.key() == key)
    }

    /// Whether it is a fraction of a datasheet peak.
    #[must_use]
    pub const fn is_fraction(self) -> bool {
        matches!(self, Compute | Memory | ExpertCompute | KvMemory | Fp8KvMemory | AttentionCompute)
    }

    /// Whether a dense model has nothing of it.
    #[must_use]
    pub const fn is_of_experts(self) -> bool {
        matches!(self, ExpertCompute | ExpertHalfTokens | ExpertHalfWidth | ExpertMemory | ExpertCorrelation)
    }

    /// Whether it multiplies the hardware's figures instead of standing in a profile itself.
    #[must_use]
    pub const fn is_multiple(self) -> bool {
        matches!(self, AllReduceStartup | AllReduceBus)
    }

    /// Those that stand in a profile, of a dense model or of one with experts.
    pub fn of_values(has_experts: bool) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |one| !one.is_multiple() && (has_experts || !one.is_of_experts()))
    }

    /// What physics allows: fractions of a peak up to 1, host constants down to practically nothing.
    #[must_use]
    pub const fn bounds(self) -> (f64, f64) {
        match self {
            Compute | Memory | ExpertCompute | KvMemory | Fp8KvMemory | AttentionCompute => (0.01, 1.0),
            ExpertMemory => (0.1, 3.0),
            ExpertCorrelation => (0.001, 0.5),
            HalfTokens | ExpertHalfTokens => (0.5, 1000.0),
            ExpertHalfWidth => (5.0, 20_000.0),
            OverheadPerLayer => (1.0, 1000.0),
            PrefillLaunchPerLayer => (10.0, 5000.0),
            PerSequence => (0.5, 1000.0),
            FrontEnd => (0.1, 1000.0),
            Throttle => (0.005, 0.5),
            // Launched outside of a graph it starts four times as late as in one (operator tables of H200).
            AllReduceStartup => (0.05, 4.0),
            AllReduceBus => (0.05, 20.0),
        }
    }

    /// Step of finite differences, in the logarithm: large enough that a changed schedule (requests that
    /// fall into another step) averages out.
    pub(super) const fn step(self) -> f64 {
        match self {
            Compute | Memory | ExpertCompute => 0.02,
            ExpertMemory | KvMemory | Fp8KvMemory | AttentionCompute => 0.05,
            OverheadPerLayer | PrefillLaunchPerLayer | FrontEnd => 0.1,
            Throttle | ExpertCorrelation | ExpertHalfTokens | ExpertHalfWidth | HalfTokens | PerSequence
            | AllReduceStartup | AllReduceBus => 0.2,
        }
    }

    /// Its value in `values`; multiples of the hardware's figures are 1 before they are fitted.
    #[must_use]
    pub fn value_in(self, values: &ProfileValues) -> f64 {
        match self {
            Compute => values.compute,
            Memory => values.memory,
            ExpertCompute => values.expert_compute,
            ExpertHalfTokens => values.expert_half_tokens,
            ExpertHalfWidth => values.expert_half_width,
            ExpertMemory => values.expert_memory,
            ExpertCorrelation => values.expert_correlation,
            HalfTokens => values.half_tokens,
            KvMemory => values.kv_memory,
            Fp8KvMemory => values.fp8_kv_memory,
            AttentionCompute => values.attention_compute,
            OverheadPerLayer => values.overhead_per_layer_s * 1e6,
            PrefillLaunchPerLayer => values.prefill_launch_per_layer_s * 1e6,
            PerSequence => values.per_sequence_s * 1e6,
            FrontEnd => values.front_end_s * 1e3,
            Throttle => values.throttle,
            AllReduceStartup | AllReduceBus => 1.0,
        }
    }

    /// Where a search for it starts: its prior, or within its bounds where that is 0.
    pub(super) fn start(self, values: &ProfileValues) -> f64 {
        let (low, high) = self.bounds();
        let least = match self {
            ExpertCorrelation => 0.1,
            HalfTokens | ExpertHalfTokens => 10.0,
            ExpertHalfWidth => 100.0,
            PrefillLaunchPerLayer => 300.0,
            _ => low,
        };
        self.value_in(values).clamp(least, high)
    }

    /// Writes `value` into `values`.
    pub(super) fn apply(self, value: f64, values: &mut ProfileValues, hardware: &Hardware) {
        match self {
            Compute => values.compute = value,
            Memory => values.memory = value,
            ExpertCompute => values.expert_compute = value,
            ExpertHalfTokens => values.expert_half_tokens = value,
            ExpertHalfWidth => values.expert_half_width = value,
            ExpertMemory => values.expert_memory = value,
            ExpertCorrelation => values.expert_correlation = value,
            HalfTokens => values.half_tokens = value,
            KvMemory => values.kv_memory = value,
            Fp8KvMemory => values.fp8_kv_memory = value,
            AttentionCompute => values.attention_compute = value,
            OverheadPerLayer => values.overhead_per_layer_s = value * 1e-6,
            PrefillLaunchPerLayer => values.prefill_launch_per_layer_s = value * 1e-6,
            PerSequence => values.per_sequence_s = value * 1e-6,
            FrontEnd => values.front_end_s = value * 1e-3,
            Throttle => values.throttle = value,
            AllReduceStartup => scale(values, hardware, |point| *point = point.with_startups(value)),
            AllReduceBus => scale(values, hardware, |point| point.bus_bytes_per_s *= value),
        }
    }
}

fn scale(values: &mut ProfileValues, hardware: &Hardware, change: impl Fn(&mut AllReduce)) {
    if values.all_reduce.is_empty() {
        values.all_reduce.clone_from(&hardware.kernels.all_reduce);
    }
    values.all_reduce.iter_mut().for_each(change);
}
