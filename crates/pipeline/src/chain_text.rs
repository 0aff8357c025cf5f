//! What a program wants packets to pass around it, at ports.

/// A chain of plugins at ports, as text: who runs the program knows what it means, nothing here does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChainText {
    /// Whether packets pass it after the program; else before it.
    pub is_output: bool,
    /// The ports and the chain: `0:filter "udp port 53"`.
    pub text: String,
}

impl ChainText {
    /// The direction, as it is written in the text form.
    pub fn direction(&self) -> &'static str {
        if self.is_output { "output" } else { "input" }
    }
}
