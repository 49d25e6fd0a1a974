//! The inverse of the standard normal distribution function.

/// The `p`-quantile of the standard normal distribution, to about 1e-16 of its value.
///
/// `-inf` and `inf` at 0 and 1, NaN outside [0, 1].
///
/// Algorithm AS 241 (PPND16): M. J. Wichura, "The percentage points of the normal distribution",
/// Applied Statistics 37 (1988) 477-484. Rational approximations of degree 7 in three regions.
#[must_use]
pub fn inverse_normal_cdf(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRAL);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return if tail == 0.0 { f64::INFINITY.copysign(q) } else { f64::NAN };
    }
    let r = libm::sqrt(-libm::log(tail));
    let magnitude = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &FAR) };
    magnitude.copysign(q)
}

/// Coefficients of numerator and denominator, the constant term first.
type Rational = ([f64; 8], [f64; 8]);

#[inline]
fn ratio(r: f64, (numerator, denominator): &Rational) -> f64 {
    horner(r, numerator) / horner(r, denominator)
}

#[inline]
fn horner(r: f64, coefficients: &[f64; 8]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * r + c)
}

/// `|p - 0.5| <= 0.425`
#[expect(clippy::excessive_precision, reason = "the digits as published")]
const CENTRAL: Rational = (
    [
        3.387_132_872_796_366_608_0,
        133.141_667_891_784_377_45,
        1_971.590_950_306_551_442_7,
        13_731.693_765_509_461_125,
        45_921.953_931_549_871_457,
        67_265.770_927_008_700_853,
        33_430.575_583_588_128_105,
        2_509.080_928_730_122_672_7,
    ],
    [
        1.0,
        42.313_330_701_600_911_252,
        687.187_007_492_057_908_30,
        5_394.196_021_424_751_107_7,
        21_213.794_301_586_595_867,
        39_307.895_800_092_710_610,
        28_729.085_735_721_942_674,
        5_226.495_278_852_854_561_0,
    ],
);

/// `sqrt(-ln(tail)) <= 5`, shifted by 1.6
#[expect(clippy::excessive_precision, reason = "the digits as published")]
const MIDDLE: Rational = (
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_90,
        5.769_497_221_460_691_405_50,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_70e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_40e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_40,
        6.897_673_349_851_000_045_50e-1,
        1.481_039_764_274_800_745_90e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946_00e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
);

/// Beyond, shifted by 5
#[expect(clippy::excessive_precision, reason = "the digits as published")]
const FAR: Rational = (
    [
        6.657_904_643_501_103_777_20,
        5.463_784_911_164_114_369_90,
        1.784_826_539_917_291_335_80,
        2.965_605_718_285_048_912_30e-1,
        2.653_218_952_657_612_309_30e-2,
        1.242_660_947_388_078_438_60e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_90e-1,
        1.369_298_809_227_358_053_10e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591_00e-4,
        1.846_318_317_510_054_681_80e-5,
        1.421_511_758_316_445_888_70e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
);

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;

    /// The values that Wichura's paper gives for checking an implementation.
    #[test]
    fn agrees_with_the_published_check_values() {
        for (p, z) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_814),
            (1e-20, -9.262_340_089_798_408),
        ] {
            assert!((inverse_normal_cdf(p) / z - 1.0).abs() < 4e-16, "p = {p}");
        }
    }

    #[test]
    fn inverts_the_distribution_function() {
        for exponent in 1..=300 {
            let p = libm::exp10(-f64::from(exponent));
            let z = inverse_normal_cdf(p);
            let back = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
            // A relative error e of z, or of erfc's argument, becomes z^2 e of the tail.
            assert!((back / p - 1.0).abs() < 1e-15 * (2.0 + z * z), "p = {p}: {back}");
        }
    }

    #[test]
    fn agrees_with_statrs() {
        let normal = Normal::standard();
        for k in 1..2_000 {
            let p = f64::from(k) / 2_000.0;
            let (ours, theirs) = (inverse_normal_cdf(p), normal.inverse_cdf(p));
            assert!((ours - theirs).abs() <= 2e-15 * theirs.abs().max(1.0), "p = {p}: {ours} {theirs}");
        }
    }

    #[test]
    fn is_odd_and_has_its_ends() {
        for k in 1..512 {
            let p = f64::from(k) / 1024.0;
            assert_eq!(inverse_normal_cdf(p), -inverse_normal_cdf(1.0 - p));
        }
        assert_eq!(inverse_normal_cdf(0.5), 0.0);
        assert_eq!(inverse_normal_cdf(0.0), f64::NEG_INFINITY);
        assert_eq!(inverse_normal_cdf(1.0), f64::INFINITY);
        for p in [-0.1, 1.1, f64::NAN] {
            assert!(inverse_normal_cdf(p).is_nan(), "{p}");
        }
    }
}
