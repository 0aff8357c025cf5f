//! Preprocessor, lexer and parser for P4_16, with spans and diagnostics.
