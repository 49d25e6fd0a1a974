//! What no kernel can beat: every step streams the active weights, and no chip exceeds its peaks.
//!
//! ```text
//! TPOT >= active weight bytes / (TP x bandwidth)                       (Pope et al., arXiv:2211.05102)
//! MFU   = 2 x active parameters x tokens per second / (GPUs x peak)    (PaLM, arXiv:2204.02311)
//! ```

use std::path::Path;
use std::sync::Arc;

use crate::catalog::{Catalog, CatalogError, Dtype, Hardware, Model};
use crate::import::Imported;
use crate::import::names::{gpu_key, weight_dtype};
use crate::import::point::{LoadPoint, ServerFacts};

/// What the caller says about the server; it wins over what a file says.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub model: Option<String>,
    pub gpu: Option<String>,
    pub tensor_parallel_size: Option<u32>,
    pub weight_dtype: Option<Dtype>,
}

/// The chip and the model of a point.
struct Limits {
    model: Arc<Model>,
    gpu: Arc<Hardware>,
    dtype: Dtype,
    /// GPUs that share a step's weights.
    tensor: f64,
    /// GPUs that the point's throughput comes from.
    gpus: f64,
}

/// Sets what is given on every point and holds each against its chip, where model, GPU and parallelism
/// are known.
///
/// # Errors
/// A given model or GPU that the catalog does not have. One that a file names and the catalog does not
/// have only leaves its points unchecked, which is said.
pub fn against_hardware(
    imported: &mut Imported,
    catalog: &Catalog,
    given: &Given,
) -> Result<(), CatalogError> {
    if let Some(gpu) = &given.gpu {
        catalog.hardware(gpu)?;
    }
    if let Some(model) = &given.model {
        catalog.model(model, Path::new("."))?;
    }
    let facts = ServerFacts {
        model: given.model.clone(),
        gpu: given.gpu.clone(),
        tensor_parallel_size: given.tensor_parallel_size,
        ..ServerFacts::default()
    };
    let with_given = |server: &ServerFacts| {
        let mut merged = facts.clone();
        merged.fill_from(server);
        merged
    };
    imported.server = with_given(&imported.server);
    let (mut checked, mut unknown) = (0, 0);
    let mut doubts = Vec::new();
    let mut reasons = Vec::new();
    for point in &mut imported.points {
        point.server = with_given(&point.server);
        let limits = limits(catalog, &point.server, given);
        *if limits.is_some() { &mut checked } else { &mut unknown } += 1;
        let Some(limits) = limits else {
            reasons.push(None);
            continue;
        };
        reasons.push(limits.impossible(point));
        doubts.extend(limits.doubtful(point).map(|text| (point.label.clone(), text)));
    }
    imported.refuse_points(reasons);
    for (label, text) in doubts {
        imported.warn(&label, &text);
    }
    if checked > 0 {
        imported.understand(&format!(
            "held against the chip's bandwidth and peak: {checked} of {} points",
            checked + unknown
        ));
    } else if unknown > 0 {
        imported.leave_out("the check against the chip: it needs --model, --gpu and --tp");
    }
    Ok(())
}

fn limits(catalog: &Catalog, server: &ServerFacts, given: &Given) -> Option<Limits> {
    let (model, variant) = catalog.model(server.model.as_deref()?, Path::new(".")).ok()?;
    let gpu_name = server.gpu.as_deref()?;
    let gpu = catalog.hardware(gpu_name).ok().or_else(|| catalog.hardware(gpu_key(gpu_name)?).ok())?;
    // Who names a GPU and no parallelism means one GPU.
    let tensor = server.tensor_parallel_size.or(given.gpu.as_ref().map(|_| 1))?;
    let or_one = |count: Option<u32>| f64::from(count.unwrap_or(1));
    let dtype = match (given.weight_dtype, server.quantization.as_deref()) {
        (Some(dtype), _) => dtype,
        (None, Some(name)) => weight_dtype(name)?,
        (None, None) => variant.unwrap_or(model.native_weight_dtype),
    };
    Some(Limits {
        dtype,
        model,
        gpu,
        tensor: f64::from(tensor),
        gpus: f64::from(tensor)
            * or_one(server.pipeline_parallel_size)
            * or_one(server.data_parallel_size)
            * or_one(server.replicas),
    })
}

impl Limits {
    fn weight_bytes(&self) -> f64 {
        self.model.least_step_bytes(self.dtype)
    }

    fn peak(&self) -> f64 {
        self.gpu.fastest_flops(self.dtype)
    }

    fn impossible(&self, point: &LoadPoint) -> Option<String> {
        let server = format!("{} on {} x {}", self.model.name, self.tensor, self.gpu.name);
        let floor = self.weight_bytes() / (self.tensor * self.gpu.memory_bandwidth_bytes_per_s);
        if let Some(tpot) = point.tpot.mean_s.filter(|tpot| *tpot < floor) {
            return Some(format!(
                "mean TPOT is {:.2} ms, but {server} with {} weights needs {:.2} ms to read them once: {:.1} times \
                 the chip's bandwidth (speculative decoding, another GPU, another format or a wrong unit)",
                tpot * 1e3,
                self.dtype,
                floor * 1e3,
                floor / tpot
            ));
        }
        let mfu = point.output_tokens_per_s? * self.model.flops_per_token() / (self.gpus * self.peak());
        (mfu > 1.0).then(|| {
            format!(
                "output throughput alone takes {mfu:.1} times the peak of {} x {}",
                self.gpus, self.gpu.name
            )
        })
    }

    /// Too much for the chip unless something the file does not tell explains it.
    fn doubtful(&self, point: &LoadPoint) -> Option<String> {
        self.too_much_prefill(point).or_else(|| self.too_much_kv(point))
    }

    /// A prefix cache can explain it.
    fn too_much_prefill(&self, point: &LoadPoint) -> Option<String> {
        let mfu = point.total_tokens_per_s? * self.model.flops_per_token() / (self.gpus * self.peak());
        (mfu > 1.0).then(|| {
            format!(
                "prompts and outputs take {mfu:.1} times the peak of {} x {}: a prefix cache served part of the \
                 prompts, or the figure is of more GPUs",
                self.gpus, self.gpu.name
            )
        })
    }

    /// A step of the mean batch reads the weights and everybody's KV, here at one byte an element. Shared
    /// prefixes that a kernel reads once can explain it.
    fn too_much_kv(&self, point: &LoadPoint) -> Option<String> {
        let (rate, tpot) = (point.requests_per_s?, point.tpot.mean_s?);
        let replicas = self.gpus / self.tensor;
        let decoding = rate * (point.e2e_mean_s()? - point.ttft.mean_s?) / replicas;
        let context = point.input_tokens?.mean + point.output_tokens?.mean / 2.0;
        // Replicas and pipeline stages divide the batch or the layers; both are in `replicas`.
        let kv = decoding * context * self.model.growing_kv_bytes_per_token(Dtype::Fp8, self.tp()) as f64;
        let bandwidth = (self.weight_bytes() / self.tensor + kv) / tpot;
        let share = bandwidth / self.gpu.memory_bandwidth_bytes_per_s;
        (share > 1.0).then(|| {
            format!(
                "weights and the KV of {decoding:.0} decoding requests take {share:.1} times the bandwidth of {} x {}: \
                 a shared prefix is read once for all, or a figure is not what it is called",
                self.tensor, self.gpu.name
            )
        })
    }

    fn tp(&self) -> u32 {
        self.tensor as u32
    }
}
