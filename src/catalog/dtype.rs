//! Number formats of weights and KV cache.

use std::fmt;

use serde::Deserialize;

/// Number formats of weights and KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    Bf16,
    Fp8,
    Int8,
    Mxfp4,
    Nvfp4,
    Int4,
}

impl Dtype {
    /// All formats, widest first.
    pub const ALL: [Self; 6] = [Self::Bf16, Self::Fp8, Self::Int8, Self::Nvfp4, Self::Mxfp4, Self::Int4];

    /// The name used in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Int8 => "int8",
            Self::Mxfp4 => "mxfp4",
            Self::Nvfp4 => "nvfp4",
            Self::Int4 => "int4",
        }
    }

    /// The format called `name` in scenarios.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bits that a weight takes, its share of the scales included: one f32 per 128 x 128 block (fp8) or
    /// per row of a few thousand (int8), one byte per 32 (mxfp4) or 16 (nvfp4) weights, an f16 scale and
    /// zero point per 128 (int4).
    #[must_use]
    pub const fn bits_per_weight(self) -> f64 {
        match self {
            Self::Bf16 => 16.0,
            Self::Fp8 => 8.0 + 32.0 / (128.0 * 128.0),
            Self::Int8 => 8.0 + 32.0 / 4096.0,
            Self::Mxfp4 => 4.25,
            Self::Nvfp4 => 4.5,
            Self::Int4 => 4.25,
        }
    }

    /// Bytes of one KV-cache element. Engines store KV in 16 or 8 bits; 4-bit formats count as 8.
    #[must_use]
    pub const fn kv_bytes(self) -> u64 {
        match self {
            Self::Bf16 => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
