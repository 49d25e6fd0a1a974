//! The step-time model against a real server's step times and against arithmetic.

use std::path::Path;
use std::sync::Arc;

use super::{Graphs, Ranks, Sharing, StepCost, StepShape, StepTerms};
use crate::catalog::{Catalog, Dtype, Hardware, Model, ProfileValues};
use crate::units::Tokens;

struct Setup {
    model: Arc<Model>,
    hardware: Arc<Hardware>,
    values: ProfileValues,
    dtype: Dtype,
}

impl Setup {
    fn new(model: &str, gpu: &str, dtype: Dtype) -> Self {
        let catalog = Catalog::new(None);
        let hardware = catalog.hardware(gpu).unwrap();
        let profile = catalog.profile("auto", &hardware, "vllm", None, dtype, Path::new(".")).unwrap();
        let model = catalog.model(model, Path::new(".")).unwrap().0;
        Self { model, hardware, values: profile.values[0].clone(), dtype }
    }

    fn cost(&self, tp: u32) -> StepCost {
        StepCost::new(&self.model, self.dtype, Dtype::Bf16, &self.hardware, &self.values, tp, 8192)
    }
}

/// A step of `sequences` decoding at `context` tokens each, in windows of `window`.
fn decode(sequences: u32, context: Tokens, window: Tokens) -> StepShape {
    StepShape {
        tokens: sequences,
        sequences,
        sampled: sequences,
        decode_context: u64::from(sequences) * u64::from(context),
        decode_window_context: u64::from(sequences) * u64::from(context.min(window)),
        ..StepShape::default()
    }
}

fn prefill(tokens: Tokens, window: Tokens) -> StepShape {
    let mut shape = StepShape::default();
    shape.add_chunk(0, tokens, true, window);
    shape
}

fn assert_close(computed: f64, expected: f64, tolerance: f64) {
    assert!((computed / expected - 1.0).abs() <= tolerance, "{computed} against {expected}");
}

/// Per-chunk timestamps of a Qwen3-14B server (one H100, vLLM 0.23): pure decode takes 11.16 ms + 0.043 ms
/// per sequence + 0.055 ms per 1,000 context tokens; a prefill of 986 tokens with 1 to 10 decodes 39.8
/// to 41.8 ms. Nothing here was fitted to these.
#[test]
fn step_times_of_a_real_server() {
    let mut setup = Setup::new("qwen3-14b", "h100-sxm", Dtype::Bf16);
    let cost = setup.cost(1);
    for (sequences, context) in [(1, 500), (1, 1000), (4, 1000), (10, 1000)] {
        let measured = 11.16 + 0.043 * f64::from(sequences) + 0.055e-3 * f64::from(sequences * context);
        let computed = cost.step_time(&decode(sequences, context, cost.window()), 1.0).as_millis_f64();
        assert_close(computed, measured, 0.07);
    }
    let per_context_s = cost.terms(&decode(1, 1000, cost.window())).kv_s;
    assert_close(per_context_s, 0.055e-3, 0.01);

    // These steps ran on a cold GPU, with a compute fraction of about 0.71; the fit to other data says
    // 0.68 +/- 0.01 for a cold one.
    setup.values.compute = 0.71;
    let cold = setup.cost(1);
    for decodes in [1, 10] {
        let mut shape = decode(decodes, 1000, cold.window());
        shape.add_chunk(0, 986, true, cold.window());
        let computed = cold.step_time(&shape, 1.0).as_millis_f64();
        assert!((39.8 * 0.98..=41.8 * 1.02).contains(&computed), "{decodes} decodes: {computed} ms");
    }
}

#[test]
fn terms_of_a_dense_model_are_the_formulas() {
    let setup = Setup::new("llama-3.1-8b", "h100-sxm", Dtype::Bf16);
    let (h, v) = (&setup.hardware, &setup.values);
    let cost = setup.cost(1);
    // 32 layers of 4096 x (4096 + 2 x 1024 + 4096) + 3 x 4096 x 14336 parameters.
    let layers = 32.0 * (4096.0 * 10_240.0 + 3.0 * 4096.0 * 14_336.0);
    let head = 128_256.0 * 4096.0;
    let bandwidth = h.memory_bandwidth_bytes_per_s;

    let terms = cost.terms(&prefill(2048, cost.window()));
    assert_close(terms.linear_compute_s, 2.0 * layers * 2048.0 / (989e12 * v.compute), 1e-12);
    assert_close(terms.linear_memory_s, 2.0 * layers / (bandwidth * v.memory), 1e-12);
    assert_close(terms.linear_s, terms.linear_compute_s.hypot(terms.linear_memory_s), 1e-12);
    // 4 L heads head_dim c (h + c/2).
    let pairs = 2048.0 * 1024.0;
    assert_close(
        terms.attention_compute_s,
        4.0 * 32.0 * 32.0 * 128.0 * pairs / (989e12 * v.attention_compute),
        1e-12,
    );
    assert_close(terms.kv_s, 131_072.0 * 2048.0 / (bandwidth * v.kv_memory), 1e-12);
    // Prompts multiply while decodes read: one launch serves both.
    assert_close(terms.attention_s, terms.attention_compute_s.hypot(terms.kv_s), 1e-12);
    assert_eq!(cost.terms(&decode(4, 1000, cost.window())).attention_compute_s, 0.0);
    let compute = 2.0 * head / (989e12 * v.compute);
    assert_close(terms.head_s, compute.hypot(2.0 * head / (bandwidth * v.memory)), 1e-12);
    assert_close(terms.overhead_s, 32.0 * v.overhead_per_layer_s, 1e-12);
    assert_close(terms.sequences_s, v.per_sequence_s, 1e-12);
    assert_eq!(terms.communication_s, 0.0);

    // A chunk that is not the prompt's last samples nothing: the head is not read.
    let mut partial = StepShape::default();
    partial.add_chunk(0, 512, false, cost.window());
    assert_eq!(cost.terms(&partial).head_s, 0.0);
}

#[test]
fn fp8_weights_halve_what_is_streamed_but_not_the_head() {
    let bf16 = Setup::new("llama-3.1-70b", "h100-sxm", Dtype::Bf16);
    let fp8 = Setup { dtype: Dtype::Fp8, ..Setup::new("llama-3.1-70b", "h100-sxm", Dtype::Bf16) };
    let shape = decode(8, 1000, Tokens::MAX);
    let (wide, narrow) = (bf16.cost(1).terms(&shape), fp8.cost(1).terms(&shape));
    assert_close(narrow.linear_memory_s, wide.linear_memory_s / 2.0, 1e-3);
    // 8 rows fill half of a tile of 16.
    assert_close(narrow.linear_compute_s, 2.0 * wide.linear_compute_s * 989.0 / 1979.0, 1e-9);
    assert_close(narrow.head_s, wide.head_s, 1e-12);
    assert_close(narrow.kv_s, wide.kv_s, 1e-12);
}

#[test]
fn a_mixture_of_experts_reads_the_experts_it_touches() {
    let mut setup = Setup::new("gpt-oss-120b", "h200-sxm", Dtype::Mxfp4);
    (setup.values.expert_correlation, setup.values.expert_memory) = (0.0, 0.78);
    let cost = setup.cost(1);
    let weights = setup.model.weight_bytes(Dtype::Mxfp4);
    let stream = setup.hardware.memory_bandwidth_bytes_per_s * setup.values.memory;
    for tokens in [1, 2, 16, 100, 650, 2000, 8192] {
        let touched = 1.0 - (1.0 - 4.0 / 128.0_f64).powi(tokens as i32);
        let expected = (weights.dense + weights.routed * touched / 0.78) / stream;
        assert_close(cost.terms(&decode(tokens, 10, cost.window())).linear_memory_s, expected, 1e-9);
    }
    // Attention and embeddings stay bf16; only the experts are in 4 bits.
    assert_close(weights.routed, 36.0 * 128.0 * 3.0 * 2880.0 * 2880.0 * 4.25 / 8.0, 1e-12);
}

#[test]
fn tensor_parallelism_divides_work_and_adds_all_reduces() {
    let mut setup = Setup::new("llama-3.1-70b", "h100-sxm", Dtype::Bf16);
    setup.values.all_reduce.clear();
    let shape = prefill(1024, Tokens::MAX);
    let one = setup.cost(1).terms(&shape);
    for (tp, startup_s, bus) in [(2, 15e-6, 262e9), (4, 8e-6, 288e9), (8, 9.5e-6, 351e9)] {
        let many = setup.cost(tp).terms(&shape);
        let gpus = f64::from(tp);
        for (part, whole) in [
            (many.linear_s, one.linear_s),
            (many.head_s, one.head_s),
            (many.attention_compute_s, one.attention_compute_s),
            (many.kv_s, one.kv_s),
        ] {
            assert_close(part * gpus, whole, 1e-9);
        }
        let bytes = 1024.0 * 8192.0 * 2.0;
        let expected = 2.0 * 80.0 * (startup_s + 2.0 * (gpus - 1.0) / gpus * bytes / bus);
        assert_close(many.communication_s, expected, 1e-9);
    }
    // A token is 16 KiB: messages over eight GPUs are large from 16 tokens on, over four from 32.
    for (tp, tokens, startup_s) in
        [(8, 15, 5.4e-6), (8, 16, 9.5e-6), (4, 31, 4.8e-6), (4, 32, 8e-6), (2, 511, 4.3e-6), (2, 512, 15e-6)]
    {
        let of_step = setup.cost(tp).terms(&prefill(tokens, Tokens::MAX));
        let point =
            setup.hardware.kernels.all_reduce.iter().find(|point| point.gpus == tp).expect("measured");
        let bytes = 2.0 * f64::from(tp - 1) / f64::from(tp) * f64::from(tokens) * 16384.0;
        let expected = 160.0 * (startup_s + bytes / point.bus_bytes_per_s);
        assert_close(of_step.communication_s, expected, 1e-9);
    }
    // More GPUs than KV heads: each holds at least one.
    assert_close(setup.cost(16).terms(&shape).kv_s, one.kv_s / 8.0, 1e-9);
}

#[test]
fn latent_kv_is_one_copy_on_every_gpu() {
    let setup = Setup::new("deepseek-v3", "h200-sxm", Dtype::Fp8);
    let shape = decode(32, 4000, Tokens::MAX);
    let (one, eight) = (setup.cost(1).terms(&shape), setup.cost(8).terms(&shape));
    let bandwidth = setup.hardware.memory_bandwidth_bytes_per_s * setup.values.kv_memory;
    assert_close(one.kv_s, 61.0 * 576.0 * 2.0 * 32.0 * 4000.0 / bandwidth, 1e-12);
    assert_close(eight.kv_s, one.kv_s, 1e-12);
    // Decode multiplies in the latent space: 2 heads (2 x 512 + 64) per context token and layer.
    let flops = 61.0 * 2.0 * 128.0 * 1088.0 * 32.0 * 4000.0;
    assert_close(one.attention_compute_s, flops / (989e12 * setup.values.attention_compute), 1e-12);
    // Prefill in expanded heads: queries and keys of 192, values of 128.
    let prefill = setup.cost(1).terms(&prefill(1000, Tokens::MAX)).attention_compute_s;
    let flops = 61.0 * 2.0 * 128.0 * (192.0 + 128.0) * 500_000.0;
    assert_close(prefill, flops / (989e12 * setup.values.attention_compute), 1e-12);
}

#[test]
fn windows_and_constant_state_bound_what_is_read() {
    let setup = Setup::new("gpt-oss-20b", "h200-sxm", Dtype::Mxfp4);
    let cost = setup.cost(1);
    assert_eq!(cost.window(), 128);
    let bandwidth = setup.hardware.memory_bandwidth_bytes_per_s * setup.values.kv_memory;
    let layer = 2.0 * 8.0 * 64.0 * 2.0;
    let expected = 12.0 * layer * (4000.0 + 128.0) / bandwidth;
    assert_close(cost.terms(&decode(1, 4000, 128)).kv_s, expected, 1e-12);
    let long = prefill(1000, 128);
    let half = 2.0 * 64.0 * 64.0 * 12.0 / (989e12 * setup.values.attention_compute);
    let pairs_x2 = 1_000_000.0 + (128.0 * 128.0 + 2.0 * 128.0 * 872.0);
    assert_close(cost.terms(&long).attention_compute_s, half * pairs_x2, 1e-12);

    let setup = Setup::new("qwen3-next-80b-a3b", "h100-sxm", Dtype::Bf16);
    let cost = setup.cost(1);
    let kv = |context| cost.terms(&decode(1, context, Tokens::MAX)).kv_s;
    let bandwidth = setup.hardware.memory_bandwidth_bytes_per_s * setup.values.kv_memory;
    let state = 2.0 * setup.model.state_bytes_per_sequence(1) as f64;
    assert_close(kv(0), state / bandwidth, 1e-12);
    assert_close(kv(1000) - kv(0), 1000.0 * 12.0 * 2.0 * 2.0 * 256.0 * 2.0 / bandwidth, 1e-9);
}

#[test]
fn affine_costs_are_exactly_affine() {
    let cost = StepCost::affine(2e-3, 30e-6);
    assert_eq!(cost.step_time(&prefill(100, cost.window()), 1.0).as_nanos(), 5_000_000);
    assert_eq!(cost.step_time(&decode(7, 9999, cost.window()), 1.0).as_nanos(), 2_210_000);
    let terms = cost.terms(&prefill(8, cost.window()));
    let linear = 8.0 * 30e-6;
    let expected =
        StepTerms { overhead_s: 2e-3, linear_s: linear, linear_compute_s: linear, ..StepTerms::default() };
    assert_eq!(terms, expected);
}

/// One GPU has nothing to share out, and a dense model nothing to spread. Otherwise few tokens meet few of
/// the experts and those unevenly; with many, every GPU reads all it holds and the picks even out.
#[test]
fn expert_parallelism_adds_what_the_busiest_gpu_has_more() {
    let decode =
        |tokens: u32| StepShape { tokens, sequences: tokens, sampled: tokens, ..StepShape::default() };
    let surplus = |name: &str, tp: u32, tokens: u32| {
        let setup = Setup::new(name, "h100-sxm", Dtype::Bf16);
        let plain = setup.cost(tp);
        let spread = plain.clone().with_expert_parallel(&setup.model, tp);
        spread.terms(&decode(tokens)).linear_s / plain.terms(&decode(tokens)).linear_s - 1.0
    };
    assert_eq!(surplus("llama-3.1-8b", 4, 64), 0.0);
    assert_eq!(surplus("qwen3-30b-a3b", 1, 64), 0.0);
    let [few, some, many, prompt] = [4, 64, 1024, 8192].map(|tokens| surplus("qwen3-30b-a3b", 8, tokens));
    assert!(few > 0.3 && few > some && some > many, "{few} {some} {many}");
    assert!(many > 0.0 && many < 0.03 && prompt > 0.0 && prompt < 0.03, "{many} {prompt}");
}

/// DeepSeek-V3 on eight GPUs, each a rank with four requests, by hand: 11.41 G parameters of attention, 1.19 G of
/// dense and 2.55 G of shared feed-forward layers, 0.11 G of routers; of 653.9 G in routed experts 20.4 G are used.
#[test]
fn ranks_compute_their_own_tokens_and_a_part_of_everybodys() {
    let mut setup = Setup::new("deepseek-v3", "h200-sxm", Dtype::Fp8);
    setup.values.expert_correlation = 0.0;
    let values = &setup.values;
    let (own, alone) = (decode(4, 1000, Tokens::MAX), setup.cost(1).terms(&decode(4, 1000, Tokens::MAX)));
    let all = own.times(8);
    let (attention, dense, shared, routers) =
        (11_413_422_080.0, 1_189_085_184.0, 2_554_331_136.0, 106_430_464.0);
    let (routed, active) = (653_908_770_816.0, 20_434_649_088.0);
    let touched = 1.0 - (1.0_f64 - 8.0 / 256.0).powi(32);
    let point = values.all_reduce.iter().find(|point| point.gpus == 8).expect("measured");
    for (sharing, kept, spread, layers) in [
        (Sharing::Experts, attention + dense + shared + routers, 0.0, 58.0),
        (Sharing::FeedForwardAndHead, attention + routers, dense + shared, 61.0),
    ] {
        let ranks = Ranks { count: 8, sharing };
        let cost = setup.cost(1).with_ranks(&setup.model, &setup.hardware, values, ranks);
        let terms = cost.terms_among(&own, &all, 1.0);
        // 4 rows fill a tile of 16, 32 one of 64.
        let rows = |tile: f64| 2.0 * (tile + values.half_tokens);
        let dense = (rows(16.0) * kept + rows(64.0) * spread / 8.0) / values.compute;
        // Experts of 2,048 columns, uncut.
        let experts = 2.0 * (32.0 * active + values.expert_half_tokens * routed * touched) / 8.0;
        let experts = experts / values.expert_compute * (1.0 + values.expert_half_width / 2048.0);
        assert_close(terms.linear_compute_s, (dense + experts) / 1979e12, 1e-9);
        let bandwidth = 4800e9 * values.memory;
        // A byte each, and a scale of four for every block of 128 x 128.
        let read = (kept + spread / 8.0 + routed * touched / values.expert_memory / 8.0) * 4097.0 / 4096.0;
        assert_close(terms.linear_memory_s, read / bandwidth, 1e-9);
        let bytes = 2.0 * 7.0 / 8.0 * 32.0 * 7168.0 * 2.0;
        let exchange = layers * (2.0 * point.startup_s + bytes / point.bus_bytes_per_s);
        assert_close(terms.communication_s, exchange, 1e-9);
        // Attention is a rank's own, whatever the others have.
        assert_eq!((terms.attention_s, terms.sequences_s), (alone.attention_s, alone.sequences_s));
        // The rows of all on an eighth of the head, or its own on the whole.
        let bound = if sharing == Sharing::Experts { 1.0 } else { 0.2 };
        assert!(terms.head_s <= bound * alone.head_s, "{sharing:?}");
    }
}

/// Who has less takes no longer, down to nothing at all; more tokens elsewhere take longer.
#[test]
fn an_idle_rank_waits_for_the_others() {
    let setup = Setup::new("deepseek-v3", "h200-sxm", Dtype::Fp8);
    let ranks = Ranks { count: 8, sharing: Sharing::Experts };
    let cost = setup.cost(1).with_expert_parallel(&setup.model, 8);
    let cost = cost.with_ranks(&setup.model, &setup.hardware, &setup.values, ranks);
    let (some, more) = (decode(4, 1000, Tokens::MAX), decode(40, 1000, Tokens::MAX));
    let all = [some, more].iter().sum();
    let time = |own: &StepShape, all: &StepShape| cost.step_time_among(own, all, 1.0);
    assert!(time(&StepShape::default(), &all) < time(&some, &all));
    assert!(time(&some, &all) < time(&more, &all));
    assert!(time(&some, &some) < time(&some, &all));
    // A rank alone in the server is as fast as one without ranks, up to the order of additions.
    let one = Ranks { count: 1, sharing: Sharing::FeedForwardAndHead };
    let one = setup.cost(8).with_ranks(&setup.model, &setup.hardware, &setup.values, one);
    let (plain, one) = (setup.cost(8).terms(&more), one.terms(&more));
    assert_close(one.total_s(), plain.total_s(), 1e-9);
}

/// Without a graph a step takes at least 300 us a layer and, on several GPUs, twice 22 us for its two
/// all-reduces; with one, and where the GPU has more to do than the host, nothing changes.
#[test]
fn a_step_without_a_graph_takes_at_least_its_launches() {
    let setup = Setup::new("llama-3.1-8b", "h100-sxm", Dtype::Bf16);
    let graphs =
        |tp: u32, graphs: Graphs| setup.cost(tp).with_graphs(&setup.model, &setup.hardware, tp, graphs);
    let window = setup.cost(1).window();
    let (small, large, prompt) = (decode(1, 100, window), decode(200, 100, window), prefill(4000, window));
    for (tp, floor_s) in [(1, 32.0 * 300e-6), (2, 32.0 * 344e-6)] {
        let (plain, eager) = (setup.cost(tp), graphs(tp, Graphs::Off));
        let captured = graphs(tp, Graphs::UpTo(64));
        for shape in [small, large] {
            assert!(plain.terms(&shape).total_s() < floor_s);
            assert_close(eager.terms(&shape).total_s(), floor_s, 1e-12);
        }
        assert_eq!(captured.terms(&small), plain.terms(&small));
        assert_eq!(captured.terms(&large), eager.terms(&large));
        assert_eq!(eager.terms(&prompt), plain.terms(&prompt));
    }
    // A step with a prompt chunk is in the profile as it is.
    let mut mixed = decode(100, 100, window);
    mixed.add_chunk(0, 16, true, window);
    assert_eq!(graphs(1, Graphs::UpTo(64)).terms(&mixed), setup.cost(1).terms(&mixed));
}

/// Steps that only decode have a price of their own, which must not differ by a nanosecond.
#[test]
fn decode_only_agrees_with_the_whole_model() {
    for (model, dtype, tp) in [
        ("llama-3.1-8b", Dtype::Bf16, 1),
        ("qwen3-30b-a3b", Dtype::Fp8, 2),
        ("deepseek-v3", Dtype::Fp8, 8),
        ("gpt-oss-20b", Dtype::Bf16, 1),
    ] {
        let setup = Setup::new(model, "h100-sxm", dtype);
        let cost = setup.cost(tp).with_graphs(&setup.model, &setup.hardware, tp, Graphs::UpTo(16));
        for sequences in [1, 2, 3, 17, 128, 1024] {
            // Odd counts on a chip that has slowed down.
            let speed = if sequences % 2 == 1 { 0.87 } else { 1.0 };
            let decode_only = cost.decode_only(sequences, speed);
            for context in [1, 77, 128, 129, 1_001, 65_537] {
                let shape = decode(sequences, context, cost.window());
                assert_eq!(
                    decode_only.step_time(shape.decode_context, shape.decode_window_context),
                    cost.step_time(&shape, speed),
                    "{model}, {sequences} sequences at {context} tokens"
                );
            }
        }
    }
}

#[test]
fn a_scaled_cost_takes_that_much_longer_in_every_term() {
    let setup = Setup::new("gpt-oss-20b", "h200-sxm", Dtype::Mxfp4);
    let (cost, slower) = (setup.cost(2), setup.cost(2).scaled(1.25));
    for shape in [decode(1, 4000, 128), prefill(1000, 128)] {
        assert_close(slower.terms(&shape).total_s(), 1.25 * cost.terms(&shape).total_s(), 1e-12);
        assert_close(slower.terms(&shape).linear_s, 1.25 * cost.terms(&shape).linear_s, 1e-12);
    }
}

/// Every matrix that a step touches takes as long as h rows more: with h rows computing alone, twice as long.
#[test]
fn half_tokens_are_rows_that_every_touched_matrix_computes_besides() {
    for (model, tokens) in
        [("llama-3.1-8b", 64), ("mixtral-8x7b", 1), ("mixtral-8x7b", 8), ("mixtral-8x7b", 4096)]
    {
        let mut setup = Setup::new(model, "h100-sxm", Dtype::Bf16);
        (setup.values.half_tokens, setup.values.expert_half_tokens) = (0.0, 0.0);
        let shape = StepShape { tokens, ..StepShape::default() };
        let plain = setup.cost(1).terms(&shape);
        (setup.values.half_tokens, setup.values.expert_half_tokens) = (100.0, 50.0);
        let with = setup.cost(1).terms(&shape);
        let parameters = setup.model.parameters();
        // Mixtral picks 2 of 8 experts; a dense model has none.
        let touched = 1.0 - 0.75_f64.powi(i32::try_from(tokens).unwrap());
        let dense = 100.0 * parameters.dense as f64 / setup.values.compute;
        // Experts of 14,336 columns.
        let narrow = 1.0 + setup.values.expert_half_width / 14_336.0;
        let experts = 50.0 * parameters.routed as f64 * touched / setup.values.expert_compute * narrow;
        let seconds = 2.0 * (dense + experts) / setup.hardware.bf16_flops;
        assert_close(with.linear_compute_s - plain.linear_compute_s, seconds, 1e-9);
        assert_eq!(with.linear_memory_s, plain.linear_memory_s);
    }
}

#[test]
fn an_fp8_cache_is_read_at_its_own_rate() {
    let mut setup = Setup::new("llama-3.1-8b", "h200-sxm", Dtype::Bf16);
    (setup.values.kv_memory, setup.values.fp8_kv_memory) = (0.8, 0.5);
    let cost = |kv| StepCost::new(&setup.model, setup.dtype, kv, &setup.hardware, &setup.values, 1, 8192);
    let shape = decode(8, 2000, Tokens::MAX);
    let (bf16, fp8) = (cost(Dtype::Bf16).terms(&shape), cost(Dtype::Fp8).terms(&shape));
    assert_close(fp8.kv_s / bf16.kv_s, 0.5 * 0.8 / 0.5, 1e-12);
}

/// Qwen3-30B-A3B's experts of 768 columns, by hand: 48 layers x 8 x 3 x 2,048 x 768 parameters for a token, of 128 such
/// experts each. Cut into slices each GPU has less to do of each, and does it more slowly.
#[test]
fn narrow_slices_of_experts_compute_slowly() {
    let mut setup = Setup::new("qwen3-30b-a3b", "h100-sxm", Dtype::Bf16);
    (setup.values.expert_compute, setup.values.expert_half_width) = (0.6, 256.0);
    let dense = setup.model.parameters().dense as f64;
    let shape = prefill(4000, Tokens::MAX);
    let experts = |gpus: u32, cost: StepCost| {
        let rows = 4000.0 + setup.values.half_tokens;
        let compute = f64::from(gpus) * 989e12 * setup.values.compute;
        cost.terms(&shape).linear_compute_s - 2.0 * rows * dense / compute
    };
    let one_expert = 48.0 * 3.0 * 2048.0 * 768.0;
    let rows = 2.0 * (4000.0 * 8.0 + setup.values.expert_half_tokens * 128.0);
    let whole_s = rows * one_expert / (989e12 * 0.6);
    for (gpus, slower) in [(1, 1.0 + 256.0 / 768.0), (4, 1.0 + 4.0 * 256.0 / 768.0)] {
        assert_close(experts(gpus, setup.cost(gpus)), whole_s * slower / f64::from(gpus), 1e-9);
    }
    // Whole experts on each GPU; the busiest has a little more than the mean.
    let apart = experts(4, setup.cost(4).with_expert_parallel(&setup.model, 4));
    let mean_s = whole_s * (1.0 + 256.0 / 768.0) / 4.0;
    assert!(mean_s < apart && apart < 1.05 * mean_s, "{apart} {mean_s}");
    let cut = setup.cost(1).with_expert_slices(4);
    assert_close(experts(1, cut), whole_s * (1.0 + 4.0 * 256.0 / 768.0), 1e-9);
}

/// Launching takes the host 80 x 0.5 ms: a short prompt waits for it, a long one hides most of it, decoding has graphs.
#[test]
fn a_step_with_prompt_tokens_waits_for_its_launches() {
    let mut setup = Setup::new("llama-3.1-70b", "h100-sxm", Dtype::Fp8);
    setup.values.prefill_launch_per_layer_s = 0.0;
    let plain = setup.cost(4);
    setup.values.prefill_launch_per_layer_s = 0.5e-3;
    let cost = setup.cost(4);
    let (short, long) = (prefill(100, Tokens::MAX), prefill(8000, Tokens::MAX));
    for shape in [short, long] {
        let both_s = plain.terms(&shape).total_s().hypot(0.040);
        assert_close(cost.terms(&shape).total_s(), both_s, 1e-9);
    }
    let decodes = decode(4, 1000, Tokens::MAX);
    assert_eq!(cost.step_time(&decodes, 1.0), plain.step_time(&decodes, 1.0));
}

/// The mean of many steps has some prompt tokens; what prompts wait for the host is not the mean step's.
#[test]
fn a_mean_step_does_not_wait_for_prompts() {
    let mut setup = Setup::new("llama-3.1-70b", "h100-sxm", Dtype::Bf16);
    let mixed = StepShape { prefill_context: 1, ..decode(8, 1000, Tokens::MAX) };
    setup.values.prefill_launch_per_layer_s = 0.0;
    let plain = setup.cost(8).terms(&mixed);
    setup.values.prefill_launch_per_layer_s = 1e-3;
    let cost = setup.cost(8);
    let waits = cost.terms(&mixed);
    assert_close(waits.total_s(), plain.total_s().hypot(0.08), 1e-9);
    assert_eq!(cost.without_prompt_launch(waits, &mixed), plain);
}

#[test]
fn fp8_matrices_are_computed_in_whole_tiles_of_rows() {
    let setup = Setup { dtype: Dtype::Fp8, ..Setup::new("llama-3.1-70b", "h200-sxm", Dtype::Bf16) };
    let compute_s = |rows: u32| setup.cost(1).terms(&decode(rows, 1000, Tokens::MAX)).linear_compute_s;
    let row_s = compute_s(128) / 128.0;
    for (rows, tiles) in [(1, 16.0), (16, 16.0), (17, 64.0), (64, 64.0), (65, 128.0), (300, 384.0)] {
        assert_close(compute_s(rows), tiles * row_s, 1e-9);
    }
    // An A100 has no fp8 units: the weights are dequantised, and computed in bf16.
    let old = Setup { dtype: Dtype::Fp8, ..Setup::new("llama-3.1-70b", "a100-80-sxm", Dtype::Bf16) };
    let compute_s = |rows: u32| old.cost(2).terms(&decode(rows, 1000, Tokens::MAX)).linear_compute_s;
    assert_close(compute_s(32), 2.0 * compute_s(16), 1e-9);
}
