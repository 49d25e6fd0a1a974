//! The names that a misspelt or shortened one was probably meant to be.
//!
//! People leave parts out (`h100`, `llama-70b`, `rate`), write separators their own way (`llama3-8b`), shorten
//! (`trtllm`, `tp`) and mistype, in this order of likelihood. Where several names are as likely, all are told, for who
//! asks for an `h100` may want any.

use std::cmp::Reverse;

use strsim::osa_distance;

/// As many as a reader can choose from.
const MOST: usize = 3;
/// Nothing longer is near to a name.
const LONGEST: usize = 64;

/// What other engines and tools call what has another name here.
const OTHER_NAMES: [(&str, &str); 24] = [
    ("tp_size", "tensor_parallel_size"),
    ("pp_size", "pipeline_parallel_size"),
    ("dp_size", "data_parallel_size"),
    ("ep", "enable_expert_parallel"),
    ("ep_size", "enable_expert_parallel"),
    ("max_batch_size", "max_num_seqs"),
    ("max_running_requests", "max_num_seqs"),
    ("max_num_tokens", "max_num_batched_tokens"),
    ("chunked_prefill_size", "max_num_batched_tokens"),
    ("max_seq_len", "max_model_len"),
    ("context_length", "max_model_len"),
    ("mem_fraction_static", "gpu_memory_utilization"),
    ("page_size", "block_size"),
    ("input_len", "input_tokens"),
    ("isl", "input_tokens"),
    ("prompt_tokens", "input_tokens"),
    ("output_len", "output_tokens"),
    ("osl", "output_tokens"),
    ("completion_tokens", "output_tokens"),
    ("qps", "rate_per_s"),
    ("bfloat16", "bf16"),
    ("float16", "bf16"),
    ("awq", "int4"),
    ("gptq", "int4"),
];

/// How a word is like a name, the likeliest first; and how much of the name it leaves out, or gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// The same letters and digits.
    Same,
    /// Parts of the name, in any order.
    Parts,
    /// The first letters of its parts, or most of its letters in their order.
    Short,
    /// So many letters are wrong.
    Mistyped(usize),
    /// All of the name, and more.
    Longer,
    /// So many parts are the name's, among others that are not.
    Shared(Reverse<usize>),
}

/// Those of `names` that `word` was probably meant to be, the likeliest first; at most three.
#[must_use]
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    best(names.into_iter().filter_map(|name| Some((likeness(word, name)?, name))).collect())
}

/// As [`nearest`], for names of products: `also` is what a product is called besides, and one that has only some parts
/// of `word` is better than none (`llama4`, `NVIDIA H100 80GB HBM3`).
#[must_use]
pub fn nearest_product<'a>(word: &str, names: impl IntoIterator<Item = (&'a str, String)>) -> Vec<&'a str> {
    let of = |(name, also): (&'a str, String)| {
        let spelt = [name, &also].into_iter();
        let like = spelt.filter_map(|name| likeness(word, name).or_else(|| shared(word, name))).min()?;
        Some((like, name))
    };
    best(names.into_iter().filter_map(of).collect())
}

/// The question whether one of `names` was meant; `None` without names.
#[must_use]
pub fn did_you_mean(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let (last, others) = quoted.split_last()?;
    let first = if others.is_empty() { String::new() } else { format!("{} or ", others.join(", ")) };
    Some(format!("did you mean {first}{last}?"))
}

/// The same for the middle of a message, with a blank behind it; empty without names.
#[must_use]
pub fn hint(names: &[&str]) -> String {
    did_you_mean(names).map_or_else(String::new, |question| question + " ")
}

fn best(mut found: Vec<(Likeness, &str)>) -> Vec<&str> {
    // Of versions of one name the last first.
    found.sort_by_key(|(like, name)| (*like, name.len(), Reverse(*name)));
    let Some((first, _)) = found.first().copied() else { return Vec::new() };
    found.into_iter().take_while(|(like, _)| *like == first).map(|(_, name)| name).take(MOST).collect()
}

fn likeness(word: &str, name: &str) -> Option<Likeness> {
    let (ours, theirs) = (parts(word), parts(name));
    let (short, long) = (ours.concat(), theirs.concat());
    if short.is_empty() {
        return None;
    }
    let is_other = |(other, of): &(&str, &str)| *of == name && parts(other).concat() == short;
    if short == long || OTHER_NAMES.iter().any(is_other) {
        return Some(Likeness::Same);
    }
    if common(&ours, &theirs) == ours.len() {
        return Some(Likeness::Parts);
    }
    if is_short_for(&short, &long, &theirs) {
        return Some(Likeness::Short);
    }
    // A third of the letters may be wrong.
    let wrong = osa_distance(&short, &long);
    if wrong <= short.chars().count() / 3 {
        return Some(Likeness::Mistyped(wrong));
    }
    (common(&theirs, &ours) == theirs.len() && long.len() > 2).then_some(Likeness::Longer)
}

/// More than half of the parts, or half of them and the first, a word.
fn shared(word: &str, name: &str) -> Option<Likeness> {
    let (ours, theirs) = (parts(word), parts(name));
    let same = common(&ours, &theirs);
    let is_family = ours.first() == theirs.first() && ours.first().is_some_and(|first| first.len() > 2);
    let enough = 2 * same > ours.len() || is_family && 2 * same == ours.len();
    enough.then_some(Likeness::Shared(Reverse(same)))
}

/// `tp` for `tensor_parallel_size`, `trtllm` for `tensorrt-llm`.
fn is_short_for(short: &str, long: &str, parts: &[String]) -> bool {
    let initials: String = parts.iter().filter_map(|part| part.chars().next()).collect();
    if short.len() > 1 && initials.starts_with(short) {
        return true;
    }
    let mut letters = long.chars();
    let in_order = short.chars().all(|letter| letters.any(|other| other == letter));
    in_order
        && short.len() > 3
        && short.chars().all(char::is_alphabetic)
        && 2 * short.len() >= long.len()
        && short.chars().next() == long.chars().next()
}

/// How many of `ours` are among `theirs`, each of which counts once.
fn common(ours: &[String], theirs: &[String]) -> usize {
    let mut left: Vec<&String> = theirs.iter().collect();
    let mut take =
        |part: &&String| left.iter().position(|other| other == part).map(|at| left.swap_remove(at));
    ours.iter().filter(|part| take(part).is_some()).count()
}

/// Runs of letters and of digits in lower case: `llama-3.1-8b` is llama, 3, 1, 8, b; gigabytes without their unit.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars().take(LONGEST).flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            match parts.last_mut() {
                Some(part) if before.is_alphanumeric() && before.is_numeric() == c.is_numeric() => {
                    part.push(c)
                }
                _ => parts.push(c.to_string()),
            }
        }
        before = c;
    }
    let is_unit = |at: usize| at > 0 && parts[at] == "gb" && parts[at - 1].chars().all(char::is_numeric);
    (0..parts.len()).filter(|at| !is_unit(*at)).map(|at| parts[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let keys = [
            "max_num_seqs",
            "max_num_batched_tokens",
            "max_model_len",
            "block_size",
            "tensor_parallel_size",
            "rate_per_s",
            "ttft_p99_ms",
            "ttft_p90_ms",
        ];
        for (word, expected) in [
            ("max_seqs", &["max_num_seqs"][..]),
            ("max_num_seq", &["max_num_seqs"]),
            ("max_num_batch_tokens", &["max_num_batched_tokens"]),
            ("--max-num-seqs", &["max_num_seqs"]),
            ("Block-Size", &["block_size"]),
            ("blok_size", &["block_size"]),
            ("tensor_paralel_size", &["tensor_parallel_size"]),
            ("rps", &["rate_per_s"]),
            ("rate", &["rate_per_s"]),
            ("qps", &["rate_per_s"]),
            ("max_batch_size", &["max_num_seqs"]),
            ("max_num_seqs_per_gpu", &["max_num_seqs"]),
            ("p99_ttft", &["ttft_p99_ms"]),
            ("ttft", &["ttft_p99_ms", "ttft_p90_ms"]),
            ("seqs_of", &[]),
            ("temperature", &[]),
            ("", &[]),
            ("___", &[]),
            ("x", &[]),
        ] {
            assert_eq!(nearest(word, keys), expected, "{word}");
        }
        assert!(nearest(&"max".repeat(100_000), keys).is_empty());
        for short in ["tp", "tp_size", "tensor_parallel"] {
            assert_eq!(nearest(short, ["pipeline_parallel_size", keys[4]]), [keys[4]], "{short}");
        }
    }

    #[test]
    fn engines() {
        let engines = ["vllm", "sglang", "tensorrt-llm", "synthetic"];
        for (word, expected) in [
            ("vLLM", &["vllm"][..]),
            ("vlm", &["vllm"]),
            ("SG-Lang", &["sglang"]),
            ("trtllm", &["tensorrt-llm"]),
            ("TRT-LLM", &["tensorrt-llm"]),
            ("TensorRT_LLM", &["tensorrt-llm"]),
            ("tensorrt", &["tensorrt-llm"]),
            ("sintetic", &["synthetic"]),
            ("tgi", &[]),
        ] {
            assert_eq!(nearest(word, engines), expected, "{word}");
        }
    }

    #[test]
    fn words_of_a_message() {
        assert_eq!(did_you_mean(&[]), None);
        assert_eq!(did_you_mean(&["a"]).as_deref(), Some("did you mean `a`?"));
        assert_eq!(did_you_mean(&["a", "b", "c"]).as_deref(), Some("did you mean `a`, `b` or `c`?"));
    }
}
