//! Why the catalog could not answer.

/// Why something was not found or not usable in the catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("no {kind} named `{name}`; {hint}")]
    NotFound { kind: &'static str, name: String, hint: String },
    /// It is known, and this is why it cannot be simulated.
    #[error("{what} cannot be simulated: {reason}")]
    Refused { what: String, reason: String },
    /// A profile that was asked for by name has no values for what is served.
    #[error("profile `{profile}` has no values for {wanted}; it has: {has}")]
    NoValues { profile: String, wanted: String, has: String, instead: String },
    #[error("{path}: {message}")]
    Invalid { path: String, message: String },
}
