//! The values of `[kernels]` in calibration/hardware against the operator tables that they were fitted to.
//!
//! The laws are written out here once more, from physics: what a matrix takes is compared with what was measured, shape
//! by shape. Needs `KNEE_DATA`, a folder with `ops/gemm.csv.gz` and `ops/moe.csv.gz` of NVIDIA AIConfigurator.

use std::fs::File;
use std::path::PathBuf;

use knee::catalog::{Catalog, Dtype, Hardware};

/// Rows of a table that `wanted` makes relative errors of: law over measurement - 1.
fn errors(
    table: &str,
    wanted: impl Fn(&csv::StringRecord, &csv::StringRecord) -> Option<f64>,
) -> Option<Vec<f64>> {
    let Some(data) = std::env::var_os("KNEE_DATA").map(PathBuf::from) else {
        println!("skipped: KNEE_DATA is not set");
        return None;
    };
    let path = data.join("ops").join(table);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
    let head = reader.headers().expect("a head").clone();
    Some(reader.records().filter_map(|row| wanted(&head, &row.expect("a row"))).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn text<'a>(head: &csv::StringRecord, row: &'a csv::StringRecord, name: &str) -> &'a str {
    let column = head.iter().position(|column| column == name).expect("the column");
    &row[column]
}

fn number(head: &csv::StringRecord, row: &csv::StringRecord, name: &str) -> f64 {
    text(head, row, name).parse().expect("a number")
}

fn gpu(name: &str) -> std::sync::Arc<Hardware> {
    Catalog::new(None).hardware(name).expect("in the catalog")
}

/// m rows through k x n weights: the 2-norm of computing and of reading them, beside a launch.
#[test]
fn matrices_take_what_the_tables_say() {
    // Microseconds of a launch: what the tables' smallest matrices take.
    for (system, name, version, kind, dtype, launch_us, most) in [
        ("a100_sxm", "a100-80-sxm", "0.14.0", "bfloat16", Dtype::Bf16, 8.0, 0.075),
        ("h100_sxm", "h100-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 4.0, 0.06),
        ("h200_sxm", "h200-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 4.0, 0.06),
        ("b200_sxm", "b200-sxm", "0.27.1", "bfloat16", Dtype::Bf16, 4.0, 0.075),
        ("l40s", "l40s", "0.24.0", "bfloat16", Dtype::Bf16, 0.0, 0.075),
        ("h100_sxm", "h100-sxm", "0.24.0", "fp8", Dtype::Fp8, 8.0, 0.13),
        ("h200_sxm", "h200-sxm", "0.24.0", "fp8", Dtype::Fp8, 8.0, 0.13),
        ("b200_sxm", "b200-sxm", "0.27.1", "fp8", Dtype::Fp8, 9.0, 0.2),
        ("l40s", "l40s", "0.24.0", "fp8", Dtype::Fp8, 1.0, 0.1),
    ] {
        let hardware = gpu(name);
        let kernels = &hardware.kernels;
        let (compute, memory, bytes) = match dtype {
            Dtype::Fp8 => (kernels.fp8_compute.expect("known"), kernels.fp8_memory.expect("known"), 1.0),
            _ => (kernels.bf16_compute, kernels.bf16_memory, 2.0),
        };
        let rows_of_tiles = |m: f64| match dtype {
            Dtype::Fp8 if m <= 16.0 => 16.0,
            Dtype::Fp8 if m <= 64.0 => 64.0,
            Dtype::Fp8 => (m / 128.0).ceil() * 128.0,
            _ => m,
        };
        let errors = errors("gemm.csv.gz", |head, row| {
            let is_it = text(head, row, "system") == system
                && text(head, row, "vllm_version") == version
                && text(head, row, "gemm_dtype") == kind;
            let size = |name: &str| number(head, row, name);
            // Of smaller matrices the launch is most of the time.
            if !is_it || size("n") * size("k") < 1.5e7 {
                return None;
            }
            let (m, n, k) = (size("m"), size("n"), size("k"));
            let compute_s = 2.0 * rows_of_tiles(m) * n * k / (hardware.compute_flops(dtype) * compute);
            let read_s = (n * k * bytes + m * (k * bytes + n * 2.0))
                / (hardware.memory_bandwidth_bytes_per_s * memory);
            let law_s = compute_s.hypot(read_s) + launch_us * 1e-6;
            Some((law_s / (1e-3 * size("latency_ms")) - 1.0).abs())
        });
        let Some(errors) = errors else { return };
        let (count, off) = (errors.len(), median(errors));
        println!("{name} {kind}: {count} shapes, {:.1} % off in the median", 100.0 * off);
        assert!(count >= 300 && off <= most, "{name} {kind}: {off} of {count}");
    }
}

/// T tokens that each pick k of E experts of H x w: rows and columns at m / (m + h) and w / (w + w_h) of their best.
#[test]
fn experts_take_what_the_tables_say() {
    for (system, name, version, kind, dtype, launch_us, most) in [
        ("h100_sxm", "h100-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 30.0, 0.14),
        ("h200_sxm", "h200-sxm", "0.24.0", "bfloat16", Dtype::Bf16, 30.0, 0.14),
        ("h100_sxm", "h100-sxm", "0.31.0", "fp8_block", Dtype::Fp8, 30.0, 0.14),
        ("h200_sxm", "h200-sxm", "0.31.0", "fp8_block", Dtype::Fp8, 30.0, 0.14),
        ("b200_sxm", "b200-sxm", "0.27.1", "bfloat16", Dtype::Bf16, 30.0, 0.14),
        ("b200_sxm", "b200-sxm", "0.24.0", "nvfp4", Dtype::Nvfp4, 30.0, 0.2),
        ("l40s", "l40s", "0.24.0", "bfloat16", Dtype::Bf16, 30.0, 0.14),
    ] {
        let hardware = gpu(name);
        let kernels =
            hardware.kernels.experts.iter().find(|kernels| kernels.weight_dtype == dtype).expect("known");
        let bytes = match dtype {
            Dtype::Bf16 => 2.0,
            Dtype::Nvfp4 => 0.5625,
            _ => 1.0,
        };
        let errors = errors("moe.csv.gz", |head, row| {
            let size = |name: &str| number(head, row, name);
            let is_it = text(head, row, "system") == system
                && text(head, row, "vllm_version") == version
                && text(head, row, "moe_dtype") == kind
                && ["balanced", "power_law_1.01"].contains(&text(head, row, "distribution"));
            if !is_it || size("moe_ep_size") != 1.0 || size("num_tokens") > 16_384.0 {
                return None;
            }
            let (tokens, picked, experts) = (size("num_tokens"), size("topk"), size("num_experts"));
            let width = size("inter_size") / size("moe_tp_size");
            if width < 128.0 {
                return None;
            }
            let weights = 3.0 * size("hidden_size") * width;
            let touched = experts * (1.0 - (1.0 - picked / experts).powf(tokens));
            let rows = tokens * picked + kernels.half_tokens * touched;
            let compute_s = 2.0 * rows * weights / (hardware.compute_flops(dtype) * kernels.compute)
                * (1.0 + kernels.half_width / width);
            let read_s = touched * weights * bytes / (hardware.memory_bandwidth_bytes_per_s * kernels.memory);
            let law_s = compute_s.hypot(read_s) + launch_us * 1e-6;
            Some((law_s / (1e-3 * size("latency_ms")) - 1.0).abs())
        });
        let Some(errors) = errors else { return };
        let (count, off) = (errors.len(), median(errors));
        println!("experts {name} {kind}: {count} shapes, {:.1} % off in the median", 100.0 * off);
        assert!(count >= 100 && off <= most, "{name} {kind}: {off} of {count}");
    }
}
