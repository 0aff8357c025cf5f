//! Match engines and stateful objects, over byte strings and indices.
