//! What a program sends out beside packets.

use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// What a program sends out beside packets, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Messages to the control plane.
    pub digests: Vec<DigestMessage>,
    /// Lines for the log.
    pub log: Vec<String>,
}

/// A message to the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestMessage {
    /// Its kind.
    pub digest: DigestId,
    /// The values of [`Digest::members`].
    pub values: Vec<Value>,
}

impl Effects {
    /// Adds what another one holds, behind what is there.
    pub fn append(&mut self, mut other: Effects) {
        self.digests.append(&mut other.digests);
        self.log.append(&mut other.log);
    }
}

/// A line for the log: the arguments where `{}` stands in the format, numbers in decimal. A `{}` without an argument
/// stays, an argument without a `{}` is left out.
pub fn format_log(format: &str, args: &[Value]) -> String {
    let mut line = String::with_capacity(format.len());
    let mut args = args.iter();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once("{}") {
        line.push_str(before);
        match args.next() {
            Some(Value::Bool(truth)) => line.push_str(if *truth { "true" } else { "false" }),
            Some(value) => line.push_str(&value.as_bits().to_biguint().to_string()),
            None => line.push_str("{}"),
        }
        rest = after;
    }
    line.push_str(rest);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_take_their_arguments_in_order() {
        let args = [Value::Bits(Bits::new(8, 7)), Value::Bool(true)];
        assert_eq!(format_log("a {} b {} c {}", &args), "a 7 b true c {}");
        assert_eq!(format_log("none", &args), "none");
        assert_eq!(format_log("{}{}", &args), "7true");
    }
}
