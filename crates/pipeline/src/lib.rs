//! The pipeline IR: types, builder, verifier, text form and passes.
