//! The oracle's own tests: timelines worked out by hand. A step takes 10 ms and 1 ms per token.

use knee::cost::StepCost;
use knee::engine::{BatcherConfig, Batching, LlmServer, SchedulingPolicy};
use knee::kv::KvSpec;
use knee::units::{Blocks, SimSpan, SimTime, Tokens};
use knee::workload::Request;

use super::{Load, Outcome, Scenario, affine_costs, simulate};

const MS: u64 = 1_000_000;

pub(super) fn batcher() -> BatcherConfig {
    BatcherConfig {
        batching: Batching::Continuous,
        max_num_seqs: 8,
        max_num_batched_tokens: 100,
        max_model_len: 50,
        enable_chunked_prefill: true,
        full_prompt_gate: false,
        watermark_blocks: 0,
        scheduling_policy: SchedulingPolicy::Fcfs,
        async_scheduling: true,
        batch_wait: None,
        class_priority: vec![0, 1],
    }
}

/// Blocks of one token, so that a sequence holds as many as its KV has tokens.
pub(super) fn pool(blocks: Blocks) -> KvSpec {
    KvSpec { block_size: 1, blocks, state_blocks: 0, window: 0, window_blocks_per_token: 0.0 }
}

/// Requests of (send in ms, input, output, class).
pub(super) fn open(requests: &[(u64, Tokens, Tokens, u16)]) -> Load {
    let request = |(index, &(send_ms, input_tokens, output_tokens, class))| Request {
        index,
        send: SimTime::from_nanos(send_ms * MS),
        input_tokens,
        output_tokens,
        class,
    };
    Load::Open((0..).zip(requests).map(request).collect())
}

pub(super) fn run(batcher: &BatcherConfig, kv: KvSpec, front_end_ms: u64, load: Load) -> Outcome {
    let (batcher, cost) = (batcher.clone(), StepCost::affine(0.010, 0.001));
    let front_end = SimSpan::from_nanos(front_end_ms * MS);
    simulate(
        &LlmServer { batcher, kv, cost, front_end, pipeline: None, speculation: None, data_parallel: None },
        load,
    )
}

/// (index, scheduled, first token, done in ms, preemptions) of each request, in order of completion.
pub(super) fn lives(outcome: &Outcome) -> Vec<(u64, u64, u64, u64, u32)> {
    let ms = |time: SimTime| time.as_nanos() / MS;
    let life = |r: &super::Record| (r.index, ms(r.scheduled), ms(r.first_token), ms(r.done), r.preemptions);
    outcome.finished.iter().map(life).collect()
}

pub(super) fn gaps_ms(outcome: &Outcome) -> Vec<u64> {
    outcome.gaps_ns.iter().map(|ns| ns / MS).collect()
}

pub(super) fn step_tokens(outcome: &Outcome) -> Vec<u32> {
    outcome.steps.iter().map(|step| step.shape.tokens).collect()
}

/// Sent at 1, in the engine at 3. Prompt 15, then two decodes of 11 each.
#[test]
fn a_single_request() {
    let outcome = run(&batcher(), pool(40), 2, open(&[(1, 5, 3, 0)]));
    assert_eq!(lives(&outcome), [(0, 3, 18, 40, 0)]);
    assert_eq!(outcome.finished[0].send, SimTime::from_nanos(MS));
    assert_eq!(gaps_ms(&outcome), [11, 11]);
    assert_eq!(step_tokens(&outcome), [5, 1, 1]);
    assert_eq!(outcome.steps[2].shape.decode_context, 7);
    assert_eq!(outcome.end, SimTime::from_nanos(40 * MS));
}

/// B arrives at 1 while A's prompt runs until 15. Pipelined, A's decode was composed at 0 and runs alone
/// until 26; otherwise B's prompt joins it at 15.
#[test]
fn the_second_request_waits_for_the_next_composition() {
    let load = || open(&[(0, 5, 2, 0), (1, 4, 2, 0)]);
    let pipelined = run(&batcher(), pool(40), 0, load());
    assert_eq!(lives(&pipelined), [(0, 0, 15, 26, 0), (1, 26, 40, 51, 0)]);
    assert_eq!(step_tokens(&pipelined), [5, 1, 4, 1]);

    let plain = run(&BatcherConfig { async_scheduling: false, ..batcher() }, pool(40), 0, load());
    assert_eq!(lives(&plain), [(0, 0, 15, 30, 0), (1, 15, 30, 41, 0)]);
    assert_eq!(step_tokens(&plain), [5, 5, 1]);
}

/// An arrival at the very end of a step is seen by the step composed then.
#[test]
fn an_arrival_comes_before_the_step_end_at_the_same_instant() {
    let plain = BatcherConfig { async_scheduling: false, ..batcher() };
    let outcome = run(&plain, pool(40), 0, open(&[(0, 5, 2, 0), (15, 4, 1, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 15, 30, 0), (1, 15, 30, 30, 0)]);
}

/// 8 blocks: both prompts take 5, the first decodes 2. Then A takes the last one, and B, last of the list,
/// preempts itself. Its 4 known tokens fit when A is gone at 49. The pipelined engine finds the same at 15
/// for the step at 27, when B's second token is still being made, and has nothing composed at 49.
#[test]
fn a_preempted_sequence_recomputes_all_known_tokens() {
    for async_scheduling in [false, true] {
        let batcher = BatcherConfig { async_scheduling, ..batcher() };
        let outcome = run(&batcher, pool(8), 0, open(&[(0, 3, 4, 0), (0, 2, 3, 0)]));
        assert_eq!(lives(&outcome), [(0, 0, 15, 49, 0), (1, 0, 15, 63, 1)]);
        assert_eq!(step_tokens(&outcome), [5, 2, 1, 1, 4]);
        assert_eq!(gaps_ms(&outcome), [11, 11, 12, 12, 36]);
        assert_eq!(outcome.preemptions, 1);
        assert_eq!(outcome.steps[4].shape.prefill_pairs_x2, 16);
    }
}

/// 7 blocks, all taken when the step after the first decodes is composed at 15. A needs one; B, the last of
/// the list, waits only for its last token: it loses its blocks and completes at 27 all the same.
#[test]
fn a_finishing_sequence_can_be_preempted_and_still_completes() {
    let outcome = run(&batcher(), pool(7), 0, open(&[(0, 3, 4, 0), (0, 2, 2, 0)]));
    assert_eq!(lives(&outcome), [(1, 0, 15, 27, 0), (0, 0, 15, 49, 0)]);
    assert_eq!(step_tokens(&outcome), [5, 2, 1, 1]);
    assert_eq!(outcome.preemptions, 1);
    assert_eq!(outcome.steps[1].waiting, 0);
}

/// A (class 1, less urgent) stands before B. With 6 blocks, in the third step A has taken the last one when
/// B needs it: A's token goes back and B runs alone. A recomputes 4 tokens when B is gone at 58.
#[test]
fn priority_takes_a_token_back_from_the_step() {
    let batcher =
        BatcherConfig { scheduling_policy: SchedulingPolicy::Priority, async_scheduling: false, ..batcher() };
    let outcome = run(&batcher, pool(6), 0, open(&[(0, 2, 4, 1), (1, 2, 4, 0)]));
    assert_eq!(step_tokens(&outcome), [2, 3, 1, 1, 1, 4, 1]);
    assert_eq!(lives(&outcome), [(1, 12, 25, 58, 0), (0, 0, 12, 83, 1)]);
    assert_eq!(gaps_ms(&outcome), [11, 11, 11, 11, 13, 47]);
}

/// The same with 7 blocks: in the fourth step A itself needs the block, is the one to go, and ends the walk
/// before B had its turn. The empty step takes no time.
#[test]
fn an_empty_step_takes_no_time() {
    let batcher =
        BatcherConfig { scheduling_policy: SchedulingPolicy::Priority, async_scheduling: false, ..batcher() };
    let outcome = run(&batcher, pool(7), 0, open(&[(0, 2, 4, 1), (1, 2, 4, 0)]));
    assert_eq!(step_tokens(&outcome), [2, 3, 2, 1, 1, 5]);
    assert_eq!(lives(&outcome), [(1, 12, 25, 59, 0), (0, 0, 12, 74, 1)]);
    assert_eq!(outcome.preemptions, 1);
}

/// A takes 4 of 9 blocks and of a budget of 5; B's first chunk is 1 token of its 6.
#[test]
fn the_gate_and_the_watermark_keep_the_second_request_out() {
    for (full_prompt_gate, watermark_blocks, first_step) in
        [(false, 0, 5), (false, 4, 5), (false, 5, 4), (true, 0, 4)]
    {
        let batcher =
            BatcherConfig { max_num_batched_tokens: 5, full_prompt_gate, watermark_blocks, ..batcher() };
        let outcome = run(&batcher, pool(9), 0, open(&[(0, 4, 3, 0), (0, 6, 1, 0)]));
        assert_eq!(step_tokens(&outcome)[0], first_step, "{full_prompt_gate} {watermark_blocks}");
    }
}

/// Two seats and a budget of 4: A's prompt (3) and one token of B's (2); A has its only token at 14 and is
/// padding until B has its third at 50. C waits for the next batch.
#[test]
fn a_static_batch_runs_to_its_longest_member() {
    let batcher = BatcherConfig {
        batching: Batching::Static,
        max_num_seqs: 2,
        max_num_batched_tokens: 4,
        async_scheduling: false,
        ..batcher()
    };
    let outcome = run(&batcher, pool(40), 0, open(&[(0, 3, 1, 0), (0, 2, 3, 0), (0, 1, 1, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 14, 50, 0), (1, 0, 26, 50, 0), (2, 50, 61, 61, 0)]);
    assert_eq!(step_tokens(&outcome), [4, 2, 2, 2, 1]);
    assert_eq!(gaps_ms(&outcome), [12, 12]);
    let contexts: Vec<u64> = outcome.steps.iter().map(|step| step.shape.decode_context).collect();
    assert_eq!(contexts, [0, 4, 5 + 3, 6 + 4, 0]);
    let blocks: Vec<Blocks> = outcome.steps.iter().map(|step| step.blocks_used).collect();
    assert_eq!(blocks, [7, 7, 7, 7, 1]);
}

/// One user without pause: the refusal at 11 is an answer, so the third request is sent at once.
#[test]
fn a_refused_request_frees_its_user() {
    let load = Load::Closed {
        users: 1,
        think: vec![SimSpan::ZERO],
        requests: vec![(1, 1, 0), (49, 2, 0)],
        total: 3,
    };
    let outcome = run(&batcher(), pool(60), 0, load);
    assert_eq!(outcome.rejected, [1]);
    assert_eq!(lives(&outcome), [(0, 0, 11, 11, 0), (2, 11, 22, 22, 0)]);
}

/// Two users are answered together at 12 and think 5 and 0 ms: the second one's request is number 2. Its
/// step was not composed when it came, but the engine was idle.
#[test]
fn users_think_and_send_in_order_of_time() {
    let span = |ms| SimSpan::from_nanos(ms * MS);
    let load = Load::Closed { users: 2, think: vec![span(5), span(0)], requests: vec![(1, 1, 0)], total: 4 };
    let outcome = run(&batcher(), pool(60), 0, load);
    assert_eq!(
        lives(&outcome),
        [(0, 0, 12, 12, 0), (1, 0, 12, 12, 0), (2, 12, 23, 23, 0), (3, 23, 34, 34, 0)]
    );
    assert_eq!(outcome.finished[3].send, SimTime::from_nanos(17 * MS));
}

/// The scenarios are worth comparing engines on: each unusual path is taken, and often. What must hold on
/// every path is asserted in the engine itself.
#[test]
fn random_scenarios_reach_every_corner() {
    let (mut preempted, mut twice, mut finishing, mut refused, mut tied) = (0, 0, 0, 0, 0);
    let (mut padded, mut full, mut retracted, mut paused, mut reserved) = (0, 0, 0, 0, 0);
    for seed in 0..1_200 {
        let scenario = Scenario::random(seed, &affine_costs());
        let outcome = scenario.simulate();
        let recomputed: u64 = outcome.finished.iter().map(|r| u64::from(r.preemptions)).sum();
        let again = u32::from(recomputed > 0);
        match scenario.server.batcher.batching {
            Batching::PrefillFirst(_) => retracted += again,
            Batching::MaxUtilization => paused += again,
            Batching::GuaranteedNoEvict => {
                assert_eq!(outcome.preemptions, 0, "seed {seed}");
                reserved += u32::from(outcome.steps.iter().any(|s| s.waiting > 0));
            }
            Batching::Continuous | Batching::Static => {}
        }
        preempted += again;
        twice += u32::from(outcome.finished.iter().any(|r| r.preemptions > 1));
        finishing += u32::from(outcome.preemptions > recomputed);
        refused += u32::from(!outcome.rejected.is_empty());
        tied += u32::from(outcome.finished.iter().any(|r| outcome.steps.iter().any(|s| s.end == r.send)));
        padded += u32::from(outcome.steps.iter().any(|s| s.emitted < s.shape.sampled));
        full += u32::from(outcome.steps.iter().any(|s| s.blocks_used == scenario.server.kv.blocks));
    }
    for (reached, at_least) in [
        (preempted, 120),
        (twice, 60),
        (finishing, 20),
        (refused, 60),
        (tied, 60),
        (padded, 30),
        (full, 100),
        (retracted, 60),
        (paused, 20),
        (reserved, 40),
    ] {
        assert!(reached >= at_least, "{reached} scenarios, wanted {at_least}");
    }
}
