//! The answer, in every form it is read in: one file per output format.
//!
//! [`table`] is what a terminal shows, [`json`], [`csv`] and [`parquet`] are what programs read, [`chart`] is what a
//! projector shows, [`files`] puts them into a folder whole or not at all, and [`explain`] says why a
//! deployment is as fast as it is. All of them read the same folded view of a point ([`fold`]), so that no two
//! outputs can disagree, and none of them prints or exits.

pub mod chart;
pub mod csv;
pub mod explain;
pub mod files;
pub mod fold;
pub mod format;
pub mod grid;
pub mod imported;
pub mod json;
pub mod money;
pub mod parquet;
pub mod plan;
pub mod points;
pub mod provenance;
pub mod rank;
pub mod reading;
pub mod table;
pub mod validation;
