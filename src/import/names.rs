//! GPUs and weight formats by the names that drivers, clouds, engines and tables give them.

use crate::catalog::Dtype;

/// The format of weights as engines and tables name it; `None` if it cannot be told.
pub(super) fn weight_dtype(name: &str) -> Option<Dtype> {
    let name = name.to_lowercase();
    Dtype::parse(&name).or(match name.as_str() {
        "fp16" | "bfloat16" | "float16" => Some(Dtype::Bf16),
        "fp8_block" => Some(Dtype::Fp8),
        "fp4" => Some(Dtype::Nvfp4),
        "awq" | "gptq" | "awq_marlin" | "gptq_marlin" | "w4a16" => Some(Dtype::Int4),
        _ => None,
    })
}

/// The catalog's key of a GPU as drivers, clouds and other tools name it.
pub(super) fn gpu_key(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let has = |word: &str| name.contains(word);
    let key = match () {
        () if has("h100") && has("pcie") => "h100-pcie",
        () if has("h100") && (has("sxm") || has("hbm3")) => "h100-sxm",
        () if has("h200") && !has("gh200") => "h200-sxm",
        () if has("gb200") => "gb200",
        () if has("b200") => "b200-sxm",
        () if has("b300") && !has("gb300") => "b300-sxm",
        () if has("a100") && has("pcie") => "a100-80-pcie",
        () if has("a100") && has("40") => "a100-40-sxm",
        () if has("a100") && has("80") => "a100-80-sxm",
        () if has("l40s") => "l40s",
        () if has("mi300x") => "mi300x",
        () if has("mi325x") => "mi325x",
        () if has("mi355x") => "mi355x",
        () if has("rtx") && has("pro") && has("6000") => "rtx-pro-6000",
        () if has("5090") => "rtx-5090",
        () if has("4090") => "rtx-4090",
        () => return None,
    };
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_goes_by_many_names_and_an_ambiguous_one_by_none() {
        for (name, key) in [
            ("NVIDIA-H100-80GB-HBM3", Some("h100-sxm")),
            ("h100_sxm", Some("h100-sxm")),
            ("H100 PCIe", Some("h100-pcie")),
            ("GH200-96GB", None),
            ("H100", None),
            ("A100-40GB-SXM", Some("a100-40-sxm")),
            ("b200_sxm", Some("b200-sxm")),
            ("RTX-PRO-6000", Some("rtx-pro-6000")),
        ] {
            assert_eq!(gpu_key(name), key, "{name}");
        }
    }
}
