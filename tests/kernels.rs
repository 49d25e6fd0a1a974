//! The values of `[kernels]` in calibration/hardware against the operator tables that they were fitted to.
//!
//! The laws are written out here once more, from physics: what a matrix takes is compared with what was measured, shape
//! by shape. Needs `KNEE_DATA`, a folder with `ops/gemm.csv.gz` and `ops/moe.csv.gz` of NVIDIA AIConfigurator.

use std::fs::File;
use std::path::PathBuf;

use knee::catalog::{Catalog, Dtype, Hardware};

/// What a row of a table is of, how long a launch takes in it, and how far off the law may be in the median.
struct Case {
    system: &'static str,
    gpu: &'static str,
    version: &'static str,
    kind: &'static str,
    dtype: Dtype,
    launch_us: f64,
    most: f64,
}

/// A row of a table, by the names of its columns.
struct Row<'a> {
    head: &'a csv::StringRecord,
    cells: &'a csv::StringRecord,
}

impl Row<'_> {
    fn text(&self, name: &str) -> &str {
        let column = self.head.iter().position(|column| column == name).expect("the column");
        &self.cells[column]
    }

    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().expect("a number")
    }
}

/// Holds `law`, seconds by row but for the launch, against each case's rows of a table; rows that it has no time for
/// are passed over. Nothing without `KNEE_DATA`.
fn check(
    table: &str,
    dtype_column: &str,
    fewest: usize,
    cases: &[Case],
    law: impl Fn(&Case, &Hardware, &Row<'_>) -> Option<f64>,
) {
    let Some(data) = std::env::var_os("KNEE_DATA").map(PathBuf::from) else {
        println!("skipped: KNEE_DATA is not set");
        return;
    };
    let path = data.join("ops").join(table);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
    let head = reader.headers().expect("a head").clone();
    let records: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    for case in cases {
        let hardware = Catalog::new(None).hardware(case.gpu).expect("in the catalog");
        let error = |cells: &csv::StringRecord| {
            let row = Row { head: &head, cells };
            let is_it = row.text("system") == case.system
                && row.text("vllm_version") == case.version
                && row.text(dtype_column) == case.kind;
            let law_s = law(case, &hardware, &row).filter(|_| is_it)? + case.launch_us * 1e-6;
            Some((law_s / (1e-3 * row.number("latency_ms")) - 1.0).abs())
        };
        let mut errors: Vec<f64> = records.iter().filter_map(error).collect();
        errors.sort_by(f64::total_cmp);
        let (count, off) = (errors.len(), errors.get(errors.len() / 2).copied().unwrap_or(f64::INFINITY));
        println!(
            "{table} {} {}: {count} shapes, {:.1} % off in the median",
            case.gpu,
            case.kind,
            100.0 * off
        );
        assert!(count >= fewest && off <= case.most, "{} {}: {off} of {count}", case.gpu, case.kind);
    }
}

const fn case(
    system: &'static str,
    gpu: &'static str,
    version: &'static str,
    kind: &'static str,
    dtype: Dtype,
    launch_us: f64,
    most: f64,
) -> Case {
    Case { system, gpu, version, kind, dtype, launch_us, most }
}

/// m rows through k x n weights: the 2-norm of computing and of reading them, beside a launch.
#[test]
fn matrices_take_what_the_tables_say() {
    // Microseconds of a launch: what the tables' smallest matrices take.
    let cases = [
        case("a100_sxm", "a100-80-sxm", "0.14.0", "bfloat16", Dtype::Bf16, 8.0, 0.075),
        case("h100_sxm", "h100-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 4.0, 0.06),
        case("h200_sxm", "h200-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 4.0, 0.06),
        case("b200_sxm", "b200-sxm", "0.27.1", "bfloat16", Dtype::Bf16, 4.0, 0.075),
        case("l40s", "l40s", "0.24.0", "bfloat16", Dtype::Bf16, 0.0, 0.075),
        case("h100_sxm", "h100-sxm", "0.24.0", "fp8", Dtype::Fp8, 8.0, 0.13),
        case("h200_sxm", "h200-sxm", "0.24.0", "fp8", Dtype::Fp8, 8.0, 0.13),
        case("b200_sxm", "b200-sxm", "0.27.1", "fp8", Dtype::Fp8, 9.0, 0.2),
        case("l40s", "l40s", "0.24.0", "fp8", Dtype::Fp8, 1.0, 0.1),
    ];
    check("gemm.csv.gz", "gemm_dtype", 300, &cases, |case, hardware, row| {
        let kernels = &hardware.kernels;
        let (compute, memory, bytes) = match case.dtype {
            Dtype::Fp8 => (kernels.fp8_compute?, kernels.fp8_memory?, 1.0),
            _ => (kernels.bf16_compute, kernels.bf16_memory, 2.0),
        };
        let (m, n, k) = (row.number("m"), row.number("n"), row.number("k"));
        // Of smaller matrices the launch is most of the time.
        if n * k < 1.5e7 {
            return None;
        }
        let rows = match case.dtype {
            Dtype::Fp8 if m <= 16.0 => 16.0,
            Dtype::Fp8 if m <= 64.0 => 64.0,
            Dtype::Fp8 => (m / 128.0).ceil() * 128.0,
            _ => m,
        };
        let compute_s = 2.0 * rows * n * k / (hardware.compute_flops(case.dtype) * compute);
        let moved = n * k * bytes + m * (k * bytes + n * 2.0);
        Some(compute_s.hypot(moved / (hardware.memory_bandwidth_bytes_per_s * memory)))
    });
}

/// T tokens that each pick k of E experts of H x w: rows and columns at m / (m + h) and w / (w + w_h) of their best.
#[test]
fn experts_take_what_the_tables_say() {
    let cases = [
        case("h100_sxm", "h100-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 30.0, 0.14),
        case("h200_sxm", "h200-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 30.0, 0.14),
        case("h100_sxm", "h100-sxm", "0.31.0", "fp8_block", Dtype::Fp8, 30.0, 0.14),
        case("h200_sxm", "h200-sxm", "0.31.0", "fp8_block", Dtype::Fp8, 30.0, 0.14),
        case("b200_sxm", "b200-sxm", "0.27.1", "bfloat16", Dtype::Bf16, 30.0, 0.14),
        case("b200_sxm", "b200-sxm", "0.24.0", "nvfp4", Dtype::Nvfp4, 30.0, 0.2),
        case("l40s", "l40s", "0.24.0", "bfloat16", Dtype::Bf16, 30.0, 0.14),
    ];
    check("moe.csv.gz", "moe_dtype", 100, &cases, |case, hardware, row| {
        let kernels = hardware.kernels.experts.iter().find(|kernels| kernels.weight_dtype == case.dtype)?;
        let bytes = match case.dtype {
            Dtype::Bf16 => 2.0,
            Dtype::Nvfp4 => 0.5625,
            _ => 1.0,
        };
        let (tokens, picked) = (row.number("num_tokens"), row.number("topk"));
        let experts = row.number("num_experts");
        let width = row.number("inter_size") / row.number("moe_tp_size");
        let is_even = ["balanced", "power_law_1.01"].contains(&row.text("distribution"));
        if !is_even || row.number("moe_ep_size") != 1.0 || tokens > 16_384.0 || width < 128.0 {
            return None;
        }
        let weights = 3.0 * row.number("hidden_size") * width;
        let touched = experts * (1.0 - (1.0 - picked / experts).powf(tokens));
        let rows = tokens * picked + kernels.half_tokens * touched;
        let compute_s = 2.0 * rows * weights / (hardware.compute_flops(case.dtype) * kernels.compute)
            * (1.0 + kernels.half_width / width);
        let read_s = touched * weights * bytes / (hardware.memory_bandwidth_bytes_per_s * kernels.memory);
        Some(compute_s.hypot(read_s))
    });
}
