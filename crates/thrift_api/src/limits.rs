//! The limits of messages. A server takes only short calls; a client takes an answer with all entries of the largest table.

use thrift::TConfiguration;

/// Largest message of a client, in bytes: a program, or one entry.
pub const MAX_MESSAGE: usize = 8 << 20;
/// Longest list of a client: fields of a key, parameters, rates.
pub const MAX_LIST: usize = 4096;
/// Deepest nesting of what a client sends.
pub const MAX_NESTING: usize = 16;

/// What a server takes: a call.
pub fn of_calls() -> TConfiguration {
    configuration(MAX_MESSAGE, Some(MAX_LIST))
}

/// What a client takes: an answer.
pub fn of_answers() -> TConfiguration {
    configuration(1 << 31, None)
}

fn configuration(message: usize, list: Option<usize>) -> TConfiguration {
    let limits = TConfiguration::builder()
        .max_message_size(Some(message))
        .max_frame_size(Some(message))
        .max_string_size(Some(message))
        .max_container_size(list)
        .max_recursion_depth(Some(MAX_NESTING));
    // A frame is not larger than a message: nothing to refuse.
    limits.build().unwrap_or_default()
}
