//! The fixed names of the findings about P4_14, so that tools and tests can tell them apart.

/// Nothing of this name is declared.
pub(crate) const UNKNOWN_NAME: &str = "E1401";
/// The name is taken.
pub(crate) const DUPLICATE: &str = "E1402";
/// The name is the language's own, for another kind of thing.
pub(crate) const RESERVED: &str = "E1403";
/// The name means another kind of thing than is wanted.
pub(crate) const WRONG_KIND: &str = "E1404";
/// The header type has no such field.
pub(crate) const UNKNOWN_FIELD: &str = "E1405";
/// An action, control function or field list that leads back to itself.
pub(crate) const RECURSION: &str = "E1406";
/// The value must be known at compile time.
pub(crate) const NOT_CONSTANT: &str = "E1407";
/// A width, size or length out of bounds.
pub(crate) const BAD_SIZE: &str = "E1408";
/// The way from the parser to ingress, or `latest`, `next`, `last`, `current` where they mean nothing.
pub(crate) const PARSER: &str = "E1409";
/// A primitive action with the wrong arguments.
pub(crate) const ARGUMENTS: &str = "E1410";
/// An expression of the wrong type.
pub(crate) const TYPE: &str = "E1411";
/// A field list or calculation that cannot be used here.
pub(crate) const FIELD_LIST: &str = "E1412";
/// A table, or the cases after its application, against the rules.
pub(crate) const TABLE: &str = "E1413";
/// A counter, meter, register, profile or selector against the rules.
pub(crate) const OBJECT: &str = "E1414";
/// v1model has no such thing.
pub(crate) const ARCHITECTURE: &str = "E1415";
/// The program grows beyond a limit when it is unfolded.
pub(crate) const LIMIT: &str = "E1416";
/// Allowed, and most likely not what was meant.
pub(crate) const SUSPICIOUS: &str = "W1401";
