//! The roofline of a step: tokens per second against the tokens in a step, below its two roofs.
//!
//! Weights are read once per step, so the tokens of a step are its arithmetic intensity up to a constant: the roof of
//! weight streaming rises with them and the roof of compute is flat. What lies between a roof and a curve is KV
//! reading, attention, overhead and communication.

use super::memory::mean_lengths;
use super::steps::{Resource, decode_shape};
use crate::cost::{StepShape, StepTerms};
use crate::engine::{LlmServer, Server};
use crate::report::chart::palette::{self, BLUE, GREY, VERMILLION};
use crate::report::chart::{EndLabel, Frame, Line, Picture, Scale, title};
use crate::report::format::{count, number};
use crate::report::provenance;
use crate::scenario::Scenario;
use crate::units::Tokens;

/// Tokens per step and tokens per second.
type Curve = Vec<(f64, f64)>;

/// The picture; `None` for a synthetic server or a cost model without linear layers.
#[must_use]
pub fn roofline(scenario: &Scenario) -> Option<Picture> {
    let Server::Llm(server) = &scenario.system.server else {
        return None;
    };
    let window = server.cost.window();
    let budget = server.batcher.max_num_batched_tokens.min(server.batcher.max_model_len);
    let sizes = sizes(budget);
    let prefill_terms = |tokens: Tokens| {
        let mut shape = StepShape::default();
        shape.add_chunk(0, tokens, true, window);
        server.terms(&shape.times(server.ranks()))
    };
    // Of data-parallel ranks: each has as much.
    let all = |tokens: Tokens| f64::from(tokens) * f64::from(server.ranks());
    let roof = |seconds: fn(&StepTerms) -> f64| -> Curve {
        let rate = |tokens: &Tokens| (all(*tokens), all(*tokens) / seconds(&prefill_terms(*tokens)));
        sizes.iter().map(rate).filter(|pair| pair.1.is_finite()).collect()
    };
    let compute = roof(|terms| terms.linear_compute_s);
    let weights = roof(|terms| terms.linear_memory_s);
    let prefill = roof(StepTerms::total_s);
    let decode = decode_curve(scenario, server, &sizes);
    // Up to half as high again as the flat roof: the rising one leaves the picture there.
    let top = compute.iter().fold(0.0_f64, |top, pair| top.max(pair.1)) * 1.5;
    let bottom = decode.iter().chain(&prefill).map(|pair| pair.1).reduce(f64::min)?;
    if top <= 0.0 || bottom <= 0.0 {
        return None;
    }
    let frame = Frame::new(Scale::log(all(1), all(budget)), Scale::log(bottom, top));
    let mut picture = Picture::default();
    title(&mut picture, &finding(server, &decode, scenario), &provenance::deployment(scenario));
    frame.axes(&mut picture, "tokens in a step (log scale)", "tokens/s per replica (log scale)");
    let mut labels = Vec::new();
    for (values, name, colour, line) in [
        (&compute, "compute roof", GREY, Line::Dashed),
        (&weights, "weight roof", GREY, Line::Dashed),
        (&prefill, "prefill", BLUE, Line::Thin),
        (&decode, "decode", VERMILLION, Line::Thick),
    ] {
        let inside: Curve = values.iter().copied().filter(|pair| frame.y.holds(pair.1)).collect();
        frame.curve(&mut picture, &inside, colour, line);
        labels.extend(inside.last().map(|(x, y)| EndLabel {
            at: frame.at(*x, *y),
            text: name.to_owned(),
            colour,
            bold: line != Line::Dashed,
        }));
    }
    frame.end_labels(&mut picture, labels, palette::WHITE);
    Some(picture)
}

/// Powers of two up to the budget, and the budget.
fn sizes(budget: Tokens) -> Vec<Tokens> {
    let mut sizes: Vec<Tokens> = (0..31).map(|power| 1 << power).take_while(|size| *size < budget).collect();
    sizes.push(budget.max(1));
    sizes
}

fn decode_curve(scenario: &Scenario, server: &LlmServer, sizes: &[Tokens]) -> Curve {
    let context = mean_context(scenario, server);
    let rate = |batch: &Tokens| {
        let terms = server.terms(&decode_shape(*batch, context, server.cost.window()).times(server.ranks()));
        let all = f64::from(*batch) * f64::from(server.ranks());
        (all, all / terms.total_s())
    };
    let most = most_sequences(server, context);
    sizes.iter().filter(|batch| **batch < most).chain(&[most]).map(rate).collect()
}

/// The context of a sequence half-way through its output, in the mean over the workload.
pub(super) fn mean_context(scenario: &Scenario, server: &LlmServer) -> Tokens {
    let (input, output) = mean_lengths(&scenario.workload.classes).unwrap_or((512.0, 128.0));
    ((input + output / 2.0) as Tokens).clamp(1, server.batcher.max_model_len)
}

/// No more sequences than slots, nor than their contexts leave room for.
pub(super) fn most_sequences(server: &LlmServer, context: Tokens) -> u32 {
    let fit = server.kv.blocks / server.kv.blocks_for(context).max(1);
    server.batcher.max_num_seqs.min(fit).max(1)
}

fn finding(server: &LlmServer, decode: &Curve, scenario: &Scenario) -> String {
    let context = mean_context(scenario, server);
    let most = most_sequences(server, context);
    let terms = server.terms(&decode_shape(most, context, server.cost.window()).times(server.ranks()));
    let rate = decode.last().map_or(0.0, |pair| pair.1);
    format!(
        "Decode reaches {} tokens/s at batch {}; {} binds there",
        number(rate),
        count(u64::from(most) * u64::from(server.ranks())),
        Resource::binding(&terms).name()
    )
}
