//! Whether the feed-forward layers of a model can be cut for tensor parallelism, and its experts.
//!
//! Every GPU gets as many columns as the others (`divide` in vllm/distributed/utils.py, `FusedMoEConfig`; SGLang the
//! same), so a width that the GPUs do not divide is refused; half a column does not exist. A checkpoint that is
//! quantised in blocks moreover needs whole blocks on each GPU.

use super::data_parallel::Layout;
use crate::catalog::{Dtype, Mlp, Model, Scheduler};
use crate::cost::Sharing;
use crate::scenario::keys::engine as keys;
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};

/// Columns that are cut.
struct Cut {
    what: &'static str,
    columns: u32,
    gpus: u32,
}

pub(super) fn check(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    model: &Model,
    dtype: Dtype,
    layout: &Layout,
    expert_parallel: bool,
    scheduler: &Scheduler,
) {
    let cuts = cuts(model, layout, expert_parallel);
    for Cut { what, columns, gpus } in &cuts {
        if !columns.is_multiple_of(*gpus) {
            let message = format!(
                "the {columns} columns of {what} of {} cannot be divided over {gpus} GPUs",
                model.name
            );
            let mut problem = Problem::new(engine.place(&keys::TENSOR_PARALLEL_SIZE), message);
            problem = problem.label(format!("expected a divisor of {columns}"));
            if *what == ROUTED {
                problem = problem.help("with `enable_expert_parallel = true` each GPU has whole experts");
            }
            reader.problem(problem);
            return;
        }
    }
    // What TensorRT-LLM makes of such a cut is not known here.
    if !matches!(scheduler, Scheduler::TensorRtLlm(_)) {
        warn_of_blocks(reader, dtype, &cuts);
    }
}

const ROUTED: &str = "an expert";

/// What is cut, each width once: routed experts over all GPUs, the rest over those of a rank, unless ranks share all of it.
fn cuts(model: &Model, layout: &Layout, expert_parallel: bool) -> Vec<Cut> {
    let shares_all = layout.ranks.is_some_and(|ranks| ranks.sharing == Sharing::FeedForwardAndHead);
    let dense = if shares_all { layout.gpus() } else { layout.attention_tp };
    let routed = if expert_parallel { 1 } else { layout.gpus() };
    let mut cuts: Vec<Cut> = Vec::new();
    let mut add = |what, columns, gpus| {
        let is_same = |other: &Cut| (other.what, other.columns) == (what, columns);
        if columns > 0 && gpus > 1 && !cuts.iter().any(is_same) {
            cuts.push(Cut { what, columns, gpus });
        }
    };
    for group in &model.layers {
        match group.mlp {
            Mlp::Dense { intermediate } => add("a feed-forward layer", intermediate, dense),
            Mlp::Moe { expert_intermediate, shared_intermediate, .. } => {
                add(ROUTED, expert_intermediate, routed);
                add("the shared experts", shared_intermediate, dense);
            }
        }
    }
    cuts
}

/// Of what format a checkpoint's blocks are the scenario does not say; published fp8 ones are often of 128 columns.
fn warn_of_blocks(reader: &mut Reader<'_>, dtype: Dtype, cuts: &[Cut]) {
    let block = match dtype {
        Dtype::Fp8 => 128,
        Dtype::Nvfp4 => 16,
        Dtype::Bf16 | Dtype::Int8 | Dtype::Mxfp4 | Dtype::Int4 => return,
    };
    let is_broken = |cut: &&Cut| !(cut.columns / cut.gpus).is_multiple_of(block);
    for Cut { what, columns, gpus } in cuts.iter().filter(is_broken) {
        reader.warn_of_no_start(format!(
            "each of {gpus} GPUs has {} columns of {what}: a {} checkpoint that is quantised in blocks of {block} cannot be \
             cut so, and the engine does not start with it",
            columns / gpus,
            dtype.name()
        ));
    }
}
