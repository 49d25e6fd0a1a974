//! How far the simulator is from what was measured: for a terminal, for programs and for a projector.

mod chart;
mod fit;
mod json;
mod table;

pub use chart::chart;
pub use fit::fit;
pub use json::json;
pub use table::table;

use crate::validate::Scored;

/// Scored cells by the set they came from, in the order of the sets.
#[derive(Clone, Debug)]
pub struct SetErrors {
    pub name: String,
    pub scored: Vec<Scored>,
}
