//! GPUs: datasheet figures and kernel efficiencies.

use serde::Deserialize;

use super::files::File;
use super::price::Price;
use super::{CatalogError, Dtype};
use crate::units::Bytes;

/// A GPU: datasheet figures, kernel efficiencies and price.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// Key in scenarios, such as `h100-sxm`.
    pub name: String,
    pub title: String,
    /// Memory the driver reports as total (what the engine's utilisation is a fraction of).
    pub memory_bytes: Bytes,
    pub memory_bandwidth_bytes_per_s: f64,
    /// Dense peak FLOP/s; `None` where the chip has no units for it.
    pub bf16_flops: f64,
    pub fp8_flops: Option<f64>,
    pub fp4_flops: Option<f64>,
    pub int8_ops: Option<f64>,
    /// Scale-up link, unidirectional bytes/s per GPU, and how many GPUs it joins.
    pub link_name: String,
    pub link_bytes_per_s: f64,
    pub link_domain: u32,
    /// Kernel-level efficiencies (fractions of the peaks above) and all-reduce figures.
    pub kernels: Kernels,
    pub price: Option<Price>,
    /// Where the figures are from, each group named.
    pub source: String,
}

impl Hardware {
    /// The fastest peak that kernels for weights stored as `dtype` could use, FLOP/s.
    #[must_use]
    pub fn fastest_flops(&self, dtype: Dtype) -> f64 {
        let eight = self.fp8_flops.into_iter().chain(self.int8_ops);
        let low = match dtype {
            Dtype::Bf16 => 0.0,
            Dtype::Fp8 | Dtype::Int8 => eight.fold(0.0, f64::max),
            Dtype::Mxfp4 | Dtype::Nvfp4 | Dtype::Int4 => eight.chain(self.fp4_flops).fold(0.0, f64::max),
        };
        self.bf16_flops.max(low)
    }
}

/// Kernel efficiencies of a GPU: fractions of datasheet peaks, from operator tables or estimated.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// GEMM compute efficiency e for bf16 weights; memory efficiency b.
    pub bf16_compute: f64,
    pub bf16_memory: f64,
    /// The same for fp8 weights, where known.
    pub fp8_compute: Option<f64>,
    pub fp8_memory: Option<f64>,
    /// Fused kernels of routed experts, by the dtype of their weights; empty where not known.
    pub experts: Vec<ExpertKernels>,
    /// Decode attention's bandwidth efficiency b_kv; prefill attention's compute efficiency e_a (of bf16 peak).
    pub kv_memory: f64,
    /// b_kv of an fp8 cache, where known: half the bytes take more than half the time on some chips.
    pub fp8_kv_memory: Option<f64>,
    pub attention_compute: f64,
    /// Sustained end-to-end compute over kernel compute (power limits), by dtype class.
    pub bf16_derate: f64,
    pub fp8_derate: f64,
    /// All-reduce points (GPUs, start-up seconds, bus bytes/s), ascending in GPUs.
    pub all_reduce: Vec<AllReduce>,
    /// Start-up of an all-reduce launched outside a CUDA graph, where measured.
    pub eager_all_reduce_startup_s: Option<f64>,
    /// True where the figures are a prior from parts of the same generation.
    pub estimated: bool,
    pub source: String,
}

/// What the fused kernels of routed experts reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertKernels {
    pub weight_dtype: Dtype,
    /// Fraction of the peak ([`Hardware::compute_flops`]) with many rows in wide experts.
    pub compute: f64,
    /// Rows an expert, and columns of its intermediate size on a GPU, at which they reach half of it.
    pub half_tokens: f64,
    pub half_width: f64,
    /// Fraction of memory bandwidth.
    pub memory: f64,
}

/// Start-up time and bus bandwidth of an all-reduce over `gpus` GPUs. Small messages go in one stage, in which each GPU
/// reads those of all others; larger ones in two, which start later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllReduce {
    pub gpus: u32,
    pub startup_s: f64,
    pub bus_bytes_per_s: f64,
    /// Start-up of messages from `large_from_bytes` on, which is infinite where all start alike.
    pub large_startup_s: f64,
    pub large_from_bytes: f64,
}

impl AllReduce {
    /// The same with start-ups `factor` times as long.
    #[must_use]
    pub fn with_startups(self, factor: f64) -> Self {
        Self { startup_s: self.startup_s * factor, large_startup_s: self.large_startup_s * factor, ..self }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareFile {
    title: String,
    memory: MemoryTable,
    compute: ComputeTable,
    link: LinkTable,
    kernels: KernelsTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryTable {
    total_gib: f64,
    bandwidth_gb_per_s: f64,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComputeTable {
    bf16_tflops: f64,
    fp8_tflops: Option<f64>,
    fp4_tflops: Option<f64>,
    int8_tops: Option<f64>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkTable {
    name: String,
    gb_per_s: f64,
    domain: u32,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelsTable {
    bf16_compute: f64,
    bf16_memory: f64,
    fp8_compute: Option<f64>,
    fp8_memory: Option<f64>,
    #[serde(default)]
    experts: Vec<ExpertRow>,
    kv_memory: f64,
    fp8_kv_memory: Option<f64>,
    attention_compute: f64,
    bf16_derate: f64,
    fp8_derate: f64,
    all_reduce: Vec<AllReduceRow>,
    eager_all_reduce_startup_us: Option<f64>,
    estimated: bool,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpertRow {
    weight_dtype: Dtype,
    compute: f64,
    half_tokens: f64,
    half_width: f64,
    memory: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllReduceRow {
    gpus: u32,
    startup_us: f64,
    bus_gb_per_s: f64,
    large_startup_us: Option<f64>,
    large_from_kib: Option<f64>,
}

/// Bounds of what a GPU's file may hold, well beyond any chip: each in the unit of its key.
const TOTAL_GIB: (f64, f64) = (0.1, 1e5);
const GB_PER_S: (f64, f64) = (0.01, 1e6);
const TERA_PER_S: (f64, f64) = (0.01, 1e6);
const STARTUP_US: (f64, f64) = (0.0, 1e6);
const MESSAGE_KIB: (f64, f64) = (0.0, 1e9);
pub(super) const HALF_TOKENS: (f64, f64) = (0.0, 1e5);
pub(super) const HALF_WIDTH: (f64, f64) = (0.0, 1e5);
/// The estimate made of it, a part, is one of a profile too.
const EXPERT_COMPUTE: (f64, f64) = (0.01, 1.0);
const MOST_GPUS: u32 = 1 << 16;

/// Reads a GPU's file; its price stands elsewhere.
pub(super) fn read(name: &str, file: &File, price: Option<Price>) -> Result<Hardware, CatalogError> {
    let HardwareFile { title, memory, compute, link, kernels } = file.parse("hardware")?;
    let tera = |key: &str, value: Option<f64>| {
        value.map(|value| file.within(key, value, TERA_PER_S).map(|value| value * 1e12)).transpose()
    };
    let bytes_per_s = |key: &str, gb: f64| file.within(key, gb, GB_PER_S).map(|gb| gb * 1e9);
    file.within("link.domain", f64::from(link.domain), (1.0, f64::from(MOST_GPUS)))?;
    Ok(Hardware {
        name: name.to_owned(),
        title,
        memory_bytes: file.gib("memory.total_gib", memory.total_gib, TOTAL_GIB)?,
        memory_bandwidth_bytes_per_s: bytes_per_s("memory.bandwidth_gb_per_s", memory.bandwidth_gb_per_s)?,
        bf16_flops: file.within("compute.bf16_tflops", compute.bf16_tflops, TERA_PER_S)? * 1e12,
        fp8_flops: tera("compute.fp8_tflops", compute.fp8_tflops)?,
        fp4_flops: tera("compute.fp4_tflops", compute.fp4_tflops)?,
        int8_ops: tera("compute.int8_tops", compute.int8_tops)?,
        link_name: link.name,
        link_bytes_per_s: bytes_per_s("link.gb_per_s", link.gb_per_s)?,
        link_domain: link.domain,
        source: format!("memory: {}; compute: {}; link: {}", memory.source, compute.source, link.source),
        kernels: read_kernels(kernels, file)?,
        price,
    })
}

/// Between the points is interpolated, so they stand in the order of their GPUs, each number once.
fn check_order(key: &str, rows: &[AllReduceRow], file: &File) -> Result<(), CatalogError> {
    for (index, pair) in rows.windows(2).enumerate() {
        let (before, gpus) = (pair[0].gpus, pair[1].gpus);
        if gpus <= before {
            let message = format!(
                "`gpus` is {gpus} after {before} in the rows of `all_reduce`; expected the rows in ascending order of \
                 `gpus`, each number once"
            );
            return Err(file.invalid_in(&format!("{key}.{}.gpus", index + 1), &message));
        }
    }
    Ok(())
}

fn read_kernels(table: KernelsTable, file: &File) -> Result<Kernels, CatalogError> {
    let fraction = |key: &str, value: f64| file.fraction(&format!("kernels.{key}"), value);
    check_distinct(&table.experts, file)?;
    let optional = |key: &str, value: Option<f64>| value.map(|value| fraction(key, value)).transpose();
    Ok(Kernels {
        bf16_compute: fraction("bf16_compute", table.bf16_compute)?,
        bf16_memory: fraction("bf16_memory", table.bf16_memory)?,
        fp8_compute: optional("fp8_compute", table.fp8_compute)?,
        fp8_memory: optional("fp8_memory", table.fp8_memory)?,
        experts: table.experts.iter().map(|row| read_experts(row, file)).collect::<Result<_, _>>()?,
        kv_memory: fraction("kv_memory", table.kv_memory)?,
        fp8_kv_memory: optional("fp8_kv_memory", table.fp8_kv_memory)?,
        attention_compute: fraction("attention_compute", table.attention_compute)?,
        bf16_derate: fraction("bf16_derate", table.bf16_derate)?,
        fp8_derate: fraction("fp8_derate", table.fp8_derate)?,
        all_reduce: read_all_reduce("kernels.all_reduce", &table.all_reduce, file)?,
        eager_all_reduce_startup_s: table
            .eager_all_reduce_startup_us
            .map(|us| file.within("kernels.eager_all_reduce_startup_us", us, STARTUP_US).map(|us| us * 1e-6))
            .transpose()?,
        estimated: table.estimated,
        source: table.source,
    })
}

fn check_distinct(rows: &[ExpertRow], file: &File) -> Result<(), CatalogError> {
    for (index, row) in rows.iter().enumerate() {
        if rows[..index].iter().any(|other| other.weight_dtype == row.weight_dtype) {
            let message = format!(
                "a second row of `kernels.experts` for {} weights; expected one for each `weight_dtype`",
                row.weight_dtype.name()
            );
            return Err(file.invalid_in(&format!("kernels.experts.{index}.weight_dtype"), &message));
        }
    }
    Ok(())
}

fn read_experts(row: &ExpertRow, file: &File) -> Result<ExpertKernels, CatalogError> {
    let key = |name: &str| format!("kernels.experts.{name}");
    Ok(ExpertKernels {
        weight_dtype: row.weight_dtype,
        compute: file.within(&key("compute"), row.compute, EXPERT_COMPUTE)?,
        half_tokens: file.within(&key("half_tokens"), row.half_tokens, HALF_TOKENS)?,
        half_width: file.within(&key("half_width"), row.half_width, HALF_WIDTH)?,
        memory: file.fraction(&key("memory"), row.memory)?,
    })
}

/// All-reduce points under the dotted `key` (with the number of the item, as in `values.0.all_reduce`): ascending in
/// GPUs, at least two of them each.
pub(super) fn read_all_reduce(
    key: &str,
    rows: &[AllReduceRow],
    file: &File,
) -> Result<Vec<AllReduce>, CatalogError> {
    check_order(key, rows, file)?;
    let of_row = |index: usize| format!("{key}.{index}.gpus");
    let key: Vec<&str> = key.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    let key = key.join(".");
    rows.iter()
        .enumerate()
        .map(|(index, row)| {
            file.within(&format!("{key}.gpus"), f64::from(row.gpus), (2.0, f64::from(MOST_GPUS)))?;
            let startup_us = file.within(&format!("{key}.startup_us"), row.startup_us, STARTUP_US)?;
            let bus_gb_per_s = file.within(&format!("{key}.bus_gb_per_s"), row.bus_gb_per_s, GB_PER_S)?;
            let (large_startup_us, large_from_kib) = match (row.large_startup_us, row.large_from_kib) {
                (Some(large_us), Some(from_kib)) => (
                    // No step is shorter than one of a single token.
                    file.within(&format!("{key}.large_startup_us"), large_us, (startup_us, STARTUP_US.1))?,
                    file.within(&format!("{key}.large_from_kib"), from_kib, MESSAGE_KIB)?,
                ),
                (None, None) => (startup_us, f64::INFINITY),
                _ => {
                    let message =
                        "only one of `large_startup_us` and `large_from_kib`; expected both or none";
                    return Err(file.invalid_in(&of_row(index), message));
                }
            };
            Ok(AllReduce {
                gpus: row.gpus,
                startup_s: startup_us * 1e-6,
                bus_bytes_per_s: bus_gb_per_s * 1e9,
                large_startup_s: large_startup_us * 1e-6,
                large_from_bytes: large_from_kib * 1024.0,
            })
        })
        .collect()
}
