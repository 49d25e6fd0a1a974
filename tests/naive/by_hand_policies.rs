//! Timelines worked out by hand for the other engines' policies. A step takes 10 ms and 1 ms per token.

use knee::engine::{BatchWait, BatcherConfig, Batching, PrefillFirst};
use knee::units::Blocks;

use super::by_hand::{batcher, gaps_ms, lives, open, pool, run, step_tokens};
use super::{Outcome, Scenario, affine_costs};

fn policy(new_token_ratio: f64) -> PrefillFirst {
    PrefillFirst {
        max_prefill_tokens: 100,
        scheduler_recv_interval: 1,
        init_new_token_ratio: new_token_ratio,
        min_new_token_ratio: new_token_ratio,
        new_token_ratio_decay: 0.0,
        clip_max_new_tokens: 4096,
        retract_decode_steps: 20,
        retract_to_headroom: false,
    }
}

fn prefill_first(new_token_ratio: f64) -> BatcherConfig {
    let batching = Batching::PrefillFirst(policy(new_token_ratio));
    BatcherConfig { batching, async_scheduling: false, ..batcher() }
}

fn blocks_used(outcome: &Outcome) -> Vec<Blocks> {
    outcome.steps.iter().map(|step| step.blocks_used).collect()
}

/// A will hold 6 of 8 blocks at its longest and B 4, so B waits until A is done at 46.
#[test]
fn no_evict_reserves_the_whole_output() {
    let batcher =
        BatcherConfig { batching: Batching::GuaranteedNoEvict, async_scheduling: false, ..batcher() };
    let outcome = run(&batcher, pool(8), 0, open(&[(0, 3, 4, 0), (0, 2, 3, 0)]));
    assert_eq!(lives(&outcome), [(0, 0, 13, 46, 0), (1, 46, 58, 80, 0)]);
    assert_eq!(step_tokens(&outcome), [3, 1, 1, 1, 2, 1, 1]);
    assert_eq!(blocks_used(&outcome), [6, 6, 6, 6, 4, 4, 4]);
}

/// Two of A's six prompt tokens are left for the second step, yet it holds six blocks from the first.
#[test]
fn max_utilization_takes_the_prompts_blocks_at_once() {
    let batcher = BatcherConfig {
        batching: Batching::MaxUtilization,
        max_num_seqs: 4,
        max_num_batched_tokens: 4,
        async_scheduling: false,
        ..batcher()
    };
    let outcome = run(&batcher, pool(9), 0, open(&[(0, 6, 1, 0), (0, 3, 1, 0)]));
    assert_eq!(step_tokens(&outcome), [4, 4, 1]);
    assert_eq!(blocks_used(&outcome), [6, 9, 3]);
    assert_eq!(lives(&outcome), [(0, 0, 28, 28, 0), (1, 14, 39, 39, 0)]);
}

fn no_evict(timeout_iters: u32, max_tokens_ratio: f64) -> BatcherConfig {
    let batch_wait = Some(BatchWait { timeout_iters, max_tokens_ratio });
    let batching = Batching::GuaranteedNoEvict;
    BatcherConfig { batching, batch_wait, async_scheduling: false, ..batcher() }
}

/// Prompts wait while others decode for up to three steps or until a step has 10 of 100 tokens. B, there at 13,
/// would make it 5: its prompt waits until 46, and takes no block before. C's 8 make 10 with A and B and run at
/// once, and so does D, with nobody to decode. Composed one ahead, B is first seen a step later.
#[test]
fn prompts_wait_for_a_larger_batch() {
    let load = || open(&[(0, 3, 8, 0), (5, 4, 2, 0), (60, 8, 1, 0), (200, 2, 1, 0)]);
    let outcome = run(&no_evict(3, 0.1), pool(40), 0, load());
    assert_eq!(step_tokens(&outcome), [3, 1, 1, 1, 5, 10, 1, 1, 2]);
    let expected = [(1, 46, 61, 81, 0), (2, 61, 81, 81, 0), (0, 0, 13, 103, 0), (3, 200, 212, 212, 0)];
    assert_eq!(lives(&outcome), expected);
    assert_eq!(blocks_used(&outcome), [10, 10, 10, 10, 15, 23, 10, 10, 2]);
    let waiting: Vec<u32> = outcome.steps.iter().map(|step| step.waiting).collect();
    assert_eq!(waiting, [0, 1, 1, 1, 0, 0, 0, 0, 0]);

    let pipelined = run(&BatcherConfig { async_scheduling: true, ..no_evict(3, 0.1) }, pool(40), 0, load());
    assert_eq!(lives(&pipelined)[0], (1, 57, 72, 84, 0));
}

/// 2 of B's 5 prompt tokens are computed when the rest waits for a step, with blocks and seat as they are. Whole
/// prompts count: with A's decode 6 tokens, which is enough at 60 % of 10 though only 4 would be computed.
#[test]
fn a_begun_prompt_waits_too_and_counts_whole() {
    for (ratio, tokens) in [(1.0, [10, 1, 4, 1]), (0.6, [10, 4, 1, 1])] {
        let batcher = BatcherConfig { max_num_batched_tokens: 10, ..no_evict(1, ratio) };
        let outcome = run(&batcher, pool(40), 0, open(&[(0, 8, 4, 0), (0, 5, 1, 0)]));
        assert_eq!(step_tokens(&outcome), tokens, "{ratio}");
        assert_eq!(blocks_used(&outcome)[..2], [16, 16]);
    }
}

/// The count of held steps stands while nobody decodes: A is done at 24 with B held once, B runs at once from then on,
/// so that C is held once only.
#[test]
fn the_count_of_held_steps_goes_back_only_where_prompts_meet_decodes() {
    let load = open(&[(0, 3, 2, 0), (5, 4, 6, 0), (30, 2, 1, 0)]);
    let outcome = run(&no_evict(2, 1.0), pool(40), 0, load);
    assert_eq!(step_tokens(&outcome), [3, 1, 4, 1, 3, 1, 1, 1]);
    assert_eq!(lives(&outcome), [(0, 0, 13, 24, 0), (2, 49, 62, 62, 0), (1, 24, 38, 95, 0)]);
}

/// The wait changes many runs, of both capacity policies, pipelined or not, with chunks or without.
#[test]
fn random_scenarios_with_batch_wait_reach_every_corner() {
    let (mut waited, mut no_evict, mut pipelined, mut chunked, mut paused) = (0, 0, 0, 0, 0);
    for seed in 0..1_000 {
        let scenario = Scenario::random_batch_wait(seed, &affine_costs());
        let mut at_once = scenario.clone();
        let batcher = &mut at_once.server.batcher;
        batcher.batch_wait = None;
        let outcome = scenario.simulate();
        if outcome == at_once.simulate() {
            continue;
        }
        let batcher = &scenario.server.batcher;
        waited += 1;
        no_evict += u32::from(batcher.batching == Batching::GuaranteedNoEvict);
        pipelined += u32::from(batcher.async_scheduling);
        chunked += u32::from(batcher.enable_chunked_prefill);
        paused += u32::from(outcome.finished.iter().any(|r| r.preemptions > 0));
    }
    for (reached, at_least) in
        [(waited, 250), (no_evict, 100), (pipelined, 100), (chunked, 100), (paused, 20)]
    {
        assert!(reached >= at_least, "{reached} scenarios, wanted {at_least}");
    }
}

/// B's prompt has a step to itself from 13 to 25, in which A stands still: its second token comes 24 ms
/// after its first.
#[test]
fn prompts_stall_decodes() {
    let outcome = run(&prefill_first(0.0), pool(40), 0, open(&[(0, 3, 3, 0), (5, 2, 2, 0)]));
    assert_eq!(step_tokens(&outcome), [3, 2, 2, 1]);
    assert_eq!(lives(&outcome), [(1, 13, 25, 37, 0), (0, 0, 13, 48, 0)]);
    assert_eq!(gaps_ms(&outcome), [11, 12, 24]);
}

/// At 13 A holds 3 of 12 blocks and still writes 3 tokens. B needs 7: they are there if A's future does
/// not count, and not if it counts in full.
#[test]
fn the_new_token_ratio_keeps_room_for_the_running() {
    for (ratio, tokens) in [(0.0, vec![3, 3, 2, 2, 2]), (1.0, vec![3, 1, 1, 1, 3, 1, 1, 1])] {
        let outcome = run(&prefill_first(ratio), pool(12), 0, open(&[(0, 3, 4, 0), (5, 3, 4, 0)]));
        assert_eq!(step_tokens(&outcome), tokens, "{ratio}");
    }
}

/// 10 blocks, 9 of them held when the third decode step needs two at 49. Both have 3 tokens; A's prompt is
/// longer, so A goes, and comes back with 6 tokens when B is done at 60.
#[test]
fn retraction_takes_the_longest_prompt_of_those_with_the_fewest_tokens() {
    let outcome = run(&prefill_first(0.0), pool(10), 0, open(&[(0, 3, 4, 0), (5, 2, 4, 0)]));
    assert_eq!(step_tokens(&outcome), [3, 2, 2, 2, 1, 6]);
    assert_eq!(lives(&outcome), [(1, 13, 25, 60, 0), (0, 0, 13, 76, 1)]);
    assert_eq!(gaps_ms(&outcome), [11, 12, 12, 12, 24, 27]);
}

/// A prompt of 7 is cut at the chunk size of 4; B joins its last chunk.
#[test]
fn prompts_are_cut_at_the_chunk_size() {
    let batcher = BatcherConfig { max_num_seqs: 4, max_num_batched_tokens: 4, ..prefill_first(0.0) };
    let outcome = run(&batcher, pool(40), 0, open(&[(0, 7, 1, 0), (0, 1, 1, 0)]));
    assert_eq!(step_tokens(&outcome), [4, 4]);
    assert_eq!(lives(&outcome), [(0, 0, 28, 28, 0), (1, 14, 28, 28, 0)]);
}

/// It looks at what came after every third decode step. B comes at 15, in the first decode step; A's third ends at
/// 46: B's prompt runs from 46 to 58, where without the interval it would from 24 to 36. C comes into an idle
/// engine and is looked at at once.
#[test]
fn new_requests_wait_for_the_next_look() {
    let policy = PrefillFirst { scheduler_recv_interval: 3, ..policy(0.0) };
    let batcher =
        BatcherConfig { batching: Batching::PrefillFirst(policy), async_scheduling: false, ..batcher() };
    let load = open(&[(0, 3, 6, 0), (15, 2, 2, 0), (200, 3, 1, 0)]);
    let outcome = run(&batcher, pool(40), 0, load);
    assert_eq!(step_tokens(&outcome), [3, 1, 1, 1, 2, 2, 1, 3]);
    assert_eq!(lives(&outcome), [(1, 46, 58, 70, 0), (0, 0, 13, 81, 0), (2, 200, 213, 213, 0)]);
}
