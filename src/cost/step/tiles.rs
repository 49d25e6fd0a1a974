//! Tiles: fp8 matrices are multiplied in blocks of rows, and a block takes as long with one row as with all.
//!
//! vLLM's fp8 kernels have one shape of tile up to 16 rows, one up to 64, and tiles of 128 rows above. The operator
//! tables show it as steps: on H200 17 to 64 rows take 1.1 times as long as 1 to 16, 65 to 128 1.2 times, and 129 and
//! 256 both 1.7 to 1.9 times. With whole tiles the tables need no `half_tokens` (0 to 3 rows), and the median error of a
//! fit to them falls from 14.0 to 12.4 % on H200, from 12.5 to 11.4 on H100. bf16 matrices choose among many
//! small tiles and are better off without (H200: 5.3 %, with tiles 6.2), those in nvfp4 indifferent.

use crate::catalog::{Dtype, Hardware};

/// Rows of a tile of matrices with more than 64.
const LARGE: u32 = 128;

/// Whether matrices of weights stored as `dtype` are multiplied in such tiles.
pub(super) fn are_padded(dtype: Dtype, hardware: &Hardware) -> bool {
    dtype == Dtype::Fp8 && hardware.fp8_flops.is_some()
}

/// Rows by which `tokens` rows fall short of whole tiles.
#[inline]
pub(super) const fn padding(tokens: u32) -> u32 {
    let rows = match tokens {
        0 => 0,
        1..=16 => 16,
        17..=64 => 64,
        _ => tokens.saturating_add(LARGE - 1) / LARGE * LARGE,
    };
    rows.saturating_sub(tokens)
}

#[cfg(test)]
mod tests {
    use super::padding;

    #[test]
    fn tiles_have_16_64_and_128_rows() {
        let rows = |tokens: u32| tokens + padding(tokens);
        assert_eq!(
            [0, 1, 16, 17, 64, 65, 128, 129, 1000].map(rows),
            [0, 16, 16, 64, 64, 128, 128, 256, 1024]
        );
        assert_eq!(padding(u32::MAX), 0, "more than fit a number are not padded");
    }
}
