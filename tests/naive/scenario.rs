//! Random scenarios for comparing engines. The same seed gives the same scenario on every machine.

use knee::cost::{Pipeline, StepCost};
use knee::engine::{
    BatchWait, BatcherConfig, Batching, DataParallel, LlmServer, PrefillFirst, PromptBalance, RankPolicy,
    SchedulingPolicy, Speculation,
};
use knee::kv::KvSpec;
use knee::units::{SimSpan, SimTime, Tokens};
use knee::workload::Request;

use super::{Load, Outcome, simulate};

/// Everything that [`simulate`] takes.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub server: LlmServer,
    pub load: Load,
}

/// Step costs that depend on the number of tokens only. The first two are whole milliseconds, as are most
/// random times below, so that arrivals and step ends often coincide.
pub fn affine_costs() -> Vec<StepCost> {
    vec![
        StepCost::affine(1e-3, 1e-3),
        StepCost::affine(2e-3, 0.0),
        StepCost::affine(5.3e-3, 21.7e-6),
        StepCost::affine(0.0, 1e-9),
    ]
}

impl Scenario {
    /// Scenario number `seed`, with one of `costs`: [`affine_costs`], a model with a sliding window...
    pub fn random(seed: u64, costs: &[StepCost]) -> Self {
        Self::with(seed, costs, &[(8, 4), (60, 12), (20, 60), (400, 25), (1, 40), (6, 90)], 90)
    }

    /// The same with few requests and outputs of up to thousands of tokens: long stretches in which the
    /// batch only grows older.
    pub fn random_long(seed: u64, costs: &[StepCost]) -> Self {
        Self::with(seed, costs, &[(50, 400), (300, 1100), (9, 2600)], 9)
    }

    fn with(seed: u64, costs: &[StepCost], longest: &[(Tokens, Tokens)], most: u32) -> Self {
        let mut rng = SplitMix(seed);
        let (max_input, max_output) = rng.pick(longest);
        let classes = rng.pick(&[1, 2, 3, 3]);
        let lengths: Vec<(Tokens, Tokens, u16)> = (0..rng.range(1, most))
            .map(|_| {
                (rng.length(max_input), rng.length(max_output), rng.range(0, u32::from(classes - 1)) as u16)
            })
            .collect();
        let longest = lengths.iter().map(|l| l.0 + l.1).max().unwrap_or(2);
        let kv = rng.kv(longest);
        let batcher = rng.batcher(longest, &kv, classes);
        let cost = costs[rng.range(0, costs.len() as u32 - 1) as usize].clone();
        let front_end = rng.front_end();
        let server = LlmServer {
            batcher,
            kv,
            cost,
            front_end,
            pipeline: None,
            speculation: None,
            data_parallel: None,
        };
        Self { server, load: rng.load(lengths) }
    }

    /// Scenario number `seed` with pipeline stages or speculation, under vLLM's batching.
    pub fn random_staged(seed: u64, costs: &[StepCost]) -> Self {
        let longest = &[(8, 4), (60, 12), (20, 60), (400, 25), (6, 90), (30, 30)];
        let mut scenario = Self::with(seed, costs, longest, 90);
        let mut rng = SplitMix(!seed);
        let server = &mut scenario.server;
        server.batcher.batching = Batching::Continuous;
        // Whatever the batching was, a prompt that is not cut must fit into the budget.
        let floor = if server.batcher.enable_chunked_prefill { 1 } else { server.batcher.max_model_len };
        server.batcher.max_num_batched_tokens = server.batcher.max_num_batched_tokens.max(floor);
        if rng.one_in(2) {
            server.pipeline = Some(rng.pipeline());
        } else {
            server.speculation = Some(rng.speculation());
            // Room for the drafts, or most requests would be refused.
            server.kv.blocks += 20_u32.div_ceil(server.kv.block_size);
        }
        scenario
    }

    /// Scenario number `seed` under TensorRT-LLM's batching, with prompts that wait for others.
    pub fn random_batch_wait(seed: u64, costs: &[StepCost]) -> Self {
        let longest = &[(8, 4), (60, 12), (20, 60), (400, 25), (6, 90), (30, 30)];
        let mut scenario = Self::with(seed, costs, longest, 90);
        let mut rng = SplitMix(!seed);
        let batcher = &mut scenario.server.batcher;
        batcher.batching = rng.pick(&[Batching::GuaranteedNoEvict, Batching::MaxUtilization]);
        batcher.scheduling_policy = SchedulingPolicy::Fcfs;
        batcher.batch_wait = Some(BatchWait {
            timeout_iters: rng.pick(&[0, 1, 2, 5, 20, 1000]),
            max_tokens_ratio: rng.pick(&[0.0, 0.02, 0.1, 0.5, 0.9, 1.0]),
        });
        scenario
    }

    /// Scenario number `seed` with data-parallel ranks, under any batching but the static one.
    pub fn random_ranks(seed: u64, costs: &[StepCost]) -> Self {
        let longest = &[(8, 4), (60, 12), (20, 60), (400, 25), (1, 40), (6, 90)];
        let mut scenario = Self::with(seed, costs, longest, 90);
        let mut rng = SplitMix(!seed);
        let server = &mut scenario.server;
        if server.batcher.batching == Batching::Static {
            server.batcher.batching = Batching::Continuous;
        }
        let ranks = rng.pick(&[1, 2, 2, 3, 4, 8]);
        let policies = [RankPolicy::WaitingAndRunning, RankPolicy::RoundRobin, RankPolicy::PromptTokens];
        let policy = rng.pick(&policies);
        if policy == RankPolicy::PromptTokens {
            // An engine that sorts its queue by prompts has no priorities.
            server.batcher.scheduling_policy = SchedulingPolicy::Fcfs;
        }
        server.data_parallel = Some(DataParallel { ranks, policy, balance: None });
        let per_token_s = rng.pick(&[0.0, 1e-3, 33.3e-6]);
        server.cost = server.cost.clone().with_shared_tokens(ranks, per_token_s);
        scenario
    }

    /// Scenario number `seed` with TensorRT-LLM's ranks, of which prompts wait for each other's.
    pub fn random_balance(seed: u64, costs: &[StepCost]) -> Self {
        let mut scenario = Self::random_ranks(seed, costs);
        let mut rng = SplitMix(!seed.rotate_left(32));
        let server = &mut scenario.server;
        server.batcher.batching = rng.pick(&[Batching::GuaranteedNoEvict, Batching::MaxUtilization]);
        server.batcher.scheduling_policy = SchedulingPolicy::Fcfs;
        let ranks = server.ranks();
        let balance = Some(PromptBalance {
            timeout_iters: rng.pick(&[0, 1, 2, 5, 20, 50]),
            batching_wait_iters: rng.pick(&[0, 1, 3, 10]),
        });
        server.data_parallel = Some(DataParallel { ranks, policy: RankPolicy::PromptTokens, balance });
        scenario
    }

    pub fn simulate(&self) -> Outcome {
        simulate(&self.server, self.load.clone())
    }
}

/// Steele, Lea and Flood's generator (OOPSLA 2014): small, and of no kin to the product's.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A whole number from `min` to `max`.
    fn range(&mut self, min: u32, max: u32) -> u32 {
        min + (self.next() % u64::from(max - min + 1)) as u32
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.range(0, choices.len() as u32 - 1) as usize]
    }

    /// True once in `n` times.
    fn one_in(&mut self, n: u32) -> bool {
        self.range(1, n) == 1
    }

    /// From 1 to `max`: mostly anywhere between, often one of the ends.
    fn length(&mut self, max: Tokens) -> Tokens {
        match self.range(0, 7) {
            0 => 1,
            1 => max,
            _ => self.range(1, max),
        }
    }

    /// A pool from too small for the longest request to one that holds everything.
    fn kv(&mut self, longest: Tokens) -> KvSpec {
        let mut kv = KvSpec {
            block_size: self.pick(&[1, 4, 16]),
            blocks: 0,
            state_blocks: if self.one_in(4) { self.range(1, 3) } else { 0 },
            window: self.pick(&[4, 32]),
            window_blocks_per_token: if self.one_in(4) { self.pick(&[0.05, 0.3, 1.0]) } else { 0.0 },
        };
        let need = kv.fixed_blocks(longest) + kv.blocks_for(longest);
        let percent = match self.range(0, 5) {
            0 => self.range(80, 110),
            1..=3 => self.range(100, 250),
            4 => self.range(200, 800),
            _ => 10_000,
        };
        kv.blocks = (need * percent / 100).max(1);
        kv
    }

    fn batcher(&mut self, longest: Tokens, kv: &KvSpec, classes: u16) -> BatcherConfig {
        let max_num_seqs = self.pick(&[1, 2, 3, 5, 8, 16, 33, 64]);
        let max_model_len =
            if self.one_in(5) { (longest * 3 / 4).max(2) } else { longest + self.range(0, 9) };
        let enable_chunked_prefill = !self.one_in(3);
        let spare = self.pick(&[0, 1, 7, 40, 300, 4000]);
        // Without chunks a prompt that exceeds the budget could never start.
        let floor = if enable_chunked_prefill { 1 } else { max_model_len };
        let batching = self.batching();
        BatcherConfig {
            batching,
            max_num_seqs,
            // SGLang cuts prompts at whole blocks.
            max_num_batched_tokens: match batching {
                Batching::PrefillFirst(_) => (max_num_seqs + spare).next_multiple_of(kv.block_size),
                // These refuse a prompt that exceeds the budget.
                Batching::GuaranteedNoEvict | Batching::MaxUtilization => max_num_seqs + spare,
                Batching::Continuous | Batching::Static => max_num_seqs.max(floor) + spare,
            },
            max_model_len,
            enable_chunked_prefill,
            full_prompt_gate: self.one_in(2),
            watermark_blocks: if self.one_in(2) { 0 } else { kv.blocks * self.range(0, 20) / 100 },
            scheduling_policy: match batching {
                Batching::Continuous | Batching::Static => {
                    self.pick(&[SchedulingPolicy::Fcfs, SchedulingPolicy::Priority])
                }
                // The only one that these engines are simulated with.
                _ => SchedulingPolicy::Fcfs,
            },
            async_scheduling: self.one_in(2),
            batch_wait: None,
            class_priority: (0..classes).map(|_| self.range(0, 5) as i32 - 2).collect(),
        }
    }

    fn pipeline(&mut self) -> Pipeline {
        let layers = (0..self.pick(&[1, 2, 2, 3, 4, 5])).map(|_| self.range(1, 3)).collect();
        Pipeline::from_parts(layers, self.pick(&[0.0, 1e-3, 37e-6]), self.pick(&[0.0, 1e-6]))
    }

    fn speculation(&mut self) -> Speculation {
        let drafts = self.range(0, 5);
        let mean = 1.0 + f64::from(drafts) * f64::from(self.range(0, 20)) / 20.0;
        let draft = self.pick(&[None, Some(1e-3), Some(123e-6)]).map(|step_s| StepCost::affine(step_s, 1e-6));
        Speculation::new(drafts, mean, self.pick(&[0, drafts]), draft)
    }

    fn batching(&mut self) -> Batching {
        match self.range(0, 11) {
            0 | 1 => Batching::Static,
            2 => Batching::GuaranteedNoEvict,
            3 => Batching::MaxUtilization,
            4..=6 => Batching::PrefillFirst(self.prefill_first()),
            _ => Batching::Continuous,
        }
    }

    fn prefill_first(&mut self) -> PrefillFirst {
        let init_new_token_ratio = self.pick(&[0.0, 0.3, 0.7, 1.0]);
        PrefillFirst {
            max_prefill_tokens: self.pick(&[1, 8, 64, 16_384]),
            scheduler_recv_interval: self.pick(&[1, 1, 2, 5, 30]),
            init_new_token_ratio,
            min_new_token_ratio: init_new_token_ratio * 0.14,
            new_token_ratio_decay: init_new_token_ratio * self.pick(&[0.0, 0.01, 0.2]),
            clip_max_new_tokens: self.pick(&[1, 10, 4096]),
            retract_decode_steps: self.pick(&[0, 1, 20]),
            retract_to_headroom: self.one_in(2),
        }
    }

    fn front_end(&mut self) -> SimSpan {
        match self.range(0, 3) {
            0 | 1 => SimSpan::ZERO,
            2 => millis(self.range(1, 5)),
            _ => SimSpan::from_nanos(u64::from(self.range(1, 9_999_999))),
        }
    }

    fn load(&mut self, lengths: Vec<(Tokens, Tokens, u16)>) -> Load {
        match self.range(0, 5) {
            0 => open(lengths, || SimSpan::ZERO),
            1 => open(lengths, || if self.one_in(3) { millis(self.range(1, 60)) } else { SimSpan::ZERO }),
            2 => {
                let longest_ms = self.pick(&[8, 50, 200]);
                open(lengths, || millis(self.range(0, longest_ms)))
            }
            3 => {
                let mean_s = self.pick(&[1e-7, 2e-3, 30e-3, 100e-3]);
                open(lengths, || self.exponential(mean_s))
            }
            _ => Load::Closed {
                users: self.pick(&[1, 2, 7, 20, 70]),
                think: match self.range(0, 2) {
                    0 => vec![SimSpan::ZERO],
                    1 => (0..self.range(1, 9)).map(|_| millis(self.range(0, 30))).collect(),
                    _ => (0..self.range(1, 9)).map(|_| self.exponential(20e-3)).collect(),
                },
                total: u64::from(self.range(1, 120)),
                requests: lengths,
            },
        }
    }

    fn exponential(&mut self, mean_s: f64) -> SimSpan {
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        SimSpan::from_secs_f64(-mean_s * libm::log(1.0 - uniform)).expect("a finite span")
    }
}

fn open(lengths: Vec<(Tokens, Tokens, u16)>, mut gap: impl FnMut() -> SimSpan) -> Load {
    let mut send = SimTime::ZERO;
    let request = |(index, (input_tokens, output_tokens, class))| {
        send += gap();
        Request { index, send, input_tokens, output_tokens, class }
    };
    Load::Open((0..).zip(lengths).map(request).collect())
}

fn millis(ms: u32) -> SimSpan {
    SimSpan::from_nanos(u64::from(ms) * 1_000_000)
}
