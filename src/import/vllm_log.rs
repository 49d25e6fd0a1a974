//! What vLLM logs when it starts: version, settings, and where the memory went.
//!
//! The wording changed from version to version (0.6 to today); every wording known is looked for in every
//! line, so a log of a container with anything around it is fine. Older versions print GiB as `GB`. With
//! several workers a line comes once per worker: the smallest KV memory counts, as it does for the engine.

use super::Imported;
use super::error::ImportError;
use super::numbers::small_count;
use super::point::ServerFacts;

/// vLLM's block size on CUDA unless it is set.
const DEFAULT_BLOCK_SIZE: u32 = 16;

pub(super) fn read(into: &mut Imported, name: &str, text: &str) -> Result<(), ImportError> {
    let mut facts = ServerFacts { engine: Some("vllm".to_owned()), ..ServerFacts::default() };
    let mut sizes = Vec::new();
    let mut starts = 0;
    for line in text.lines() {
        if line.contains("LLM engine (v") {
            starts += 1;
        }
        settings(&mut facts, line);
        arguments(&mut facts, line);
        memory(&mut facts, line);
        if let Some(tokens) = whole_after(line, "GPU KV cache size: ") {
            sizes.push(tokens);
        }
    }
    facts.kv_cache_tokens = sizes.iter().min().copied();
    if facts == (ServerFacts { engine: Some("vllm".to_owned()), ..ServerFacts::default() }) {
        let expected = "lines such as `GPU KV cache size: 288,608 tokens` or `LLM engine (v0.11.0)`";
        return Err(ImportError::file(name, "none of vLLM's start-up lines", expected));
    }
    if sizes.iter().any(|size| Some(*size) != facts.kv_cache_tokens) {
        into.warn("", "the log has several KV cache sizes (engines or restarts); the smallest is taken");
    }
    if starts > 1 && facts.data_parallel_size.is_none_or(|size| size < 2) {
        into.warn("", "the log has several starts; what they differ in is taken from the last");
    }
    blocks(into, &mut facts);
    into.understand("settings and memory as vLLM printed them; GiB are per GPU");
    into.server = facts;
    Ok(())
}

/// Tokens and blocks from each other.
fn blocks(into: &mut Imported, facts: &mut ServerFacts) {
    let assumed = facts.block_size.is_none();
    let block = u64::from(facts.block_size.unwrap_or(DEFAULT_BLOCK_SIZE));
    let how = if assumed { "vLLM's default" } else { "as set" };
    match (facts.kv_cache_tokens, facts.num_gpu_blocks) {
        (Some(tokens), None) if tokens % block == 0 => {
            facts.num_gpu_blocks = Some(tokens / block);
            into.understand(&format!("{} blocks of {block} tokens ({how})", tokens / block));
        }
        (Some(tokens), None) => into.leave_out(&format!(
            "the number of blocks: {tokens} tokens are not whole blocks of {block} (a hybrid model, or another block \
             size)"
        )),
        (None, Some(blocks)) => {
            facts.kv_cache_tokens = blocks.checked_mul(block);
            into.understand(&format!("{blocks} blocks of {block} tokens ({how})"));
        }
        _ => {}
    }
    if let (Some(tokens), Some(length), Some(concurrency)) =
        (facts.kv_cache_tokens, facts.max_model_len, facts.max_concurrency)
    {
        let implied = tokens as f64 / length as f64;
        if (implied / concurrency - 1.0).abs() > 0.02 {
            into.warn(
                "",
                &format!(
                    "`Maximum concurrency` says {concurrency:.2}x where tokens over length give {implied:.2}x: layers \
                     with a window or with constant state, or a log of several engines"
                ),
            );
        }
    }
}

/// The text after `sign`, if the line has it.
fn after<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    line.find(sign).map(|start| &line[start + sign.len()..])
}

/// The number that follows `sign`; thousands may be separated.
fn number_after(line: &str, sign: &str) -> Option<f64> {
    let rest = after(line, sign)?;
    let digits: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
        .filter(|c| *c != ',')
        .collect();
    digits.trim_end_matches('.').parse().ok()
}

fn whole_after(line: &str, sign: &str) -> Option<u64> {
    number_after(line, sign)
        .filter(|number| number.fract() == 0.0 && *number <= 9e15)
        .map(|number| number as u64)
}

/// The word after `sign`, up to what cannot be in a name; quotes around it are taken off.
fn word_after<'a>(line: &'a str, sign: &str) -> Option<&'a str> {
    let rest = after(line, sign)?.trim_start_matches(['\'', '"']);
    let end = rest.find(['\'', '"', ',', ' ', ')', '}']).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|word| !word.is_empty() && *word != "None")
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}

/// `Initializing a V1 LLM engine (v0.11.0) with config: model='..', tensor_parallel_size=1, ...`.
fn settings(facts: &mut ServerFacts, line: &str) {
    for sign in ["LLM engine (v", "vLLM API server version v", "vLLM API server version "] {
        let version = word_after(line, sign).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        set(&mut facts.version, version.map(String::from));
    }
    set(
        &mut facts.max_num_batched_tokens,
        whole_after(line, "enabled with max_num_batched_tokens=").and_then(small_count),
    );
    let Some(config) = after(line, "LLM engine (v").and_then(|rest| after(rest, "with config: ")) else {
        return;
    };
    let small = |sign: &str| whole_after(config, sign).and_then(small_count);
    let flag = |sign: &str| word_after(config, sign).and_then(truth);
    set(&mut facts.model, word_after(config, "model=").map(String::from));
    set(&mut facts.tensor_parallel_size, small("tensor_parallel_size="));
    set(&mut facts.pipeline_parallel_size, small("pipeline_parallel_size="));
    set(&mut facts.data_parallel_size, small("data_parallel_size="));
    set(&mut facts.max_model_len, whole_after(config, "max_seq_len="));
    set(&mut facts.quantization, word_after(config, "quantization=").map(String::from));
    set(&mut facts.kv_cache_dtype, word_after(config, "kv_cache_dtype=").map(String::from));
    set(&mut facts.enable_prefix_caching, flag("enable_prefix_caching="));
    set(&mut facts.enable_chunked_prefill, flag("chunked_prefill_enabled="));
}

fn truth(word: &str) -> Option<bool> {
    match word {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// `non-default args: {'model': '..', 'max_num_seqs': 128, ...}`.
fn arguments(facts: &mut ServerFacts, line: &str) {
    let Some(args) = after(line, "non-default args: ") else { return };
    let small = |key: &str| whole_after(args, &format!("'{key}': ")).and_then(small_count);
    set(&mut facts.model, word_after(args, "'model': ").map(String::from));
    set(&mut facts.max_num_seqs, small("max_num_seqs"));
    set(&mut facts.max_num_batched_tokens, small("max_num_batched_tokens"));
    set(&mut facts.tensor_parallel_size, small("tensor_parallel_size"));
    set(&mut facts.pipeline_parallel_size, small("pipeline_parallel_size"));
    set(&mut facts.data_parallel_size, small("data_parallel_size"));
    set(&mut facts.block_size, small("block_size"));
    set(&mut facts.max_model_len, whole_after(args, "'max_model_len': "));
    set(&mut facts.gpu_memory_utilization, number_after(args, "'gpu_memory_utilization': "));
    set(&mut facts.enable_expert_parallel, word_after(args, "'enable_expert_parallel': ").and_then(truth));
}

/// Lines about memory, in GiB.
fn memory(facts: &mut ServerFacts, line: &str) {
    for sign in
        ["Model loading took ", "Loading model weights took ", "model weights take ", "weights memory: "]
    {
        set(&mut facts.weights_gib, number_after(line, sign));
    }
    for sign in ["PyTorch activation peak memory takes ", "torch peak memory increase: "] {
        set(&mut facts.activation_peak_gib, number_after(line, sign));
    }
    for sign in ["non_torch_memory takes ", "non-torch forward increase memory: "] {
        set(&mut facts.non_torch_gib, number_after(line, sign));
    }
    for sign in ["Available KV cache memory: ", "reserved for KV Cache is "] {
        let smallest =
            number_after(line, sign).map(|gib| facts.available_kv_cache_gib.map_or(gib, |k| k.min(gib)));
        set(&mut facts.available_kv_cache_gib, smallest);
    }
    if line.contains("Graph capturing finished") {
        set(&mut facts.cuda_graphs_gib, number_after(line, "took "));
    }
    set(&mut facts.total_memory_gib, number_after(line, "total_gpu_memory ("));
    set(&mut facts.gpu_memory_utilization, number_after(line, "gpu_memory_utilization ("));
    set(&mut facts.num_gpu_blocks, whole_after(line, "GPU blocks: "));
    set(&mut facts.max_model_len, whole_after(line, "Maximum concurrency for "));
    set(&mut facts.max_concurrency, number_after(line, "tokens per request: "));
}
