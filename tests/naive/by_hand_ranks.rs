//! Timelines worked out by hand for data-parallel ranks. A step in which a rank has n of N tokens takes 10 + n + N
//! ms on it, and as long as on the slowest on all.

use knee::cost::StepCost;
use knee::engine::{BatcherConfig, Batching, DataParallel, LlmServer, PromptBalance, RankPolicy};
use knee::kv::KvSpec;
use knee::units::SimSpan;

use super::by_hand::{batcher, gaps_ms, lives, open, pool, step_tokens};
use super::{Load, Outcome, Scenario, affine_costs, simulate};

fn two_ranks(batcher: BatcherConfig, kv: KvSpec, policy: RankPolicy, load: Load) -> Outcome {
    with_balance(batcher, kv, policy, None, load)
}

fn with_balance(
    batcher: BatcherConfig,
    kv: KvSpec,
    policy: RankPolicy,
    balance: Option<PromptBalance>,
    load: Load,
) -> Outcome {
    let cost = StepCost::affine(0.010, 0.001).with_shared_tokens(2, 0.001);
    let data_parallel = Some(DataParallel { ranks: 2, policy, balance });
    let (front_end, pipeline, speculation) = (SimSpan::ZERO, None, None);
    simulate(&LlmServer { batcher, kv, cost, front_end, pipeline, speculation, data_parallel }, load)
}

fn sync() -> BatcherConfig {
    BatcherConfig { async_scheduling: false, ..batcher() }
}

/// A's prompt of 5 and B's of 2 on two ranks: 10 + 5 + 7. Then a token each: 10 + 1 + 2.
#[test]
fn a_step_lasts_as_long_as_its_slowest_part() {
    let load = open(&[(0, 5, 2, 0), (0, 2, 2, 0)]);
    let outcome = two_ranks(sync(), pool(40), RankPolicy::RoundRobin, load);
    assert_eq!(lives(&outcome), [(0, 0, 22, 35, 0), (1, 0, 22, 35, 0)]);
    assert_eq!(step_tokens(&outcome), [7, 2]);
    assert_eq!(gaps_ms(&outcome), [13, 13]);
    let emitted: Vec<u32> = outcome.steps.iter().map(|step| step.emitted).collect();
    assert_eq!(emitted, [2, 2]);
    assert_eq!(outcome.steps[0].running, 2);
}

/// 5 and 1 tokens on the first rank, 2 on the second: 10 + 6 + 8. Then the second has nothing and runs along: A's
/// tokens take 10 + 1 + 1. D, at 40, waits for A's step to end at 48 though its rank is idle: 10 + 2 + 3.
#[test]
fn an_idle_rank_runs_along() {
    let load = open(&[(0, 5, 4, 0), (0, 2, 1, 0), (0, 1, 1, 0), (40, 2, 1, 0)]);
    let outcome = two_ranks(sync(), pool(40), RankPolicy::RoundRobin, load);
    let expected = [(2, 0, 24, 24, 0), (1, 0, 24, 24, 0), (0, 0, 24, 63, 0), (3, 48, 63, 63, 0)];
    assert_eq!(lives(&outcome), expected);
    assert_eq!(step_tokens(&outcome), [8, 1, 1, 3]);
}

/// B, at 5, is not in the step that was composed at 0, nor does its idle rank make one of its own: it is composed
/// at 20, when the second step begins, and starts with the third at 32: 10 + 2 + 3.
#[test]
fn all_ranks_compose_one_ahead_together() {
    let load = open(&[(0, 5, 3, 0), (5, 2, 1, 0)]);
    let outcome = two_ranks(batcher(), pool(40), RankPolicy::RoundRobin, load);
    assert_eq!(lives(&outcome), [(0, 0, 20, 47, 0), (1, 32, 47, 47, 0)]);
    assert_eq!(step_tokens(&outcome), [5, 1, 3]);
}

/// Together A and B need 14 blocks of 7; each rank has as many.
#[test]
fn each_rank_has_a_pool_of_its_own() {
    let load = open(&[(0, 4, 4, 0), (0, 4, 4, 0)]);
    let outcome = two_ranks(sync(), pool(7), RankPolicy::RoundRobin, load);
    assert_eq!(lives(&outcome), [(0, 0, 22, 61, 0), (1, 0, 22, 61, 0)]);
    let blocks: Vec<u32> = outcome.steps.iter().map(|step| step.blocks_used).collect();
    assert_eq!(blocks, [8, 10, 12, 14]);
}

/// B is gone at 22. Until the counts are published at 100 both ranks seem to have one waiting, so C, at 99, goes to
/// the first, where A is: from 106 on 10 + 3 + 3. At 120 it is known that only A runs: from 130 on 10 + 2 + 3.
#[test]
fn vllm_balances_by_what_was_published() {
    let policy = RankPolicy::WaitingAndRunning;
    let outcome =
        |send| two_ranks(sync(), pool(40), policy, open(&[(0, 5, 20, 0), (0, 2, 1, 0), (send, 2, 1, 0)]));
    assert_eq!(lives(&outcome(99)), [(1, 0, 22, 22, 0), (2, 106, 122, 122, 0), (0, 0, 22, 254, 0)]);
    assert_eq!(lives(&outcome(120)), [(1, 0, 22, 22, 0), (2, 130, 145, 145, 0), (0, 0, 22, 253, 0)]);
}

/// 40 blocks on each rank. On the first A runs with 20 of them, and C, which needs 30, waits with two more behind it;
/// on the second four run. Four requests each at 100, but those that wait count four times: I, at 105, goes
/// to the second, where it starts at 54 + 3 x 19 = 111: 10 + 5 + 6.
#[test]
fn a_waiting_request_weighs_as_much_as_four_running() {
    let (small, four) = ((0, 1, 1, 0), (0, 1, 9, 0));
    let load = open(&[(0, 20, 12, 0), four, (0, 30, 1, 0), four, small, four, small, four, (105, 1, 1, 0)]);
    let outcome = two_ranks(sync(), pool(40), RankPolicy::WaitingAndRunning, load);
    assert_eq!((outcome.steps[1].running, outcome.steps[1].waiting), (5, 3));
    assert!(lives(&outcome).contains(&(8, 111, 132, 132, 0)));
}

/// Prompts of 1, 6, 2, 7. TensorRT-LLM gives 7 and 1 to the first rank, 6 and 2 to the second: 10 + 8 + 16. By
/// turns they would be 3 and 13: 10 + 13 + 16.
#[test]
fn tensorrt_llm_balances_prompt_tokens() {
    let load = || open(&[(0, 1, 1, 0), (0, 6, 1, 0), (0, 2, 1, 0), (0, 7, 1, 0)]);
    for (policy, ms) in [(RankPolicy::PromptTokens, 34), (RankPolicy::RoundRobin, 39)] {
        let outcome = two_ranks(sync(), pool(40), policy, load());
        assert!(lives(&outcome).iter().all(|life| life.3 == ms), "{policy:?}");
    }
}

/// A seat on each rank: C is in the common queue until A leaves the first at 35, then 10 + 3 + 4.
#[test]
fn tensorrt_llm_keeps_a_common_queue() {
    let seats = BatcherConfig { max_num_seqs: 1, ..sync() };
    let load = open(&[(0, 4, 2, 0), (0, 4, 4, 0), (0, 3, 1, 0)]);
    let outcome = two_ranks(seats, pool(40), RankPolicy::PromptTokens, load);
    assert_eq!(lives(&outcome), [(0, 0, 22, 35, 0), (2, 35, 52, 52, 0), (1, 0, 22, 64, 0)]);
    let waiting: Vec<u32> = outcome.steps.iter().map(|step| step.waiting).collect();
    assert_eq!(waiting, [1, 1, 0, 0]);
}

/// A and B decode on the first and second rank from 21 on, in steps of 10 + 1 + 2, of which every third (at 47, 86)
/// would let prompts of one rank alone run. So C's, on the second from 73 on, waits until 86: 10 + 6 + 7. D and E, at
/// 110, are on both at 122 and run at once, 10 + 3 + 6, or wait once more for others to come.
#[test]
fn tensorrt_llm_waits_for_prompts_on_all_ranks() {
    let batcher = BatcherConfig { batching: Batching::GuaranteedNoEvict, ..sync() };
    let load = || open(&[(0, 4, 12, 0), (0, 3, 12, 0), (65, 5, 1, 0), (110, 2, 1, 0), (110, 2, 1, 0)]);
    for (batching_wait_iters, from, to) in [(0, 122, 141), (1, 135, 154)] {
        let balance = Some(PromptBalance { timeout_iters: 3, batching_wait_iters });
        let outcome = with_balance(batcher.clone(), pool(40), RankPolicy::PromptTokens, balance, load());
        let expected = [(2, 86, 109, 109, 0), (4, from, to, to, 0), (3, from, to, to, 0)];
        assert_eq!(lives(&outcome)[..3], expected);
        assert_eq!(step_tokens(&outcome)[..8], [7, 2, 2, 2, 2, 2, 7, 2]);
        assert_eq!((outcome.steps[5].waiting, outcome.steps[6].waiting), (1, 0));
    }
}

/// C, on B's rank, waits from 38 on. At 51 A is done and leaves its rank idle, which decodes a dummy and so lets C
/// wait on until the fifth step after the prompts, at 75: 10 + 3 + 3.
#[test]
fn an_idle_rank_decodes_a_dummy() {
    let batcher = BatcherConfig { batching: Batching::GuaranteedNoEvict, ..sync() };
    let balance = Some(PromptBalance { timeout_iters: 5, batching_wait_iters: 0 });
    let load = open(&[(0, 6, 3, 0), (0, 3, 10, 0), (30, 2, 1, 0)]);
    let outcome = with_balance(batcher, pool(40), RankPolicy::PromptTokens, balance, load);
    assert_eq!(lives(&outcome)[..2], [(0, 0, 25, 51, 0), (2, 75, 91, 91, 0)]);
    assert_eq!(step_tokens(&outcome)[..6], [9, 2, 2, 1, 1, 3]);
}

/// The wait changes many runs, pipelined or not, with pauses, and with ranks that have nothing.
#[test]
fn random_scenarios_with_balance_reach_every_corner() {
    let (mut waited, mut pipelined, mut paused, mut idle) = (0, 0, 0, 0);
    for seed in 0..1_000 {
        let scenario = Scenario::random_balance(seed, &affine_costs());
        let mut at_once = scenario.clone();
        let ranks = scenario.server.ranks();
        at_once.server.data_parallel =
            Some(DataParallel { ranks, policy: RankPolicy::PromptTokens, balance: None });
        let outcome = scenario.simulate();
        if outcome == at_once.simulate() {
            continue;
        }
        waited += 1;
        pipelined += u32::from(scenario.server.batcher.async_scheduling);
        paused += u32::from(outcome.finished.iter().any(|r| r.preemptions > 0));
        idle += u32::from(outcome.steps.iter().any(|s| s.shape.sequences < ranks));
    }
    for (reached, at_least) in [(waited, 300), (pipelined, 100), (paused, 20), (idle, 100)] {
        assert!(reached >= at_least, "{reached} scenarios, wanted {at_least}");
    }
}

/// The unusual paths are taken, and often.
#[test]
fn random_scenarios_with_ranks_reach_every_corner() {
    let (mut served, mut preempted, mut idle, mut full, mut published) = (0, 0, 0, 0, 0);
    for seed in 0..1_200 {
        let scenario = Scenario::random_ranks(seed, &affine_costs());
        let parallel = scenario.server.data_parallel.expect("ranks");
        let outcome = scenario.simulate();
        served += u32::from(outcome.finished.len() > outcome.rejected.len());
        preempted += u32::from(parallel.ranks > 1 && outcome.finished.iter().any(|r| r.preemptions > 0));
        // Fewer sequences than ranks in a step: somebody ran along.
        idle += u32::from(outcome.steps.iter().any(|s| s.shape.sequences < parallel.ranks));
        let blocks = scenario.server.total_blocks();
        full += u32::from(parallel.ranks > 1 && outcome.steps.iter().any(|s| s.blocks_used == blocks));
        let long = outcome.end.as_nanos() > 200_000_000;
        published += u32::from(long && parallel.policy == RankPolicy::WaitingAndRunning);
    }
    for (reached, at_least) in [(served, 900), (preempted, 100), (idle, 500), (full, 15), (published, 150)] {
        assert!(reached >= at_least, "{reached} scenarios, wanted {at_least}");
    }
}
