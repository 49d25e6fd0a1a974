//! The many names of one architecture: `meta-llama/Meta-Llama-3.1-8B-Instruct-FP8` is `llama-3.1-8b`
//! with fp8 weights.

use super::Dtype;

/// Suffixes that name a variant of the same architecture, and the weight format they stand for.
const SUFFIXES: &[(&str, Option<Dtype>)] = &[
    ("-instruct", None),
    ("-it", None),
    ("-chat", None),
    ("-hf", None),
    ("-base", None),
    ("-thinking", None),
    ("-dynamic", None),
    ("-block", None),
    ("-static", None),
    ("-pertensor", None),
    ("-bf16", Some(Dtype::Bf16)),
    ("-fp8", Some(Dtype::Fp8)),
    ("-int8", Some(Dtype::Int8)),
    ("-w8a8", Some(Dtype::Int8)),
    ("-quantized.w8a8", Some(Dtype::Int8)),
    ("-nvfp4", Some(Dtype::Nvfp4)),
    ("-fp4", Some(Dtype::Nvfp4)),
    ("-mxfp4", Some(Dtype::Mxfp4)),
    ("-awq", Some(Dtype::Int4)),
    ("-gptq", Some(Dtype::Int4)),
    ("-int4", Some(Dtype::Int4)),
    ("-gptq-int4", Some(Dtype::Int4)),
    ("-w4a16", Some(Dtype::Int4)),
    ("-quantized.w4a16", Some(Dtype::Int4)),
];

/// The name without organisation, `Meta-` prefix and variant suffixes, in lower case; and the weight
/// format that a suffix sets.
pub(super) fn canonical(name: &str) -> (String, Option<Dtype>) {
    let lower = name.rsplit('/').next().unwrap_or(name).trim().to_lowercase();
    let mut rest = lower.strip_prefix("meta-").unwrap_or(&lower);
    let mut dtype = None;
    loop {
        if let Some((short, variant)) = strip_known(rest) {
            rest = short;
            dtype = dtype.or(variant);
        } else if let Some(short) = strip_date(rest).or_else(|| strip_version(rest)) {
            rest = short;
        } else {
            return (rest.to_owned(), dtype);
        }
    }
}

fn strip_known(name: &str) -> Option<(&str, Option<Dtype>)> {
    SUFFIXES.iter().find_map(|(suffix, dtype)| Some((name.strip_suffix(suffix)?, *dtype)))
}

/// `-2507`, `-0528`: a release by year and month or month and day.
fn strip_date(name: &str) -> Option<&str> {
    let (rest, last) = name.rsplit_once('-')?;
    (last.len() == 4 && last.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

/// `-v0.3`: a release of the same architecture (Mistral). `-v3` is another model (DeepSeek).
fn strip_version(name: &str) -> Option<&str> {
    let (rest, last) = name.rsplit_once("-v0.")?;
    last.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_aliases_and_set_the_weight_format() {
        for (name, short, dtype) in [
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", None),
            ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b", Some(Dtype::Fp8)),
            ("nvidia/DeepSeek-R1-0528-NVFP4", "deepseek-r1", Some(Dtype::Nvfp4)),
            ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b", Some(Dtype::Fp8)),
            ("google/gemma-3-27b-it", "gemma-3-27b", None),
            ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b", None),
            ("deepseek-ai/DeepSeek-V3", "deepseek-v3", None),
            ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", Some(Dtype::Int4)),
            ("qwen3-14b", "qwen3-14b", None),
        ] {
            assert_eq!(canonical(name), (short.to_owned(), dtype), "{name}");
        }
    }
}
