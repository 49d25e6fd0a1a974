//! Isotonic regression: the non-decreasing curve nearest to noisy points.
//!
//! Latency does not fall as load rises; where neighbouring points of a sweep say so, it is sampling
//! noise. Pooling them keeps one noisy point from deciding where a knee or a limit lies.

/// The non-decreasing sequence with the least sum of squared differences to `values`, by pooling
/// adjacent violators (Barlow, Bartholomew, Bremner and Brunk, "Statistical inference under order
/// restrictions", 1972).
#[must_use]
pub fn non_decreasing(values: &[f64]) -> Vec<f64> {
    // Blocks of (sum, length) with increasing means.
    let mut blocks: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for &value in values {
        let mut block = (value, 1);
        while let Some(&(sum, length)) = blocks.last()
            && sum / length as f64 > block.0 / block.1 as f64
        {
            block = (block.0 + sum, block.1 + length);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.iter().flat_map(|&(sum, length)| std::iter::repeat_n(sum / length as f64, length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_adjacent_violators() {
        assert_eq!(non_decreasing(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(non_decreasing(&[3.0, 2.0, 1.0]), [2.0; 3]);
        assert_eq!(non_decreasing(&[1.0, 2.0, 2.0, 5.0]), [1.0, 2.0, 2.0, 5.0]);
        assert!(non_decreasing(&[]).is_empty());
    }
}
