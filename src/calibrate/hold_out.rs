//! Which cells are scored and not fitted.

use std::fmt;

use crate::rng::{Purpose, stream};
use crate::units::plain;
use crate::validate::{Cell, Load};

/// A rule that holds cells out.
#[derive(Clone, Debug, PartialEq)]
pub enum HoldOut {
    /// A random half of the cells.
    Half { seed: u64 },
    /// Cells of which a property lies in `from..=to`.
    Range { property: Property, from: f64, to: f64 },
}

/// What a cell can be held out by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    TensorParallelSize,
    InputTokens,
    OutputTokens,
    Concurrency,
}

impl Property {
    const ALL: [Self; 4] =
        [Self::TensorParallelSize, Self::InputTokens, Self::OutputTokens, Self::Concurrency];

    const fn key(self) -> &'static str {
        match self {
            Self::TensorParallelSize => "tensor_parallel_size",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Concurrency => "concurrency",
        }
    }

    fn of(self, cell: &Cell) -> Option<f64> {
        match self {
            Self::TensorParallelSize => Some(f64::from(cell.serving().tensor_parallel_size)),
            Self::InputTokens => Some(cell.mean_input_tokens),
            Self::OutputTokens => Some(cell.mean_output_tokens),
            Self::Concurrency => match cell.load {
                Load::Users(users) => Some(f64::from(users)),
                Load::Recorded | Load::RatePerS(_) | Load::AllAtOnce => None,
            },
        }
    }
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no rule for holding out; expected half:SEED, or tensor_parallel_size, input_tokens, \
     output_tokens or concurrency with a range, such as concurrency=32.. or input_tokens=..2000"
)]
pub struct HoldOutError(String);

impl std::str::FromStr for HoldOut {
    type Err = HoldOutError;

    fn from_str(text: &str) -> Result<Self, HoldOutError> {
        let refused = || HoldOutError(text.to_owned());
        if let Some(seed) = text.strip_prefix("half:") {
            return seed.parse().map(|seed| Self::Half { seed }).map_err(|_| refused());
        }
        let (key, range) = text.split_once('=').ok_or_else(refused)?;
        let property = Property::ALL.into_iter().find(|one| one.key() == key).ok_or_else(refused)?;
        let end = |text: &str, open: f64| match text {
            "" => Ok(open),
            number => number.parse::<f64>().map_err(|_| refused()),
        };
        let (from, to) = match range.split_once("..") {
            Some((from, to)) => (end(from, 0.0)?, end(to, f64::INFINITY)?),
            None if !range.is_empty() => (end(range, 0.0)?, end(range, 0.0)?),
            None => return Err(refused()),
        };
        // Neither a number that is none nor an end before the start holds anything.
        if from <= to { Ok(Self::Range { property, from, to }) } else { Err(refused()) }
    }
}

impl fmt::Display for HoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Half { seed } => write!(f, "a random half (seed {seed})"),
            Self::Range { property, from, to } if to.is_infinite() => {
                write!(f, "{} of at least {}", property.key(), plain(*from))
            }
            Self::Range { property, from, to } => {
                write!(f, "{} from {} to {}", property.key(), plain(*from), plain(*to))
            }
        }
    }
}

impl HoldOut {
    /// What `cells` have of what the rule asks for, in words.
    pub(super) fn of_loads(&self, cells: &[Cell]) -> String {
        let Self::Range { property, .. } = self else { return format!("loads: {}", cells.len()) };
        let values = || cells.iter().filter_map(|cell| property.of(cell));
        match (values().reduce(f64::min), values().reduce(f64::max)) {
            (Some(least), Some(most)) => format!("they have {} from {least} to {most}", property.key()),
            _ => format!("they have no {}", property.key()),
        }
    }

    /// (held out, fitted), each in the cells' order.
    pub(super) fn split(&self, cells: Vec<Cell>) -> (Vec<Cell>, Vec<Cell>) {
        match *self {
            Self::Range { property, from, to } => cells
                .into_iter()
                .partition(|cell| property.of(cell).is_some_and(|value| value >= from && value <= to)),
            Self::Half { seed } => {
                let mut draws = stream(seed, Purpose::HoldOut, 0);
                let mut order: Vec<(f64, usize)> =
                    (0..cells.len()).map(|index| (draws.uniform(), index)).collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0));
                let out: Vec<usize> = order.iter().take(cells.len() / 2).map(|(_, index)| *index).collect();
                let (held, fitted): (Vec<_>, Vec<_>) =
                    cells.into_iter().enumerate().partition(|(index, _)| out.contains(index));
                let cells = |pairs: Vec<(usize, Cell)>| pairs.into_iter().map(|(_, cell)| cell).collect();
                (cells(held), cells(fitted))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        assert_eq!("half:3".parse(), Ok(HoldOut::Half { seed: 3 }));
        let range = |from, to| HoldOut::Range { property: Property::Concurrency, from, to };
        assert_eq!("concurrency=32..".parse(), Ok(range(32.0, f64::INFINITY)));
        assert_eq!("concurrency=..8".parse(), Ok(range(0.0, 8.0)));
        assert_eq!("concurrency=4".parse(), Ok(range(4.0, 4.0)));
        for wrong in [
            "concurrency=32..8",
            "concurrency=nan..",
            "",
            "half",
            "half:x",
            "users=3",
            "concurrency",
            "concurrency=",
            "concurrency=a..",
        ] {
            assert!(wrong.parse::<HoldOut>().is_err(), "{wrong}");
        }
    }
}
