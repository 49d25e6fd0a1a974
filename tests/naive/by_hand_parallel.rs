//! Timelines worked out by hand for pipelines and speculation.

use knee::cost::{Pipeline, StepCost};
use knee::engine::{BatcherConfig, LlmServer, Speculation};
use knee::kv::KvSpec;
use knee::units::{Blocks, SimSpan};

use super::by_hand::{batcher, gaps_ms, lives, open, pool, step_tokens};
use super::{Load, Outcome, Scenario, StepRecord, affine_costs, simulate};

/// A step of n tokens takes 5 + n ms in each of two equal stages, which are next to each other.
fn two_stages(batcher: BatcherConfig, kv: KvSpec, load: Load) -> Outcome {
    let pipeline = Some(Pipeline::from_parts(vec![3, 3], 0.0, 0.0));
    let cost = StepCost::affine(0.010, 0.002);
    simulate(
        &LlmServer {
            batcher,
            kv,
            cost,
            front_end: SimSpan::ZERO,
            pipeline,
            speculation: None,
            data_parallel: None,
        },
        load,
    )
}

/// Two drafts, `mean_acceptance_length` 1 (none accepted) or 3 (all). A step takes 10 ms and 1 ms per token.
fn two_drafts(batcher: BatcherConfig, kv: KvSpec, mean_acceptance_length: f64, load: Load) -> Outcome {
    let speculation = Some(Speculation::new(2, mean_acceptance_length, 2, None));
    let cost = StepCost::affine(0.010, 0.001);
    simulate(
        &LlmServer {
            batcher,
            kv,
            cost,
            front_end: SimSpan::ZERO,
            pipeline: None,
            speculation,
            data_parallel: None,
        },
        load,
    )
}

fn sync() -> BatcherConfig {
    BatcherConfig { async_scheduling: false, ..batcher() }
}

fn blocks_used(outcome: &Outcome) -> Vec<Blocks> {
    outcome.steps.iter().map(|step| step.blocks_used).collect()
}

/// A budget of one prompt makes two groups, which take turns in both stages. A's prompt is in the first from 0
/// to 9 and in the second until 18, B's follows 9 ms behind. A's token: 18 to 24, then it waits until the
/// second stage is done with B at 27, and is out at 33. B's: 27 to 33 to 39. A's last: 33 to 39 to 45.
#[test]
fn two_groups_take_turns_in_two_stages() {
    for async_scheduling in [false, true] {
        let batcher =
            BatcherConfig { async_scheduling, max_num_seqs: 4, max_num_batched_tokens: 4, ..batcher() };
        let outcome = two_stages(batcher, pool(40), open(&[(0, 4, 3, 0), (0, 4, 2, 0)]));
        assert_eq!(lives(&outcome), [(1, 9, 27, 39, 0), (0, 0, 18, 45, 0)]);
        assert_eq!(step_tokens(&outcome), [4, 4, 1, 1, 1]);
        assert_eq!(gaps_ms(&outcome), [12, 12, 15]);
        // Each from when the one before it was out.
        let starts: Vec<u64> = outcome.steps.iter().map(|s| s.start.as_nanos() / 1_000_000).collect();
        assert_eq!(starts, [0, 18, 27, 33, 39]);
    }
}

/// C comes at 3, when A's prompt is in the first stage. Nothing more could be composed at 0, so the engine
/// waits for A's prompt to come out at 18 and puts C into the same step: 10 ms a stage. From then on
/// there is one group, and one stage is always idle.
#[test]
fn a_request_that_comes_alone_joins_the_group_under_way() {
    let outcome = two_stages(sync(), pool(40), open(&[(0, 4, 3, 0), (3, 4, 2, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 18, 52, 0), (1, 18, 38, 52, 0)]);
    assert_eq!(step_tokens(&outcome), [4, 5, 2]);
}

/// The chunks of a prompt are in both stages at once; a token is out when the second has passed both.
#[test]
fn chunks_of_a_prompt_follow_one_another() {
    let batcher = BatcherConfig { max_num_seqs: 4, max_num_batched_tokens: 4, ..sync() };
    let outcome = two_stages(batcher, pool(40), open(&[(0, 8, 1, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 27, 27, 0)]);
    assert_eq!(step_tokens(&outcome), [4, 4]);
    assert_eq!(outcome.steps[0].emitted + outcome.steps[1].emitted, 1);
}

/// One seat: B waits until A is out for good, however idle the stages are.
#[test]
fn all_groups_share_the_seats() {
    let batcher = BatcherConfig { max_num_seqs: 1, ..sync() };
    let outcome = two_stages(batcher, pool(40), open(&[(0, 4, 2, 0), (0, 1, 1, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 18, 30, 0), (1, 30, 42, 42, 0)]);
}

/// 9 blocks, two groups. B's token needs the tenth at 27: A is in the second stage then, so B, last of the list,
/// gives way itself and waits for A to leave.
#[test]
fn a_preempted_group_comes_back_when_the_other_is_out() {
    let batcher = BatcherConfig { max_num_seqs: 4, max_num_batched_tokens: 4, ..sync() };
    let outcome = two_stages(batcher, pool(9), open(&[(0, 4, 2, 0), (0, 4, 2, 0)]));
    // A's token is out at 24 + 9 = 33; B's 5 known tokens follow in two steps of 4 and 1, of 9 and 6 ms a stage.
    assert_eq!(lives(&outcome), [(0, 0, 18, 33, 0), (1, 9, 27, 57, 1)]);
    assert_eq!(step_tokens(&outcome), [4, 4, 1, 4, 1]);
}

/// A prompt of 5, then three tokens a step: of the sixth and last step's three only two are wanted.
#[test]
fn accepted_drafts_come_together() {
    let outcome = two_drafts(sync(), pool(40), 3.0, open(&[(0, 5, 6, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 15, 41, 0)]);
    assert_eq!(step_tokens(&outcome), [5, 3, 3]);
    assert_eq!(gaps_ms(&outcome), [13, 13]);
    let emitted: Vec<u32> = outcome.steps.iter().map(|step| step.emitted).collect();
    assert_eq!(emitted, [1, 3, 2]);
    let contexts: Vec<u64> = outcome.steps.iter().map(|step| step.shape.decode_context).collect();
    assert_eq!(contexts, [0, 8, 11]);
    assert_eq!(outcome.steps[1].shape.sampled, 3);
}

/// A step composed before the one under way is out cannot know that it will complete the request: its three
/// tokens are computed for nothing.
#[test]
fn steps_composed_ahead_may_be_for_nothing() {
    let outcome = two_drafts(batcher(), pool(40), 3.0, open(&[(0, 5, 6, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 15, 41, 0)]);
    assert_eq!(step_tokens(&outcome), [5, 3, 3, 3]);
    assert_eq!(outcome.steps[3].emitted, 0);
    assert_eq!(outcome.end, outcome.steps[3].end);
}

/// Rejected drafts leave the context as it was, but the slots stay with the sequence: 5 for its prompt, then those
/// of 3 tokens and 2 more that the draft model writes.
#[test]
fn rejected_drafts_cost_a_step_each() {
    let outcome = two_drafts(sync(), pool(40), 1.0, open(&[(0, 5, 3, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 15, 41, 0)]);
    assert_eq!(step_tokens(&outcome), [5, 3, 3]);
    assert_eq!(blocks_used(&outcome), [5, 10, 11]);
    let contexts: Vec<u64> = outcome.steps.iter().map(|step| step.shape.decode_context).collect();
    assert_eq!(contexts, [0, 8, 9]);
}

/// 5 + 3 tokens, 2 x 2 drafts and 2 more: 13 slots at its longest (7 + 6), or it is refused.
#[test]
fn drafts_need_room_in_the_pool() {
    for (blocks, refused) in [(12, 1), (13, 0)] {
        let outcome = two_drafts(sync(), pool(blocks), 1.0, open(&[(0, 5, 3, 0)]));
        assert_eq!(outcome.rejected.len(), refused, "{blocks} blocks");
    }
}

/// A budget of 4 for two sequences: the second has one token where the first takes three.
#[test]
fn drafts_are_cut_at_the_budget() {
    let batcher = BatcherConfig { max_num_seqs: 2, max_num_batched_tokens: 4, ..sync() };
    let outcome = two_drafts(batcher, pool(60), 3.0, open(&[(0, 2, 4, 0), (0, 2, 2, 0)]));
    assert_eq!(step_tokens(&outcome), [4, 4]);
    assert_eq!(outcome.steps[1].emitted, 4);
}

/// As for one step at a time: the unusual paths are taken, and often.
#[test]
fn random_staged_scenarios_reach_every_corner() {
    let (mut served, mut preempted, mut twice, mut finishing, mut wasted) = (0, 0, 0, 0, 0);
    let (mut together, mut cut, mut deep, mut full) = (0, 0, 0, 0);
    for seed in 0..1_200 {
        let scenario = Scenario::random_staged(seed, &affine_costs());
        let outcome = scenario.simulate();
        let recomputed: u64 = outcome.finished.iter().map(|r| u64::from(r.preemptions)).sum();
        served += u32::from(outcome.finished.len() > outcome.rejected.len());
        preempted += u32::from(recomputed > 0);
        twice += u32::from(outcome.finished.iter().any(|r| r.preemptions > 1));
        finishing += u32::from(outcome.preemptions > recomputed);
        full += u32::from(outcome.steps.iter().any(|s| s.blocks_used == scenario.server.kv.blocks));
        let decodes = |s: &&StepRecord| s.shape.decode_context > 0;
        wasted += u32::from(outcome.steps.iter().filter(decodes).any(|s| s.emitted == 0));
        together += u32::from(outcome.steps.iter().any(|s| s.emitted > s.shape.sequences));
        // Drafts cut at the budget or the context.
        let drafts = scenario.server.speculation.as_ref().map_or(0, |s| s.num_speculative_tokens);
        let whole = |s: &StepRecord| s.shape.sampled == s.shape.sequences * (1 + drafts);
        cut += u32::from(outcome.steps.iter().filter(|s| s.prefill_tokens == 0).any(|s| !whole(s)));
        deep += u32::from(scenario.server.pipeline.is_some_and(|p| p.layers().len() > 2) && recomputed > 0);
    }
    for (reached, at_least) in [
        (served, 1_000),
        (preempted, 120),
        (twice, 60),
        (finishing, 20),
        (wasted, 60),
        (together, 200),
        (cut, 60),
        (deep, 40),
        (full, 100),
    ] {
        assert!(reached >= at_least, "{reached} scenarios, wanted {at_least}");
    }
}
