//! STF.
