//! The date, for the age of prices. The library knows no clock; only what is printed depends on it.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;

/// Year and month (1 to 12) in UTC; `None` if the clock stands before 1970.
pub(super) fn year_and_month() -> Option<(u32, u32)> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    civil(seconds / SECONDS_PER_DAY)
}

/// Year and month of the day `days` after 1970-01-01: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`. Years begin in March, so that the leap day is the last of a year.
fn civil(days: u64) -> Option<(u32, u32)> {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    Some((u32::try_from(year).ok()?, u32::try_from(month).ok()?))
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_years_and_months() {
        for (days, expected) in [
            (0, (1970, 1)),
            (58, (1970, 2)),
            (59, (1970, 3)),
            (11_016, (2000, 2)),
            (11_017, (2000, 3)),
            (20_423, (2025, 12)),
            (20_454, (2026, 1)),
        ] {
            assert_eq!(civil(days), Some(expected), "{days}");
        }
    }
}
