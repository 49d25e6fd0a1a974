//! The simulator against requests measured on real servers. The data is not part of the product; set
//! `KNEE_DATA` to its folder to run these.

use std::path::{Path, PathBuf};

use knee::catalog::{Catalog, Dtype};
use knee::cost::{MemoryInputs, StepCost, memory_budget};
use knee::engine::{
    BatcherConfig, Batching, Client, Finished, LlmServer, Observer, Rejection, RouterPolicy, RunUntil,
    SchedulingPolicy, Server, Step, System, run,
};
use knee::units::{SimSpan, SimTime};
use knee::workload::Request;

/// One measured request.
#[derive(Clone, Copy)]
struct Measured {
    request: Request,
    ttft_s: f64,
    e2e_s: f64,
}

fn data() -> Option<PathBuf> {
    let found = std::env::var_os("KNEE_DATA").map(PathBuf::from);
    if found.is_none() {
        println!("skipped: KNEE_DATA is not set");
    }
    found
}

fn read(path: &Path) -> Vec<Measured> {
    let mut reader = csv::Reader::from_path(path).expect("a readable file");
    let rows = reader.records().enumerate().map(|(index, row)| {
        let row = row.expect("a row");
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        Measured {
            request: Request {
                index: index as u64,
                send: SimTime::ZERO + SimSpan::from_secs_f64(number(0)).expect("a time"),
                input_tokens: number(1) as u32,
                output_tokens: number(2) as u32,
                class: 0,
            },
            ttft_s: number(3) / 1e3,
            e2e_s: number(4) / 1e3,
        }
    });
    let mut rows: Vec<Measured> = rows.collect();
    rows.sort_by_key(|row| row.request.send);
    rows
}

/// Qwen3-14B in bf16 on one H100 under vLLM 0.23, everything from the catalog.
fn qwen3_14b_on_h100() -> System {
    let catalog = Catalog::new(None);
    let hardware = catalog.hardware("h100-sxm").expect("in the catalog");
    let (model, _) = catalog.model("qwen3-14b", Path::new(".")).expect("in the catalog");
    let engine = catalog.engine("vllm", Some("0.23"), &hardware).expect("in the catalog");
    let profile =
        catalog.profile("auto", &hardware, "vllm", None, Dtype::Bf16, Path::new(".")).expect("a profile");
    let values = &profile.values[0];
    let (seqs, budget) = (engine.max_num_seqs, engine.max_num_batched_tokens);
    let memory = memory_budget(&MemoryInputs {
        model: &model,
        weight_dtype: Dtype::Bf16,
        kv_dtype: Dtype::Bf16,
        hardware: &hardware,
        engine: &engine,
        max_num_seqs: seqs,
        max_num_batched_tokens: budget,
        tensor_parallel_size: 1,
        pipeline_parallel_size: 1,
        data_parallel: None,
        draft: None,
        gpu_memory_utilization: engine.gpu_memory_utilization,
        num_gpu_blocks_override: Some(18_038),
    });
    let server = LlmServer {
        batcher: BatcherConfig {
            batching: Batching::Continuous,
            max_num_seqs: seqs,
            max_num_batched_tokens: budget,
            max_model_len: 40_960,
            enable_chunked_prefill: true,
            full_prompt_gate: engine.full_prompt_gate,
            watermark_blocks: 0,
            scheduling_policy: SchedulingPolicy::Fcfs,
            async_scheduling: engine.async_scheduling,
            batch_wait: None,
            class_priority: vec![0],
        },
        kv: memory.to_kv_spec(),
        cost: StepCost::new(&model, Dtype::Bf16, Dtype::Bf16, &hardware, values, 1, budget),
        front_end: SimSpan::from_secs_f64(values.front_end_s).expect("a time"),
        pipeline: None,
        speculation: None,
        data_parallel: None,
    };
    System { replicas: 1, router: RouterPolicy::RoundRobin, server: Server::Llm(Box::new(server)) }
}

#[derive(Default)]
struct Lives(Vec<Finished>);

impl Observer for Lives {
    fn sent(&mut self, _: &Request) {}
    fn rejected(&mut self, _: SimTime, _: &Request, _: Rejection) {}
    fn step(&mut self, _: u32, _: &Step<'_>) {}
    fn served(&mut self, _: u32, _: SimTime, _: SimTime, _: u32, _: u32) {}
    fn token_gaps(&mut self, _: SimTime, _: u16, _: SimSpan, _: u32) {}
    fn preempted(&mut self, _: SimTime, _: u32, _: u16) {}
    fn finished(&mut self, _: u32, life: &Finished) {
        self.0.push(*life);
    }
}

/// Replays measured requests, at their send times or as a closed loop of `users`.
struct Replay {
    requests: std::vec::IntoIter<Request>,
    users: Option<u32>,
}

impl Client for Replay {
    fn next_request(&mut self) -> Option<Request> {
        self.requests.next()
    }
    fn users(&self) -> Option<u32> {
        self.users
    }
    fn request_at(&mut self, send: SimTime) -> Request {
        let request = self.requests.next().expect("no more is asked than there is");
        Request { send, ..request }
    }
    fn think_time(&mut self, _: &Request) -> SimSpan {
        SimSpan::ZERO
    }
}

/// Values of (TTFT, TPOT, E2E) in seconds, one a request, and the makespan.
struct Latencies {
    ttft_s: Vec<f64>,
    tpot_s: Vec<f64>,
    e2e_s: Vec<f64>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn p99(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = 0.99 * (sorted.len() - 1) as f64;
    let low = rank as usize;
    sorted[low] + (sorted[(low + 1).min(sorted.len() - 1)] - sorted[low]) * (rank - low as f64)
}

fn simulate(rows: &[Measured], users: Option<u32>) -> (Latencies, f64) {
    let requests: Vec<Request> = rows.iter().map(|row| row.request).collect();
    let until = RunUntil { requests: requests.len() as u64, time: SimTime::MAX, drain: true };
    let mut client = Replay { requests: requests.into_iter(), users };
    let mut lives = Lives::default();
    let end = run(&qwen3_14b_on_h100(), &mut client, until, 1, 0, &mut lives).expect("a valid run");
    let of = |value: fn(&Finished) -> f64| lives.0.iter().map(value).collect::<Vec<f64>>();
    let ttft = |life: &Finished| life.first_token.since(life.request.send).as_secs_f64();
    let e2e = |life: &Finished| life.done.since(life.request.send).as_secs_f64();
    let tpot = |life: &Finished| {
        life.done.since(life.first_token).as_secs_f64() / f64::from(life.request.output_tokens - 1)
    };
    let latencies = Latencies { ttft_s: of(ttft), tpot_s: of(tpot), e2e_s: of(e2e) };
    (latencies, lives.0.len() as f64 / end.time.as_secs_f64())
}

fn measured(rows: &[Measured]) -> Latencies {
    Latencies {
        ttft_s: rows.iter().map(|row| row.ttft_s).collect(),
        tpot_s: rows
            .iter()
            .map(|row| (row.e2e_s - row.ttft_s) / f64::from(row.request.output_tokens - 1))
            .collect(),
        e2e_s: rows.iter().map(|row| row.e2e_s).collect(),
    }
}

/// Signed error of the simulation in per cent.
fn error(simulated: f64, measured: f64) -> f64 {
    100.0 * (simulated / measured - 1.0)
}

/// The profile's figures were fitted end to end on the 2 and 6 req/s cells; 4 req/s was not fitted.
#[test]
fn qwen3_14b_on_h100_below_saturation_is_within_five_per_cent() {
    let Some(data) = data() else { return };
    for rate in [2, 4, 6] {
        let file = format!("requests/qwen3-14b_h100_vllm0.23/sweep_rate-agg_{rate}rps.csv");
        let rows = read(&data.join(file));
        let (simulated, _) = simulate(&rows, None);
        let measured = measured(&rows);
        let errors = [
            ("TTFT mean", error(mean(&simulated.ttft_s), mean(&measured.ttft_s))),
            ("TPOT mean", error(mean(&simulated.tpot_s), mean(&measured.tpot_s))),
            ("E2E mean", error(mean(&simulated.e2e_s), mean(&measured.e2e_s))),
            ("E2E p99", error(p99(&simulated.e2e_s), p99(&measured.e2e_s))),
            ("TTFT p99", error(p99(&simulated.ttft_s), p99(&measured.ttft_s))),
        ];
        println!("{rate} req/s: {errors:.1?} %");
        for (what, error) in errors {
            assert!(error.abs() <= 5.0, "{rate} req/s, {what}: {error:.1} %");
        }
    }
}

/// Saturated by a client that keeps at most 256 requests in flight: simulated as the closed loop it is.
#[test]
fn qwen3_14b_on_h100_saturated_throughput_is_within_three_per_cent() {
    let Some(data) = data() else { return };
    let rows = read(&data.join("requests/qwen3-14b_h100_vllm0.23/w5_sweep-agg24.csv"));
    let end = rows.iter().map(|row| row.request.send.as_secs_f64() + row.e2e_s).fold(0.0, f64::max);
    let measured = rows.len() as f64 / end;
    let (_, simulated) = simulate(&rows, Some(256));
    println!("throughput {simulated:.2} req/s, measured {measured:.2} req/s");
    assert!(error(simulated, measured).abs() <= 3.0);
}
