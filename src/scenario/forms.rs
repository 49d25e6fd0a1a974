//! The distributions that a scenario file can name, and their parameters, as data.

use super::keys::{Kind, NOT_NEGATIVE, POSITIVE, Range, UP_TO_ONE};

/// A distribution as it is written: its name and its parameters.
#[derive(Debug)]
pub struct Form {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
}

/// A parameter of a [`Form`].
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Its number has the unit of the distribution (so in a time its name ends in `_s`).
    pub has_unit: bool,
    pub required: bool,
    pub kind: Kind,
}

const fn with_unit(name: &'static str, range: Range) -> Parameter {
    Parameter { name, has_unit: true, required: true, kind: Kind::Number(range) }
}

const fn optional(name: &'static str, range: Range) -> Parameter {
    Parameter { required: false, ..with_unit(name, range) }
}

const fn plain(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, has_unit: false, required: true, kind }
}

/// The distributions a file can name.
pub static FORMS: &[Form] = &[
    Form { name: "constant", parameters: &[with_unit("value", NOT_NEGATIVE)] },
    Form { name: "uniform", parameters: &[with_unit("min", NOT_NEGATIVE), with_unit("max", POSITIVE)] },
    Form {
        name: "range_ratio",
        parameters: &[with_unit("mean", POSITIVE), plain("ratio", Kind::Number(UP_TO_ONE))],
    },
    Form { name: "exponential", parameters: &[with_unit("mean", POSITIVE)] },
    Form {
        name: "normal",
        parameters: &[
            with_unit("mean", POSITIVE),
            with_unit("std", NOT_NEGATIVE),
            optional("min", NOT_NEGATIVE),
            optional("max", POSITIVE),
        ],
    },
    Form {
        name: "lognormal",
        parameters: &[with_unit("mean", POSITIVE), with_unit("p99", POSITIVE), optional("max", POSITIVE)],
    },
    Form {
        name: "gamma",
        parameters: &[
            with_unit("mean", POSITIVE),
            plain("cv", Kind::Number(Range { min: 0.0, open: true, max: 1000.0 })),
        ],
    },
    Form {
        name: "zipf",
        parameters: &[
            // The whole distribution function is tabulated.
            plain("max", Kind::Integer { min: 1, max: 1 << 20 }),
            plain("exponent", Kind::Number(Range { min: 0.0, open: false, max: 100.0 })),
        ],
    },
    Form {
        name: "empirical",
        parameters: &[
            Parameter { name: "quantiles", has_unit: true, required: false, kind: Kind::Points },
            Parameter { name: "file", has_unit: false, required: false, kind: Kind::Text },
        ],
    },
];
