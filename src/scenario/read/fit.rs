//! Whether the model and its longest request fit into GPU memory, and what would.

use super::Context;
use super::llm::{MaxModelLen, indivisible_heads};
use crate::catalog::KvShare;
use crate::cost::{MemoryBudget, MemoryInputs, alternatives, memory_budget};
use crate::kv::KvSpec;
use crate::scenario::keys::{engine as keys, list, root};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};
use crate::units::Tokens;

const GIB: f64 = 1_073_741_824.0;

/// GiB in MiB; what is beyond 4 PiB is as good as that.
fn in_mib(gib: f64) -> u32 {
    libm::rint(gib * 1024.0) as u32
}

/// The memory budget, and the longest request that is let in.
pub(super) fn check<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    top: &Section<'d>,
    engine: &Section<'d>,
    inputs: &MemoryInputs<'_>,
    asked: MaxModelLen,
) -> Option<(MemoryBudget, Tokens)> {
    let budget = memory_budget(inputs);
    // A number of blocks from a log says that the engine did start, unless not even the weights fit.
    let started = inputs.num_gpu_blocks_override.is_some() && budget.weights < budget.total;
    let longest = longest_request(&budget.to_kv_spec(), inputs.model.max_position_embeddings);
    let Some(longest) = longest.filter(|_| started || budget.kv_available > 0) else {
        let problem = pool_is_too_small(engine, inputs, &budget)
            .or_else(|| draft_does_not_fit(engine, inputs))
            .unwrap_or_else(|| does_not_fit(context, top, inputs, &budget, asked));
        reader.problem(problem);
        return None;
    };
    if inputs.num_gpu_blocks_override.is_some() {
        warn_of_impossible_pool(reader, &budget);
    }
    let max_model_len = max_model_len(reader, engine, inputs, &budget, asked, longest)?;
    Some((budget, max_model_len))
}

/// The blocks that were given and the weights are more than the GPU has: no engine can have logged them.
fn warn_of_impossible_pool(reader: &mut Reader<'_>, budget: &MemoryBudget) {
    let pool = u64::from(budget.blocks).saturating_mul(budget.block_bytes);
    if budget.weights.saturating_add(pool) > budget.total {
        let gib = |bytes: u64| bytes as f64 / GIB;
        reader.warn_of_no_start(format!(
            "num_gpu_blocks_override = {}: {:.1} GiB of blocks and {:.1} GiB of weights are more than the {:.1} GiB of \
             a GPU; no engine could start like that",
            budget.blocks,
            gib(pool),
            gib(budget.weights),
            gib(budget.total)
        ));
    }
}

/// The model fits, but the blocks that are left hold no token of a request.
fn pool_is_too_small(
    engine: &Section<'_>,
    inputs: &MemoryInputs<'_>,
    budget: &MemoryBudget,
) -> Option<Problem> {
    if budget.kv_available <= 0 {
        return None;
    }
    let kv = budget.to_kv_spec();
    let (needed, null) = (blocks_of(&kv, 1), u64::from(budget.blocks) - u64::from(kv.blocks));
    if let Some(blocks) = inputs.num_gpu_blocks_override {
        let message = format!("num_gpu_blocks_override = {blocks} leaves no KV block for a request");
        let label = format!("expected at least {}", needed + null);
        let help = match null {
            0 => format!("a request takes at least {needed} blocks"),
            _ => format!("the engine keeps {null} for itself, and a request takes at least {needed}"),
        };
        let place = engine.place(&keys::NUM_GPU_BLOCKS_OVERRIDE);
        return Some(Problem::new(place, message).label(label).help(help));
    }
    let gib = |bytes: f64| format!("{:.2} GiB", bytes / GIB);
    let message = format!(
        "the {} that are left for KV cache hold no request: it takes at least {}",
        gib(budget.kv_available as f64),
        gib((needed + null) as f64 * budget.block_bytes as f64)
    );
    let label = format!("a block of {} tokens takes {}", budget.block_size, gib(budget.block_bytes as f64));
    let help = "a smaller block_size, a higher gpu_memory_utilization or tensor_parallel_size leave room";
    let problem = Problem::new(engine.place(&keys::BLOCK_SIZE), message).label(label).help(help);
    Some(Problem { does_not_fit: true, ..problem })
}

/// The model alone would fit: what drafts for it does not.
fn draft_does_not_fit(engine: &Section<'_>, inputs: &MemoryInputs<'_>) -> Option<Problem> {
    let draft = inputs.draft?;
    let alone = memory_budget(&MemoryInputs { draft: None, ..*inputs });
    let with = memory_budget(inputs);
    if alone.kv_available <= 0 || with.kv_available > 0 {
        return None;
    }
    let (model, name) = (&inputs.model.name, &draft.model.name);
    let what = if draft.is_a_head() {
        "the layer that drafts for it".to_owned()
    } else {
        format!("its draft model {name}")
    };
    let gib = |bytes: f64| bytes / GIB;
    let missing = gib(-(with.kv_available as f64));
    let message = format!(
        "{model} fits, but not together with {what} in {}: {missing:.1} GiB are missing on each GPU",
        draft.weight_dtype.name()
    );
    let label = format!(
        "it takes {:.1} GiB of weights; {:.1} GiB are left beside {model}",
        gib(draft.weight_bytes(inputs.tensor_parallel_size) as f64),
        gib(alone.kv_available as f64)
    );
    let help = "a smaller draft, a quantised one, or a larger tensor_parallel_size";
    let problem = Problem::new(engine.place(&keys::SPECULATIVE_CONFIG), message).label(label).help(help);
    Some(Problem { does_not_fit: true, missing_mib: Some(in_mib(missing)), ..problem })
}

/// The most tokens, at most `limit`, that one request can have in the empty pool.
fn longest_request(kv: &KvSpec, limit: Tokens) -> Option<Tokens> {
    let fits = |tokens: Tokens| blocks_of(kv, tokens) <= u64::from(kv.blocks);
    if !fits(1) {
        return None;
    }
    let (mut low, mut high) = (1, limit.max(1));
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

fn blocks_of(kv: &KvSpec, tokens: Tokens) -> u64 {
    u64::from(kv.blocks_for(tokens)) + u64::from(kv.fixed_blocks(tokens))
}

fn max_model_len(
    reader: &mut Reader<'_>,
    engine: &Section<'_>,
    inputs: &MemoryInputs<'_>,
    budget: &MemoryBudget,
    asked: MaxModelLen,
    longest: Tokens,
) -> Option<Tokens> {
    let native = inputs.model.max_position_embeddings;
    let place = engine.place(&keys::MAX_MODEL_LEN);
    let wanted = match asked {
        MaxModelLen::Given(tokens) if tokens > native => {
            let message = format!(
                "User-specified max_model_len ({tokens}) is greater than the derived max_model_len \
                 (max_position_embeddings={native})"
            );
            let label = format!("expected at most {native} for {}", inputs.model.name);
            reader.problem(Problem::new(place, message).label(label));
            return None;
        }
        MaxModelLen::Given(tokens) => tokens,
        MaxModelLen::Default | MaxModelLen::Auto => native,
    };
    if wanted <= longest {
        return Some(wanted);
    }
    if matches!(asked, MaxModelLen::Given(_)) && inputs.num_gpu_blocks_override.is_none() {
        // vLLM's own words, so that they can be searched for.
        let needed = blocks_of(&budget.to_kv_spec(), wanted) as f64 * budget.block_bytes as f64;
        let message = format!(
            "To serve at least one request with the models's max seq len ({wanted}), {:.2} GiB KV cache is needed, \
             which is larger than the available KV cache memory ({:.2} GiB). Based on the available memory, the \
             estimated maximum model length is {longest}",
            needed / GIB,
            budget.kv_available as f64 / GIB
        );
        let help = "increase `gpu_memory_utilization` or decrease `max_model_len`; \"auto\" takes what fits";
        reader.problem(Problem::new(place, message).label(format!("expected at most {longest}")).help(help));
        return None;
    }
    reader.warnings.push(format!(
        "max_model_len: {wanted} tokens do not fit into the KV pool of {} blocks; clipped to {longest}",
        budget.blocks
    ));
    Some(longest)
}

fn does_not_fit(
    context: &Context<'_>,
    top: &Section<'_>,
    inputs: &MemoryInputs<'_>,
    budget: &MemoryBudget,
    asked: MaxModelLen,
) -> Problem {
    let gpus = context.lookups.all_hardware(context.catalog);
    let tokens = match asked {
        MaxModelLen::Given(tokens) => tokens.min(inputs.model.max_position_embeddings),
        MaxModelLen::Default | MaxModelLen::Auto => 1,
    };
    let ways = alternatives(inputs, tokens, &gpus).unwrap_or_default();
    let gib = |bytes: u64| bytes as f64 / GIB;
    let MemoryInputs { model, hardware, tensor_parallel_size: tp, .. } = *inputs;
    let place = match (tp, inputs.pipeline_parallel_size) {
        (1, 1) => format!("one {}", hardware.name),
        (tp, 1) => format!("{tp} x {}", hardware.name),
        (tp, stages) => format!("{stages} stages of {tp} x {}", hardware.name),
    };
    let place = match inputs.data_parallel {
        Some(ranks) => format!("{} data-parallel ranks of {tp} x {}", ranks.count, hardware.name),
        None => place,
    };
    let missing = gib(ways.missing_bytes);
    let message = format!(
        "{} in {} does not fit on {place}: {missing:.1} GiB are missing on each GPU",
        model.name,
        inputs.weight_dtype.name()
    );
    let (weights, other) = (gib(budget.weights), gib(budget.non_torch + budget.graphs));
    let (activations, total) = (gib(budget.activations), gib(budget.total));
    let share = budget.gpu_memory_utilization;
    let label = match budget.kv_share {
        KvShare::OfTotal => format!(
            "weights {weights:.1} + activations {activations:.1} + other {other:.1} GiB, of {total:.1} GiB x {share}"
        ),
        KvShare::OfTotalForWeightsAndKv => format!(
            "weights {weights:.1} GiB, of {:.1} GiB x {share} for weights and KV",
            total - gib(budget.non_torch)
        ),
        KvShare::OfFree => format!(
            "weights {weights:.1} + activations {activations:.1} + other {other:.1} GiB, of {total:.1} GiB"
        ),
    };
    // With ranks it would say something else under every engine.
    let parallel = ways.tensor_parallel_size.filter(|_| inputs.data_parallel.is_none());
    let parallel = parallel.filter(|tp| indivisible_heads(model, *tp).is_none());
    let would_fit: Vec<String> = [
        ways.max_num_seqs.map(|count| format!("max_num_seqs = {count}")),
        ways.gpu_memory_utilization.map(|share| format!("gpu_memory_utilization = {share}")),
        parallel.map(|tp| format!("tensor_parallel_size = {tp}")),
        ways.weight_dtype.map(|dtype| format!("weight_dtype = \"{}\"", dtype.name())),
        ways.hardware.map(|gpu| format!("gpu = \"{gpu}\"")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let help = if share <= 0.0 {
        format!(
            "steps of max_num_batched_tokens = {} leave no memory to weights: set it lower, or set gpu_memory_utilization too",
            inputs.max_num_batched_tokens
        )
    } else if would_fit.is_empty() {
        "no single change makes it fit: combine tensor_parallel_size, weight_dtype and gpu".to_owned()
    } else {
        format!("what would fit, each alone: {}", list(would_fit))
    };
    let span = top.find(&root::MODEL).map(|node| {
        let name = node.entries().iter().find(|entry| entry.key == "name");
        name.map_or(node.span, |entry| entry.node.span)
    });
    let problem = Problem::new(span, message).label(label).help(help);
    Problem { does_not_fit: true, missing_mib: Some(in_mib(missing)), ..problem }
}
