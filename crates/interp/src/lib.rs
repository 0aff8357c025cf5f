//! The reference interpreter of the pipeline IR: it defines what a program means.
