//! Timelines worked out by hand for data-parallel ranks. A step in which a rank has n of N tokens takes 10 + n + N
//! ms on it, and as long as on the slowest on all.

use knee::cost::StepCost;
use knee::engine::{BatcherConfig, DataParallel, LlmServer, RankPolicy};
use knee::kv::KvSpec;
use knee::units::SimSpan;

use super::by_hand::{batcher, gaps_ms, lives, open, pool, step_tokens};
use super::{Load, Outcome, Scenario, affine_costs, simulate};

fn two_ranks(batcher: BatcherConfig, kv: KvSpec, policy: RankPolicy, load: Load) -> Outcome {
    let cost = StepCost::affine(0.010, 0.001).with_shared_tokens(2, 0.001);
    let data_parallel = Some(DataParallel { ranks: 2, policy });
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
