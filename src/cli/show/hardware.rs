//! A GPU.

use super::Page;
use crate::catalog::{AllReduce, Hardware, Kernels};
use crate::report::format::{chosen, gib, number};
use crate::report::money;

pub(super) fn describe(gpu: &Hardware) -> String {
    let mut page = Page::new(format!("{} ({})", gpu.title, gpu.name));
    page.line("memory", format!("{} GiB as the driver reports it", gib(gpu.memory_bytes)));
    page.line("bandwidth", format!("{} TB/s", number(gpu.memory_bandwidth_bytes_per_s / 1e12)));
    page.line("dense peak", peaks(gpu));
    let link = format!(
        "{}, {} GB/s each way, joins {} GPUs",
        gpu.link_name,
        number(gpu.link_bytes_per_s / 1e9),
        gpu.link_domain
    );
    page.line("link", link);
    page.line(
        "price",
        match &gpu.price {
            Some(price) => {
                let age = money::age(&price.date, crate::cli::today::year_and_month());
                format!("${:.2} per GPU-hour ({}{age}; {})", price.usd_per_gpu_hour, price.date, price.source)
            }
            None => "none known; set cost.gpu_hour_usd".to_owned(),
        },
    );
    page.line("source", &gpu.source);
    kernels(&mut page, &gpu.kernels);
    page.text()
}

fn peaks(gpu: &Hardware) -> String {
    let tera = |name: &str, flops: Option<f64>| flops.map(|flops| format!("{name} {}", chosen(flops / 1e12)));
    let parts = [
        tera("bf16", Some(gpu.bf16_flops)),
        tera("fp8", gpu.fp8_flops),
        tera("fp4", gpu.fp4_flops),
        tera("int8", gpu.int8_ops),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    format!("{} TFLOP/s", known.join(", "))
}

fn kernels(page: &mut Page, kernels: &Kernels) {
    let standing = if kernels.estimated { "estimated" } else { "measured" };
    let mut text = format!(
        "{standing}; of the peaks above: bf16 compute {}, weights {}; KV reading {}, prefill attention {}",
        number(kernels.bf16_compute),
        number(kernels.bf16_memory),
        number(kernels.kv_memory),
        number(kernels.attention_compute)
    );
    if let (Some(compute), Some(memory)) = (kernels.fp8_compute, kernels.fp8_memory) {
        text += &format!("; fp8 compute {}, weights {}", number(compute), number(memory));
    }
    page.line("kernels", text);
    for one in &kernels.experts {
        let text = format!(
            "{}: compute {} (half of it at {} rows, and at {} columns on a GPU), weights {}",
            one.weight_dtype.name(),
            number(one.compute),
            number(one.half_tokens),
            number(one.half_width),
            number(one.memory)
        );
        page.line("experts", text);
    }
    for point in &kernels.all_reduce {
        page.line("all-reduce", all_reduce(point));
    }
    if let Some(startup_s) = kernels.eager_all_reduce_startup_s {
        page.line("all-reduce", format!("outside CUDA graphs: {} us to start", number(startup_s * 1e6)));
    }
    page.line("source", &kernels.source);
}

/// `8 GPUs: 5.40 us (9.50 us from 256 KiB on) + 351 GB/s`
pub(super) fn all_reduce(point: &AllReduce) -> String {
    let large = if point.large_from_bytes.is_finite() {
        let from_kib = point.large_from_bytes / 1024.0;
        format!(" ({} us from {from_kib} KiB on)", number(point.large_startup_s * 1e6))
    } else {
        String::new()
    };
    let (startup_us, bus) = (number(point.startup_s * 1e6), number(point.bus_bytes_per_s / 1e9));
    format!("{} GPUs: {startup_us} us{large} + {bus} GB/s", point.gpus)
}
