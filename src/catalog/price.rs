//! What a GPU costs to rent: `prices.toml`, dated and sourced, so that its age can be told.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::CatalogError;
use super::files::File;

/// A rental price.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub usd_per_gpu_hour: f64,
    /// ISO year and month of the price, such as `2026-07`.
    pub date: String,
    pub source: String,
}

/// Whole months from the month of a price (`2026-07`) to the given one; `None` if the price is of a later month.
#[must_use]
pub fn age_months(date: &str, year: u32, month: u32) -> Option<u32> {
    let (of_year, of_month) = year_and_month(date)?;
    (year * 12 + month).checked_sub(of_year * 12 + of_month)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    usd_per_gpu_hour: f64,
    date: String,
    source: String,
}

/// Well beyond what anybody asks for a GPU.
const USD_PER_HOUR: (f64, f64) = (0.001, 1e5);

/// The price of `gpu`: that of the last of `files` that has one.
pub(super) fn find(files: &[File], gpu: &str) -> Result<Option<Price>, CatalogError> {
    let mut found = None;
    for file in files {
        let mut prices: BTreeMap<String, PriceTable> = file.parse("prices.toml")?;
        for (gpu, price) in &prices {
            check(gpu, price, file)?;
        }
        if let Some(PriceTable { usd_per_gpu_hour, date, source }) = prices.remove(gpu) {
            found = Some(Price { usd_per_gpu_hour, date, source });
        }
    }
    Ok(found)
}

fn check(gpu: &str, price: &PriceTable, file: &File) -> Result<(), CatalogError> {
    let PriceTable { usd_per_gpu_hour, date, .. } = price;
    file.within(&format!("{gpu}.usd_per_gpu_hour"), *usd_per_gpu_hour, USD_PER_HOUR)?;
    if year_and_month(date).is_some() {
        return Ok(());
    }
    let message = format!("`{gpu}.date` is {date:?}; expected a month such as \"2026-07\"");
    Err(file.invalid_in(&format!("{gpu}.date"), &message))
}

/// `2026-07`.
fn year_and_month(date: &str) -> Option<(u32, u32)> {
    let (year, month) = date.split_once('-')?;
    let (year, month) = (year.parse().ok()?, month.parse().ok()?);
    ((1970..10_000).contains(&year) && (1..=12).contains(&month)).then_some((year, month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_in_whole_months() {
        assert_eq!(age_months("2024-11", 2024, 11), Some(0));
        assert_eq!(age_months("2024-11", 2026, 2), Some(15));
        assert_eq!(age_months("2024-11", 2024, 10), None);
        for bad in ["2024", "2024-13", "24-11", "November 2024"] {
            assert_eq!(year_and_month(bad), None);
        }
    }
}
