//! From the typed program to the pipeline IR, and the architecture models.
