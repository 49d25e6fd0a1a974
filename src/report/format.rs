//! Numbers for people: three significant digits; beside an interval, the digits that the interval supports.

use crate::experiment::Estimate;
use crate::scenario::AxisValue;
use crate::units::Bytes;

/// What stands where a value is withheld or nobody had it.
pub const ABSENT: &str = "-";

const SIGNIFICANT: i32 = 3;
const BYTES_PER_GIB: f64 = 1_073_741_824.0;

/// The power of ten of the leading digit of `value`; 0 for zero.
fn magnitude(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    libm::floor(libm::log10(value.abs())) as i32
}

/// From here on a number is a row of digits that nobody reads; with more decimals than these, one of zeros.
const LONGEST: f64 = 1e15;
const MOST_DECIMALS: i32 = 12;

/// `value` rounded so that its last digit stands for 10^-`decimals`; negative `decimals` round before the point.
fn rounded(value: f64, decimals: i32) -> String {
    if value != 0.0 && (value.abs() >= LONGEST || decimals > MOST_DECIMALS) {
        return format!("{value:.2e}");
    }
    let decimals = decimals.min(MOST_DECIMALS);
    if decimals >= 0 {
        let digits = format!("{value:.*}", decimals as usize);
        let zero = digits.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
        return grouped(if zero { digits.trim_start_matches('-') } else { &digits });
    }
    let unit = libm::pow(10.0, f64::from(-decimals));
    // Adding zero takes the sign off a negative zero.
    grouped(&format!("{:.0}", libm::rint(value / unit) * unit + 0.0))
}

/// Puts a comma between groups of three digits before the point.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// Three significant digits: `0.0123`, `1.23`, `123`, `12,300`.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    rounded(value, SIGNIFICANT - 1 - magnitude(value))
}

/// Two significant digits: `8.0`, `13`, `0.52`.
#[must_use]
pub fn two_digits(value: f64) -> String {
    if value.is_finite() { rounded(value, 1 - magnitude(value)) } else { ABSENT.to_owned() }
}

/// Three significant digits without trailing zeros: loads, limits and other values that somebody chose.
#[must_use]
pub fn chosen(value: f64) -> String {
    if value == libm::rint(value) && value.abs() < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    let text = number(value);
    let has_zeros = text.contains('.') && !text.contains('e');
    if has_zeros { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A half-width below this share of its mean is noise of the arithmetic: nothing was drawn.
const NOISE: f64 = 1e-9;

/// The half-width that is printed beside the mean, if any.
fn half_width(estimate: &Estimate) -> Option<f64> {
    let printed = |half: &f64| half.is_finite() && *half > NOISE * estimate.mean.abs();
    estimate.half_width.filter(printed).filter(|_| estimate.mean.is_finite())
}

/// Decimals of a printed half-width: one digit below ten and two above, so that it never rounds to nothing.
fn half_width_decimals(half: f64) -> i32 {
    if half < 10.0 { -magnitude(half) } else { 1 - magnitude(half) }
}

/// The mean of an estimate where no half-width stands beside it: three significant digits, none beyond the last of
/// the half-width.
#[must_use]
pub fn mean(estimate: &Estimate) -> String {
    if !estimate.mean.is_finite() {
        return ABSENT.to_owned();
    }
    let by_mean = SIGNIFICANT - 1 - magnitude(estimate.mean);
    let by_half = half_width(estimate).map_or(by_mean, half_width_decimals);
    rounded(estimate.mean, by_mean.min(by_half))
}

/// `12.3 ±0.4`, both to the same place; without replications only the mean.
#[must_use]
pub fn interval(estimate: &Estimate) -> String {
    match half_width(estimate) {
        Some(half) => {
            let decimals = half_width_decimals(half);
            format!("{} ±{}", rounded(estimate.mean, decimals), rounded(half, decimals))
        }
        None => mean(estimate),
    }
}

/// An estimate in seconds as milliseconds.
#[must_use]
pub fn in_ms(estimate: &Estimate) -> Estimate {
    scaled(estimate, 1e3)
}

/// An estimate times a constant.
#[must_use]
pub fn scaled(estimate: &Estimate, factor: f64) -> Estimate {
    Estimate { mean: estimate.mean * factor, half_width: estimate.half_width.map(|half| half * factor) }
}

/// A fraction as per cent: one decimal, and 100 only where it is all of them.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let hundred = fraction * 100.0;
    if (99.95..100.0).contains(&hundred) {
        "99.9".to_owned()
    } else if hundred == libm::rint(hundred) || hundred >= 99.95 {
        format!("{hundred:.0}")
    } else {
        format!("{hundred:.1}")
    }
}

/// A count, grouped.
#[must_use]
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// GiB with two decimals, as vLLM prints them.
#[must_use]
pub fn gib(bytes: Bytes) -> String {
    grouped(&format!("{:.2}", bytes as f64 / BYTES_PER_GIB))
}

/// A signed number of bytes in GiB with two decimals.
#[must_use]
pub fn signed_gib(bytes: i64) -> String {
    grouped(&format!("{:.2}", bytes as f64 / BYTES_PER_GIB))
}

/// A latency in the unit that reads best: `850 us`, `43.1 ms`, `12.3 s`.
#[must_use]
pub fn latency(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{} us", number(seconds * 1e6))
    } else if seconds < 10.0 {
        format!("{} ms", number(seconds * 1e3))
    } else {
        format!("{} s", number(seconds))
    }
}

/// The value of an axis as its table shows it.
#[must_use]
pub fn axis_value(value: &AxisValue) -> String {
    match value {
        AxisValue::Integer(integer) => integer.to_string(),
        AxisValue::Float(float) => chosen(*float),
        AxisValue::Text(text) => text.clone(),
        AxisValue::Bool(flag) => flag.to_string(),
    }
}

/// `1 GPU`, `2 GPUs`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half_width: f64) -> Estimate {
        Estimate { mean, half_width: Some(half_width) }
    }

    #[test]
    fn three_significant_digits() {
        let cases = [
            (0.0, "0.00"),
            (0.012_345, "0.0123"),
            (1.234_5, "1.23"),
            (12.345, "12.3"),
            (123.45, "123"),
            (1234.5, "1,230"),
            (-1_234_567.0, "-1,230,000"),
            (1e300, "1.00e300"),
            (-2.345e-30, "-2.35e-30"),
            (f64::NAN, ABSENT),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected, "{value}");
        }
    }

    #[test]
    fn two_digits_keep_their_zero() {
        assert_eq!(two_digits(8.0), "8.0");
        assert_eq!(two_digits(12.6), "13");
        assert_eq!(two_digits(0.523), "0.52");
    }

    #[test]
    fn chosen_values_lose_no_digit_and_show_no_zeros() {
        assert_eq!(chosen(18.0), "18");
        assert_eq!(chosen(1500.0), "1,500");
        assert_eq!(chosen(2.50), "2.5");
        assert_eq!(chosen(3.052_631), "3.05");
        assert_eq!(chosen(1e300), "1.00e300");
    }

    #[test]
    fn a_mean_alone_keeps_three_digits_and_none_beyond_its_interval() {
        assert_eq!(mean(&estimate(48.53, 0.021)), "48.5");
        assert_eq!(mean(&estimate(412.3, 23.4)), "412");
        assert_eq!(mean(&estimate(312.4, 143.0)), "310");
    }

    #[test]
    fn a_mean_and_its_interval_end_at_the_same_place() {
        assert_eq!(interval(&estimate(12.345, 0.41)), "12.3 ±0.4");
        assert_eq!(interval(&estimate(412.3, 23.4)), "412 ±23");
        assert_eq!(interval(&estimate(1234.0, 8.0)), "1,234 ±8");
        assert_eq!(interval(&estimate(3012.0, 143.0)), "3,010 ±140");
        assert_eq!(interval(&estimate(48.53, 0.021)), "48.53 ±0.02");
        assert_eq!(interval(&estimate(-37.4, 14.2)), "-37 ±14");
        assert_eq!(interval(&estimate(0.2, 14.2)), "0 ±14");
        assert_eq!(interval(&estimate(-0.2, 14.2)), "0 ±14");
        assert_eq!(interval(&estimate(7.3, 143.0)), "10 ±140");
        assert_eq!(interval(&estimate(12.345, 1e-15)), "12.3");
        assert_eq!(interval(&Estimate { mean: 12.345, half_width: None }), "12.3");
    }

    #[test]
    fn a_hundred_per_cent_means_all() {
        assert_eq!(percent(1.0), "100");
        assert_eq!(percent(0.999_97), "99.9");
        assert_eq!(percent(0.953_4), "95.3");
        assert_eq!(percent(0.0), "0");
    }
}
