//! `[engine.speculative_config]`: speculative decoding by acceptance length.

use super::{Context, llm::found};
use crate::catalog::{Attention, Dtype, EngineDefaults, Model, Scheduler};
use crate::cost::Draft;
use crate::scenario::Speculative;
use crate::scenario::keys::{engine, speculative_config as keys};
use crate::scenario::problem::Problem;
use crate::scenario::reader::{Reader, Section};

/// What the table says; `None` without it, or if it is wrong.
pub(super) fn read<'d>(
    reader: &mut Reader<'d>,
    context: &Context<'_>,
    engine_section: &Section<'d>,
    model: &Model,
    weight_dtype: Dtype,
    defaults: &EngineDefaults,
) -> Option<Speculative> {
    engine_section.find(&engine::SPECULATIVE_CONFIG)?;
    let before = reader.problems.len();
    let section = reader.open(engine_section, &engine::SPECULATIVE_CONFIG, &keys::SPECULATIVE_CONFIG);
    let method = reader.choice(&section, &keys::METHOD);
    let drafts: Option<u32> = reader.integer(&section, &keys::NUM_SPECULATIVE_TOKENS);
    let mean = reader.number(&section, &keys::MEAN_ACCEPTANCE_LENGTH);
    let name = reader.text(&section, &keys::MODEL);
    if let Some(method) = method {
        check_method(reader, &section, method, model, defaults);
    }
    let (method, num_speculative_tokens, mean_acceptance_length) = (method?, drafts?, mean?);
    let longest = 1.0 + f64::from(num_speculative_tokens);
    if mean_acceptance_length > longest {
        let message = format!(
            "mean_acceptance_length = {mean_acceptance_length} with {num_speculative_tokens} drafted tokens"
        );
        let problem = Problem::new(section.place(&keys::MEAN_ACCEPTANCE_LENGTH), message);
        reader.problem(
            problem
                .label(format!("expected at most {longest}"))
                .help("the tokens that a step yields: the accepted drafts and the one that the model adds"),
        );
        return None;
    }
    let draft = match (method, name) {
        ("draft_model", Some(name)) => Some(draft_model(reader, context, &section, model, &name)?),
        ("draft_model", None) => {
            reader.missing(&section, &keys::MODEL);
            return None;
        }
        (_, Some(_)) => {
            let message = format!("`model` with method = \"{method}\"");
            let problem = Problem::new(section.place(&keys::MODEL), message);
            reader.problem(problem.label("only draft_model takes a model from the catalog: leave it out"));
            return None;
        }
        ("ngram", None) => None,
        // A module of the checkpoint, in its format.
        ("mtp", None) => Some(Draft::prediction_layer_of(model, weight_dtype)),
        (method, None) => Some(Draft::eagle_head_of(model, method == "eagle3")),
    };
    if reader.problems.len() > before {
        return None;
    }
    Some(Speculative { method, num_speculative_tokens, mean_acceptance_length, draft })
}

/// The first versions whose V1 engine takes a method, as far as they refuse it before: `_is_v1_supported_oracle`
/// of 0.8 knows n-grams and EAGLE alone and falls back to the V0 engine with others; 0.9 knows EAGLE-3 and
/// DeepSeek's MTP too; up to 0.13 a draft model is a `NotImplementedError`.
const SINCE: [(&str, &str); 3] = [("eagle3", "0.9"), ("mtp", "0.9"), ("draft_model", "0.14")];

/// Whether the model has, and the version takes, what the method needs. Whether there is an EAGLE head for a model
/// is not known here.
fn check_method(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    method: &str,
    model: &Model,
    defaults: &EngineDefaults,
) {
    let place = section.place(&keys::METHOD);
    let since = SINCE.iter().find(|(of, _)| *of == method).map(|(_, since)| *since);
    if let Some(since) =
        since.filter(|since| defaults.scheduler == Scheduler::Vllm && !defaults.is_from(since))
    {
        let EngineDefaults { engine, version, .. } = defaults;
        let message = format!("{engine} {version} does not take method = \"{method}\"");
        reader.problem(Problem::new(place, message).label(format!("it is possible from {since} on")));
    }
    if method == "mtp" && model.mtp_layers == 0 {
        let message = format!("{} has no layer for multi-token prediction", model.name);
        let help = "another method: \"eagle\", \"eagle3\", \"draft_model\" or \"ngram\"";
        let label = "\"mtp\" drafts with a layer of the model's own checkpoint";
        reader.problem(Problem::new(place, message).label(label).help(help));
    }
}

fn draft_model(
    reader: &mut Reader<'_>,
    context: &Context<'_>,
    section: &Section<'_>,
    target: &Model,
    name: &str,
) -> Option<Draft> {
    let place = section.place(&keys::MODEL);
    let result = context.lookups.model(context.catalog, reader.folder(place), name);
    let (model, variant) = found(reader, place, result)?;
    if model.vocab_size != target.vocab_size {
        let message = "Target and draft model should have the same vocabulary size".to_owned();
        let label =
            format!("{} has {}, {} has {}", model.name, model.vocab_size, target.name, target.vocab_size);
        reader.problem(Problem::new(place, message).label(label));
        return None;
    }
    let weight_dtype = variant.unwrap_or(model.native_weight_dtype);
    Some(Draft::whole(model, weight_dtype))
}

/// Whether what overlaps or speculates can do so on this engine with this model.
pub(super) fn check(
    reader: &mut Reader<'_>,
    engine_section: &Section<'_>,
    scheduler: &Scheduler,
    model: &Model,
    stages: u32,
    static_batches: bool,
) {
    let speculates = engine_section.find(&engine::SPECULATIVE_CONFIG).is_some();
    let mut refuse = |key, message: String, label: &str| {
        reader.problem(Problem::new(engine_section.place(key), message).label(label));
    };
    if stages > model.layer_count() {
        let message = format!(
            "the {} layers of {} cannot be split over {stages} stages",
            model.layer_count(),
            model.name
        );
        refuse(&engine::PIPELINE_PARALLEL_SIZE, message, "expected at most one stage per layer");
    }
    let has_state = model.layers.iter().any(|group| matches!(group.attention, Attention::Linear { .. }));
    if speculates && has_state {
        let message = format!("speculation with the recurrent state of {} is not built yet", model.name);
        refuse(&engine::SPECULATIVE_CONFIG, message, "leave it out");
    }
    if speculates && stages > 1 {
        let message = "speculation through pipeline stages is not built yet".to_owned();
        refuse(&engine::SPECULATIVE_CONFIG, message, "only without `pipeline_parallel_size`");
    }
    for (key, given) in
        [(&engine::PIPELINE_PARALLEL_SIZE, stages > 1), (&engine::SPECULATIVE_CONFIG, speculates)]
    {
        if given && *scheduler != Scheduler::Vllm {
            refuse(key, format!("`engine.{}` is built for vllm only", key.name), "leave it out");
        } else if given && static_batches {
            refuse(key, format!("`engine.{}` with static batches", key.name), "leave it out");
        }
    }
}
