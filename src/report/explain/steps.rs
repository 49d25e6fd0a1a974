//! What a step's time is made of, for a few shapes that bracket what an engine runs.

use super::roofline::{mean_context, most_sequences};
use crate::cost::{Graphs, StepShape, StepTerms};
use crate::engine::{DataParallel, LlmServer, RankPolicy, Server};
use crate::experiment::Point;
use crate::report::format::{count, latency, number};
use crate::report::table::{Columns, MAX_WIDTH, wrapped};
use crate::scenario::{Scenario, Serving};
use crate::units::{SimSpan, Tokens};

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Compute,
    Weights,
    Kv,
    Head,
    Overhead,
    Communication,
}

impl Resource {
    /// All of them, in the order of the table's columns.
    pub const ALL: [Self; 6] =
        [Self::Compute, Self::Weights, Self::Kv, Self::Head, Self::Overhead, Self::Communication];

    /// In the words of the tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Weights => "weight streaming",
            Self::Kv => "KV reading",
            Self::Head => "output head",
            Self::Overhead => "overhead",
            Self::Communication => "communication",
        }
    }

    /// Seconds of a step that this resource accounts for; over all resources they add up to the step.
    #[must_use]
    pub fn seconds(self, terms: &StepTerms) -> f64 {
        let linear = terms.linear_s * compute_share(terms.linear_compute_s, terms.linear_memory_s);
        let attention = terms.attention_s * compute_share(terms.attention_compute_s, terms.kv_s);
        match self {
            Self::Compute => linear + attention,
            Self::Weights => terms.linear_s - linear,
            Self::Kv => terms.attention_s - attention,
            Self::Head => terms.head_s,
            Self::Overhead => terms.overhead_s + terms.sequences_s + terms.launch_s,
            Self::Communication => terms.communication_s,
        }
    }

    /// The resource that most of a step waits for.
    #[must_use]
    pub fn binding(terms: &StepTerms) -> Self {
        let mut largest = Self::Compute;
        for resource in Self::ALL {
            if resource.seconds(terms) > largest.seconds(terms) {
                largest = resource;
            }
        }
        largest
    }
}

/// The share of compute in sqrt(compute² + memory²): each part's due is its share of the sum of squares.
fn compute_share(compute_s: f64, memory_s: f64) -> f64 {
    let squares = compute_s.powi(2) + memory_s.powi(2);
    if squares > 0.0 { compute_s.powi(2) / squares } else { 1.0 }
}

/// Name and share of every resource of a step, the largest first.
#[must_use]
pub fn shares(terms: &StepTerms) -> Vec<(&'static str, f64)> {
    let total = terms.total_s();
    let share = |resource: Resource| (resource.name(), resource.seconds(terms) / total);
    let mut shares: Vec<(&'static str, f64)> = Resource::ALL.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// A step that `sequences` decoding sequences share, each with `context` tokens.
pub(super) fn decode_shape(sequences: u32, context: Tokens, window: Tokens) -> StepShape {
    StepShape {
        tokens: sequences,
        sequences,
        sampled: sequences,
        decode_context: u64::from(sequences) * u64::from(context),
        decode_window_context: u64::from(sequences) * u64::from(context.min(window)),
        ..StepShape::default()
    }
}

/// A step of `decode`'s sequences as this server runs it: with all their drafts, the last of which sees the context.
fn verification(server: &LlmServer, decode: StepShape) -> StepShape {
    let drafts = server.speculation.as_ref().map_or(0, |speculation| speculation.num_speculative_tokens);
    let tokens = decode.sequences * (1 + drafts);
    StepShape { tokens, sampled: tokens, ..decode }
}

/// The shapes of the table, with their names; of data-parallel ranks what all have together when each has the
/// same.
pub(super) fn shapes(scenario: &Scenario, server: &LlmServer) -> Vec<(String, StepShape)> {
    let ranks = server.ranks();
    let mut shapes = shapes_of_a_rank(scenario, server);
    if ranks > 1 {
        for (name, shape) in &mut shapes {
            *name = format!("{ranks} x {name}");
            *shape = shape.times(ranks);
        }
    }
    shapes
}

fn shapes_of_a_rank(scenario: &Scenario, server: &LlmServer) -> Vec<(String, StepShape)> {
    let window = server.cost.window();
    let batcher = &server.batcher;
    let context = mean_context(scenario, server);
    let most = most_sequences(server, context);
    let mut batches: Vec<u32> = [1, 8, 64, most].into_iter().filter(|batch| *batch <= most).collect();
    batches.dedup();
    let mut shapes: Vec<(String, StepShape)> = batches
        .into_iter()
        .map(|batch| {
            (format!("decode, batch {batch}"), verification(server, decode_shape(batch, context, window)))
        })
        .collect();
    let budget = batcher.max_num_batched_tokens.min(batcher.max_model_len);
    let mut prefill = StepShape::default();
    prefill.add_chunk(0, budget, true, window);
    shapes.push((format!("prefill, {} tokens", count(u64::from(budget))), prefill));
    let decodes = most.min(64).min(budget.saturating_sub(1));
    let mut mixed = verification(server, decode_shape(decodes, context, window));
    mixed.add_chunk(0, budget.saturating_sub(mixed.tokens).max(1), true, window);
    shapes.push((format!("{decodes} decodes + prefill"), mixed));
    shapes
}

/// Tokens of a step that somebody gets: of its drafts those that are accepted, and the model's own.
pub(super) fn kept_tokens(scenario: &Scenario, shape: &StepShape) -> f64 {
    let speculative = scenario.serving.as_ref().and_then(|serving| serving.speculative.as_ref());
    let Some(speculative) = speculative else {
        return f64::from(shape.tokens);
    };
    // A prompt's last chunk samples one token, a decoding sequence one and its drafts.
    let each = 1 + speculative.num_speculative_tokens;
    let decoding = f64::from(shape.sampled / each);
    let prompts = f64::from(shape.tokens) - decoding * f64::from(each);
    decoding * speculative.mean_acceptance_length + prompts
}

/// Seconds from one step of this shape to the next, what drafts for it included.
pub(super) fn whole_s(server: &LlmServer, shape: &StepShape) -> f64 {
    let drafting = server.speculation.as_ref().map_or(0.0, |speculation| speculation.draft_s(shape, 1.0));
    server.terms(shape).total_s() + drafting
}

/// The shapes, term by term.
pub(super) fn table(scenario: &Scenario, server: &LlmServer) -> Vec<String> {
    let mut header: Vec<String> = ["", "tokens", "step\nms"].map(String::from).to_vec();
    header.extend(
        ["of it:\ncompute", "\nweights", "\nKV", "\nhead", "\noverhead", "\ncomm."].map(String::from),
    );
    header.extend(["tokens/s\nper replica", "\nbinds"].map(String::from));
    let mut table = Columns::words_last(&header, 1);
    for (name, shape) in shapes(scenario, server) {
        let terms = server.terms(&shape);
        let step = terms.total_s();
        let mut row = vec![name, count(u64::from(shape.tokens)), number(step * 1e3)];
        row.extend(Resource::ALL.map(|resource| format!("{:.2}", resource.seconds(&terms) * 1e3)));
        row.push(number(kept_tokens(scenario, &shape) / whole_s(server, &shape)));
        row.push(Resource::binding(&terms).name().to_owned());
        table.row(&row);
    }
    let mut lines = table.lines();
    lines.extend(wrapped(PARTS, MAX_WIDTH));
    lines
}

/// What the parts of a step are.
const PARTS: &str = "The parts are ms and add up to the step. Computing and reading overlap, so each has its share of the \
time that both take together (by the squares of what they take alone), not what it would take alone.";

/// What pipeline stages, drafts and ranks make of the steps in the table.
pub(super) fn overlap(scenario: &Scenario, server: &LlmServer, serving: &Serving) -> Vec<String> {
    let shapes = shapes(scenario, server);
    let mut lines = Vec::new();
    for (name, shape) in &shapes {
        let mut stages = Vec::new();
        server.stage_times(shape, 1.0, &mut stages);
        let stages: Vec<f64> = stages.into_iter().map(SimSpan::as_secs_f64).collect();
        let whole: f64 = stages.iter().sum();
        let slowest = stages.iter().copied().fold(0.0, f64::max);
        if server.pipeline.is_some() {
            let each: Vec<String> = stages.iter().map(|seconds| number(seconds * 1e3)).collect();
            lines.push(format!(
                "  {name}: {} ms; alone one every {}, with one in every stage one every {}",
                each.join(" + "),
                latency(whole),
                latency(slowest)
            ));
        }
        if let (Some(speculation), Some(speculative)) = (&server.speculation, &serving.speculative)
            && shape.prefill_context == 0
        {
            let tokens = f64::from(shape.sequences) * speculative.mean_acceptance_length;
            lines.push(format!(
                "  {name}: {} to draft and {} to verify, {} tokens/s of output",
                latency(speculation.draft_s(shape, 1.0)),
                latency(server.cost.terms(shape).total_s()),
                number(tokens / whole)
            ));
        }
    }
    if let Some(pipeline) = &server.pipeline {
        let layers: Vec<String> = pipeline.layers().iter().map(u32::to_string).collect();
        let head = format!(
            "Through stages of {} layers, the hop between them (an estimate) included:",
            layers.join(" + ")
        );
        lines.insert(0, head);
        lines.extend(wrapped(
            "As many steps as there are stages are under way at most, each with a group of its own. vLLM does not even \
             the groups out: with few requests most are in one, and the other stages idle.",
            MAX_WIDTH,
        ));
    } else if let Some(speculation) = &server.speculation {
        let tokens = 1 + speculation.num_speculative_tokens;
        let head =
            format!("Every decoding sequence has {tokens} tokens in a step, those of its drafts included:");
        lines.insert(0, head);
        lines.extend(wrapped(
            "Drafts are accepted independently of each other, and as often at every load: measure mean_acceptance_length \
             on text of your own.",
            MAX_WIDTH,
        ));
    }
    if let Some(parallel) = server.data_parallel {
        lines.extend(wrapped(&ranks(parallel), MAX_WIDTH));
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

/// How data-parallel ranks go together.
fn ranks(parallel: DataParallel) -> String {
    let sent = match parallel.policy {
        RankPolicy::WaitingAndRunning => {
            "the rank with the least 4 x waiting + running, counted every 100 ms"
        }
        RankPolicy::RoundRobin => "the ranks in turn",
        RankPolicy::PromptTokens => "the rank with the fewest prompt tokens in flight",
    };
    format!(
        "{} ranks step together, each with its own scheduler and KV cache: steps above hold the same on every rank, and \
         last as long as the slowest where they do not. Requests go to {sent}. The exchange of tokens between ranks is an \
         estimate.",
        parallel.ranks
    )
}

/// How founded the figures are, and the front end that is no part of a step.
pub(super) fn notes(server: &LlmServer, serving: &Serving) -> Vec<String> {
    let values = serving.profile.values.iter().find(|values| values.weight_dtype == serving.weight_dtype);
    let mut lines = vec![format!(
        "Every request also spends {} in the front end (HTTP, tokenising).",
        latency(server.front_end.as_secs_f64())
    )];
    lines.extend(graphs(server, serving));
    if let Some(values) = values {
        if values.prefill_launch_per_layer_s > 0.0 {
            let layers = serving.model.layer_count();
            lines.extend(wrapped(&format!(
                "A step with prompt tokens takes at least {}: the host launches it, {} us for each of {layers} layers \
                 (prefill_launch_per_layer_us).",
                latency(values.prefill_launch_per_layer_s * f64::from(layers)),
                number(values.prefill_launch_per_layer_s * 1e6),
            ), MAX_WIDTH));
        }
        if values.throttle > 0.0 {
            let lost = number(values.throttle * 100.0);
            lines.extend(wrapped(&format!(
                "Steps above are those of a cold chip: compute falls by up to {lost} % while it never pauses \
                 (power-limited clock)."
            ), MAX_WIDTH));
        }
        let experts = if serving.model.weights(serving.weight_dtype).kind.has_experts() {
            let (most, half) = (number(values.expert_compute), number(values.expert_half_width));
            format!(" (routed experts {most}, half of it in slices of {half} columns)")
        } else {
            String::new()
        };
        lines.extend(wrapped(&format!(
            "Efficiencies ({}): compute {}{experts}, weights {}, KV {}, attention {} of the datasheet's peaks; {}.",
            serving.foundation(),
            number(values.compute),
            number(values.memory),
            number(values.kv_memory),
            number(values.attention_compute),
            serving.profile.source,
        ), MAX_WIDTH));
    }
    lines
}

/// Which steps CUDA graphs launch, and what the others cost.
fn graphs(server: &LlmServer, serving: &Serving) -> Vec<String> {
    let floor = latency(server.cost.launch_floor_s());
    let text = match serving.graphs {
        None => return Vec::new(),
        Some(Graphs::Off) => format!(
            "enforce_eager: no CUDA graphs, so that no step is shorter than {floor}, the launches of its kernels (estimated)."
        ),
        Some(Graphs::UpTo(tokens)) => format!(
            "CUDA graphs hold decode batches of up to {} tokens; padding to a captured size is not costed. A larger batch \
             takes at least {floor} to launch (estimated).",
            count(u64::from(tokens))
        ),
    };
    wrapped(&text, MAX_WIDTH)
}

/// The step of a run's average content and its terms; `None` for a synthetic server or an idle run.
///
/// It is the cost of the mean step, not the mean cost of the steps: good for what dominates, not for a latency.
#[must_use]
pub fn mean_step(point: &Point) -> Option<(StepShape, StepTerms)> {
    let Server::Llm(server) = &point.scenario.system.server else {
        return None;
    };
    let replicas = point.runs.iter().flat_map(|run| &run.replicas);
    let busiest = replicas.max_by_key(|replica| replica.steps)?;
    let shape = busiest.mean_step;
    (shape.tokens > 0).then(|| (shape, server.mean_terms(&shape)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_add_up_to_the_step() {
        let terms = StepTerms {
            overhead_s: 1.0,
            sequences_s: 0.5,
            linear_s: 5.0,
            linear_compute_s: 3.0,
            linear_memory_s: 4.0,
            head_s: 0.25,
            attention_s: 2.5,
            attention_compute_s: 1.5,
            kv_s: 2.0,
            communication_s: 0.75,
            launch_s: 0.375,
        };
        let sum: f64 = Resource::ALL.into_iter().map(|resource| resource.seconds(&terms)).sum();
        assert!((sum - terms.total_s()).abs() < 1e-12);
        assert_eq!(Resource::binding(&terms), Resource::Weights);
        assert_eq!(shares(&terms)[0].0, "weight streaming");
    }
}
