//! Where a GPU's memory goes, in vLLM's terms and with vLLM's two start-up lines.

use crate::catalog::KvShare;
use crate::cost::MemoryBudget;
use crate::engine::LlmServer;
use crate::kv::KvSpec;
use crate::report::format::{ABSENT, count, counted, gib, number, percent, signed_gib};
use crate::report::table::{Columns, Look, MAX_WIDTH, Tone, wrapped};
use crate::scenario::{Scenario, Serving};
use crate::units::{Blocks, Tokens};
use crate::workload::Class;

/// The budget as a table: what is reserved, for what, and what is left for the KV cache.
pub(super) fn budget(memory: &MemoryBudget, serving: &Serving) -> Vec<String> {
    let mut table = Columns::words_last(&["", "GiB", "of total", ""].map(String::from), 1);
    let total = memory.total as f64;
    let mut row = |name: &str, text: String, bytes: f64, note: &str| {
        table.row(&[
            name.to_owned(),
            text,
            format!("{} %", percent((bytes / total).max(0.0))),
            note.to_owned(),
        ]);
    };
    let share = memory.gpu_memory_utilization;
    row("total", gib(memory.total), total, "");
    if memory.kv_share == KvShare::OfTotal {
        row("usable", gib((total * share) as u64), total * share, "gpu_memory_utilization");
    }
    let mut shard = Vec::new();
    if serving.attention_tp > 1 {
        shard.push("one shard".to_owned());
    }
    if serving.data_parallel.is_some() {
        shard.push(format!("with 1/{} of what the ranks share", serving.ranks()));
    }
    let stages = serving.pipeline_parallel_size;
    if stages > 1 {
        let layers = counted(u64::from(memory.layers), "layer");
        shard.push(format!(
            "stage {} of {stages}, {layers}; it has room for the fewest blocks",
            memory.stage + 1
        ));
    }
    let speculative = serving.speculative.as_ref();
    if speculative.is_some_and(|speculative| speculative.draft.is_some()) {
        shard.push("draft model included".to_owned());
    }
    let shard = shard.join(", ");
    let mut rows = vec![("- weights", memory.weights, shard.as_str())];
    if memory.kv_share != KvShare::OfTotalForWeightsAndKv {
        rows.push(("- activation peak", memory.activations, "profiling run"));
    }
    rows.push(("- not torch", memory.non_torch, ""));
    if memory.kv_share == KvShare::OfTotal {
        rows.push(("- CUDA graphs", memory.graphs, ""));
    }
    for (name, bytes, note) in rows {
        row(name, gib(bytes), bytes as f64, note);
    }
    let kept = (total - memory.weights as f64 - memory.non_torch as f64) - memory.kv_available as f64;
    match memory.kv_share {
        KvShare::OfTotal => {}
        KvShare::OfTotalForWeightsAndKv => {
            row(
                "- kept free",
                gib(kept.max(0.0) as u64),
                kept,
                "1 - mem_fraction_static: activations, graphs",
            );
        }
        KvShare::OfFree => {
            let kept = kept - memory.activations as f64;
            row("- kept free", gib(kept.max(0.0) as u64), kept, "1 - free_gpu_memory_fraction");
        }
    }
    let available = memory.kv_available;
    if available < 0 {
        let note = format!("nothing is left: {} GiB too little", signed_gib(-available));
        row("= KV cache", ABSENT.to_owned(), 0.0, &note);
    } else {
        row("= KV cache", signed_gib(available), available as f64, "");
    }
    let mut lines = table.lines();
    // More than what is left is possible only where the blocks were given.
    let pool = u64::from(memory.blocks).saturating_mul(memory.block_bytes);
    let beyond = i128::from(pool) - i128::from(available.max(0));
    if beyond > 0 {
        let text = format!(
            "num_gpu_blocks_override: {} blocks take {} GiB, {} GiB more than is left. They are simulated as given.",
            count(u64::from(memory.blocks)),
            gib(pool),
            gib(u64::try_from(beyond).unwrap_or(pool))
        );
        lines.extend(wrapped(&text, MAX_WIDTH));
    }
    lines
}

/// Blocks that one request of `tokens` tokens holds.
fn blocks_of(kv: &KvSpec, tokens: Tokens) -> Blocks {
    kv.blocks_for(tokens).saturating_add(kv.fixed_blocks(tokens)).max(1)
}

/// Whether a sequence's KV grows by a constant number of bytes per token.
fn grows_evenly(memory: &MemoryBudget) -> bool {
    memory.state_blocks == 0 && memory.window_blocks_per_token == 0.0
}

/// The lines that vLLM logs when it starts.
pub(super) fn start_up_lines(server: &LlmServer, memory: &MemoryBudget, look: Look) -> Vec<String> {
    let tokens = u64::from(memory.blocks) * u64::from(memory.block_size);
    let longest = server.batcher.max_model_len;
    let concurrency = f64::from(memory.blocks) / f64::from(blocks_of(&server.kv, longest));
    let is_vllm = memory.kv_share == KvShare::OfTotal;
    let mut lines = vec![
        look.paint(Tone::Quiet, if is_vllm { "vLLM would log:" } else { "In the words of vLLM's log:" }),
        format!("  GPU KV cache size: {} tokens", count(tokens)),
        format!(
            "  Maximum concurrency for {} tokens per request: {concurrency:.2}x",
            count(u64::from(longest))
        ),
    ];
    if server.ranks() > 1 {
        let all = tokens * u64::from(server.ranks());
        lines.push(format!("(each of {} ranks; {} tokens over all of them)", server.ranks(), count(all)));
    }
    if grows_evenly(memory) {
        lines.push(format!(
            "({} KV bytes per token over the {}, {} of {} tokens)",
            count(memory.kv_bytes_per_token),
            if server.ranks() > 1 { "rank" } else { "replica" },
            counted(u64::from(memory.blocks), "block"),
            memory.block_size,
        ));
    } else {
        lines.push(
            "(windowed or constant-state layers: KV bytes per token are not constant, so the first line counts \
             growing layers only)"
                .to_owned(),
        );
    }
    lines
}

/// How many requests of the workload's own lengths fit at once, beside vLLM's worst case.
pub(super) fn expected_concurrency(scenario: &Scenario, server: &LlmServer) -> Vec<String> {
    let Some((input, output)) = mean_lengths(&scenario.workload.classes) else {
        return Vec::new();
    };
    // A sequence grows evenly from its prompt to its end, so over its life it holds half of its output.
    let held = (input + output / 2.0).max(1.0);
    let fit = f64::from(server.kv.blocks) / f64::from(blocks_of(&server.kv, held as Tokens));
    let seqs = server.batcher.max_num_seqs;
    let on = if server.ranks() > 1 { " on each rank" } else { "" };
    let limit = if fit < f64::from(seqs) { "the KV cache" } else { "max_num_seqs" };
    wrapped(
        &format!(
            "At this workload's mean lengths ({} in, {} out) {} requests fit at once{on}; max_num_seqs is {}: {limit} limits.",
            number(input),
            number(output),
            number(fit),
            count(u64::from(seqs)),
        ),
        MAX_WIDTH,
    )
}

/// Mean prompt and output tokens over the classes, by share.
pub(super) fn mean_lengths(classes: &[Class]) -> Option<(f64, f64)> {
    let weighted = |pick: fn((f64, f64)) -> f64| -> f64 {
        classes.iter().map(|class| class.share * pick(class.lengths.mean_tokens())).sum()
    };
    let (input, output) = (weighted(|pair| pair.0), weighted(|pair| pair.1));
    (input > 0.0).then_some((input, output))
}
