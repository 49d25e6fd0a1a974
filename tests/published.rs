//! The scheduler against published cases: how often requests are preempted, what a smaller token budget
//! does, and why a faster GPU can answer more slowly. Nothing here is fitted.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use knee::catalog::Catalog;
use knee::experiment::run_once;
use knee::metrics::{RunSummary, latency_of};
use knee::scenario::{Document, Scenario};
use knee::workload::Metric;

fn scenario(text: &str) -> Scenario {
    let document = Document::parse(text, None).unwrap_or_else(|errors| panic!("{errors}"));
    document.scenario(&Catalog::new(None)).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Three replications: their preemptions and output tokens per second, averaged.
fn mean_of_three(scenario: &Scenario) -> (f64, f64) {
    let runs: Vec<RunSummary> = (0..3).map(|at| run_once(scenario, at).expect("it runs")).collect();
    let mean = |value: &dyn Fn(&RunSummary) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    (mean(&|run| run.totals.preemptions as f64), mean(&|run| run.all.output_tokens_per_s))
}

/// vLLM pull request 44594 (GB200, Qwen2.5-7B, 299,584 KV tokens, 128 users, 450 prompts of about 1,000
/// tokens with answers of about 5,000, no prefix caching): 1,065, 400, 187 and 168 preemptions by
/// watermark, with the highest throughput at 0.05. Its step times are the estimate for a B200.
#[test]
fn preemptions_by_watermark() {
    let mut throughputs = Vec::new();
    for (watermark, published) in [("0.0", 1065.0), ("0.02", 400.0), ("0.05", 187.0), ("0.10", 168.0)] {
        let (preemptions, tokens_per_s) = mean_of_three(&scenario(&format!(
            r#"
            model = {{ name = "qwen2.5-7b" }}
            hardware = {{ gpu = "gb200" }}
            run = {{ requests = 450, mode = "benchmark" }}
            arrivals = {{ closed = {{ users = 128 }} }}
            [engine]
            version = "0.24"
            max_model_len = 8192
            max_num_seqs = 256
            num_gpu_blocks_override = 18724
            watermark = {watermark}
            [[class]]
            input_tokens = {{ uniform = {{ min = 800, max = 1200 }} }}
            output_tokens = {{ uniform = {{ min = 4000, max = 6000 }} }}
            "#
        )));
        println!(
            "watermark {watermark}: {preemptions:.0} preemptions ({published}), {tokens_per_s:.0} tokens/s"
        );
        assert!((preemptions / published - 1.0).abs() < 0.25, "{watermark}: {preemptions}, {published}");
        throughputs.push(tokens_per_s);
    }
    let best = throughputs.iter().copied().fold(0.0, f64::max);
    assert_eq!(throughputs.iter().position(|&rate| rate == best), Some(2), "{throughputs:?}");
}

/// ShareGPT's lengths, filtered as vLLM's load generator filters them, as a scenario's length file.
fn sharegpt(name: &str) -> Option<PathBuf> {
    let Some(data) = std::env::var_os("KNEE_DATA").map(PathBuf::from) else {
        println!("skipped: KNEE_DATA is not set");
        return None;
    };
    let path = data.join("traces/lengths/sharegpt-vicuna.csv");
    let mut reader = csv::Reader::from_path(path).expect("a readable file");
    let mut text = String::from("input_tokens,output_tokens\n");
    for row in reader.records() {
        let row = row.expect("a row");
        let number = |column: usize| row[column].parse::<u32>().expect("a number");
        let (input, output) = (number(0), number(1));
        if input >= 4 && output >= 4 && input <= 1024 && input + output <= 2048 {
            writeln!(text, "{input},{output}").expect("text grows");
        }
    }
    let file = std::env::temp_dir().join(format!("knee-{name}-{}.csv", std::process::id()));
    std::fs::write(&file, text).expect("a writable folder");
    Some(file)
}

/// All of `requests` ShareGPT requests at once; `model`, `gpu` and the lines of `engine` are the deployment.
fn at_once(model: &str, gpu: &str, engine: &str, requests: u32, lengths: &Path) -> Scenario {
    scenario(&format!(
        r#"
        model = {{ name = "{model}" }}
        hardware = {{ gpu = "{gpu}" }}
        run = {{ requests = {requests} }}
        arrivals = {{ all_at_once = {{}} }}
        [engine]
        {engine}
        [[class]]
        lengths = {{ file = "{}" }}
        "#,
        lengths.display()
    ))
}

/// vLLM pull request 17885 (May 2025; A100-80, Llama-3.1-70B, utilisation 0.95, max_model_len 10000, 400
/// ShareGPT prompts at once): the defaults went from 8192 tokens and 1024 sequences to 2048 and 256, and
/// throughput from 1,054 to 1,438 tokens/s over 2 GPUs (+36 %), from 3,053 to 2,994 over 4 (-2 %).
///
/// Over 2 GPUs weights leave so little that the activation peak of the larger defaults takes almost half
/// of the KV pool. Over 4 there is room in any case, and 256 sequences are fewer than the 400 that came.
#[test]
fn a_smaller_budget_helps_a_full_gpu_and_hurts_an_empty_one() {
    let Some(lengths) = sharegpt("budget") else { return };
    let run = |tp: u32, tokens: u32, seqs: u32| {
        let engine = format!(
            "version = \"0.8\"
            tensor_parallel_size = {tp}
            gpu_memory_utilization = 0.95
            max_model_len = 10000
            max_num_batched_tokens = {tokens}
            max_num_seqs = {seqs}"
        );
        let scenario = at_once("llama-3.1-70b", "a100-80-sxm", &engine, 400, &lengths);
        let blocks = f64::from(scenario.serving.as_ref().expect("a model").memory.blocks);
        (mean_of_three(&scenario).1, blocks)
    };
    for (tp, published) in [(2, 0.36), (4, -0.02)] {
        let (large, large_blocks) = run(tp, 8192, 1024);
        let (small, small_blocks) = run(tp, 2048, 256);
        let gain = small / large - 1.0;
        println!(
            "TP{tp}: {large:.0} to {small:.0} tokens/s, {gain:+.2} ({published:+}); {large_blocks} to {small_blocks} blocks"
        );
        assert_eq!(gain > 0.0, published > 0.0, "TP{tp}: {gain}");
        assert_eq!(small_blocks > 1.5 * large_blocks, tp == 2, "TP{tp}: {large_blocks}, {small_blocks}");
    }
    std::fs::remove_file(lengths).expect("it was written");
}

/// Issue 3's case: ShareGPT at once, Qwen3-14B, mean TPOT 226 ms on H100 and 114 ms on A100, everything at
/// its default. H100's defaults let four times as many sequences run, which costs each of them more, with
/// preemptions on top; it answers twice as much meanwhile. How many prompts were sent is not known; with
/// 1,000 the order comes out, by much less than was measured (1.2 instead of 2 times as long).
#[test]
fn defaults_alone_make_a_faster_gpu_answer_more_slowly() {
    let Some(lengths) = sharegpt("defaults") else { return };
    let run = |gpu: &str| {
        let scenario = at_once("qwen3-14b", gpu, "version = \"0.11\"", 1000, &lengths);
        let run = run_once(&scenario, 0).expect("it runs");
        let tpot = latency_of(&run.all, Metric::Tpot).expect("tokens").mean_s * 1e3;
        println!(
            "{gpu}: TPOT {tpot:.0} ms, {:.0} tokens/s, {} preemptions",
            run.all.output_tokens_per_s, run.totals.preemptions
        );
        (tpot, run.all.output_tokens_per_s, run.totals.preemptions)
    };
    let (h100, a100) = (run("h100-sxm"), run("a100-80-sxm"));
    assert!(h100.0 > 1.1 * a100.0 && h100.1 > 1.5 * a100.1);
    assert!(h100.2 > 0 && a100.2 == 0);
    std::fs::remove_file(lengths).expect("it was written");
}
