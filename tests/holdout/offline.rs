//! Offline throughputs that NVIDIA publishes for TensorRT-LLM: all requests are there from the start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Models as the file and as the catalog write them.
const MODELS: [(&str, &str); 3] = [
    ("meta-llama/Llama-3.1-405B-Instruct", "llama-3.1-405b"),
    ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
    ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"),
];
/// Requests where the file does not say.
const REQUESTS: &str = "1000";

/// Entries of a measurement set: the throughputs of 1.0 on `gpu` (as the file writes it) in fp8. Of a model's the first
/// is held out if `is_held_out(0)`, and so on.
pub fn entries(gpu: &str, is_held_out: impl Fn(usize) -> bool, file: &Path) -> String {
    let mut table =
        csv::Reader::from_path(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut models: BTreeMap<&str, usize> = BTreeMap::new();
    let mut text = String::new();
    for row in table.deserialize() {
        let row: BTreeMap<String, String> = row.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let of = |name: &str| row.get(name).map_or("", String::as_str);
        let is_offline = of("source") == "tensorrt-llm-perf-overview" && of("engine_version") == "1.0";
        let plain = of("gpu") == gpu && of("weight_dtype") == "fp8" && !of("notes").contains("attention-DP");
        let model = MODELS.iter().find(|(name, _)| *name == of("model"));
        let (true, true, Some((_, model))) = (is_offline, plain, model) else { continue };
        let place = models.entry(model).or_default();
        let holdout = is_held_out(*place);
        *place += 1;
        let requests = if of("n_requests").is_empty() { REQUESTS } else { of("n_requests") };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[measurement]]\n\
             name = \"{model}-fp8 TP{tp} offline\"\n\
             source = \"NVIDIA, TensorRT-LLM performance overview\"\n\
             holdout = {holdout}\n\
             [measurement.model]\nname = \"{model}\"\nweight_dtype = \"fp8\"\n\
             [measurement.engine]\nname = 'tensorrt-llm'\nversion = '1.0'\nkv_cache_dtype = 'fp8'\n\
             max_num_batched_tokens = 33000\ntensor_parallel_size = {tp}\n\
             [[measurement.point]]\narrival = \"all_at_once\"\ncompleted = {requests}\n\
             input_tokens_mean = {input}\noutput_tokens_mean = {output}\nrequests_per_s = {rate}\n",
            tp = of("tp"),
            input = of("isl_mean"),
            output = of("osl_mean"),
            rate = of("req_s"),
        );
    }
    text
}
