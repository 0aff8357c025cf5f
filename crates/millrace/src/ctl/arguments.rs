//! Names, ends of links and shares as they are written on the command line.

use millrace_device_file::{MAX_NAME, MAX_PORT_NUMBER};

/// Millionths in a percent.
const PERCENT: u32 = 10_000;

/// A name, as the file of a device has it.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match begins && text.len() <= MAX_NAME && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "a name has letters, digits, `_`, `-` and `.`, begins with a letter, a digit or `_`, and has at most {MAX_NAME} bytes (MAX_NAME)"
        )),
    }
}

/// An end of a link: `SWITCH:PORT`.
pub(super) fn end(text: &str) -> Result<String, String> {
    let Some((switch, port)) = text.rsplit_once(':') else {
        return Err("the form is SWITCH:PORT".to_owned());
    };
    name(switch)?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u64>() {
        Ok(number) if is_number && number <= MAX_PORT_NUMBER => Ok(text.to_owned()),
        _ => Err(format!("a port is a number up to {MAX_PORT_NUMBER} (MAX_PORT_NUMBER)")),
    }
}

/// A share in percent, with or without its sign, in millionths. What is not whole in these is refused.
pub(super) fn millionths(text: &str) -> Result<u32, String> {
    let no = || "a share in percent from 0 to 100 is expected, such as 0.5%, with at most 4 digits after the point";
    let digits = text.strip_suffix('%').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !are_digits(whole, 3) || !are_digits(part, 4) {
        return Err(no().to_owned());
    }
    let number = |text: &str| text.parse::<u32>().map_err(|_| no().to_owned());
    let millionths = number(whole)? * PERCENT + number(&format!("{part:0<4}"))?;
    if millionths > 100 * PERCENT { Err(no().to_owned()) } else { Ok(millionths) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_device_file::{DeviceFile, Kind, toml_string};

    #[test]
    fn ends_are_a_switch_and_a_port() {
        for right in ["l2:0", "l2:65535", "a.b-c_d:1", "_x:00"] {
            assert_eq!(end(right).as_deref(), Ok(right));
        }
        let long = format!("{}:1", "x".repeat(MAX_NAME + 1));
        for wrong in
            ["l2", "l2:", ":1", "l2:+1", "l2:-1", "l2:65536", "l2:1:2", "l 2:1", "-a:1", "\":1", &long]
        {
            assert!(end(wrong).is_err(), "{wrong}");
        }
        assert!(name("../x").is_err() && name("").is_err() && name("a/b").is_err());
    }

    #[test]
    fn shares_are_exact() {
        for (text, value) in [
            ("0", 0),
            ("0.5%", 5000),
            ("1%", 10_000),
            ("12.0001", 120_001),
            ("100%", 1_000_000),
            ("100.0000%", 1_000_000),
        ] {
            assert_eq!(millionths(text), Ok(value), "{text}");
        }
        for wrong in
            ["", "%", "-1", "+1", "1.", ".5", "100.0001", "101%", "0.00001", "1%%", "1e1", "9999999999"]
        {
            assert!(millionths(wrong).is_err(), "{wrong}");
        }
    }

    /// Whatever a value holds, it stays one value: it cannot begin another key. Control characters are what is wrong with it then.
    #[test]
    fn texts_are_strings_of_toml() {
        let file = |text: &str| format!("[[port]]\nname = \"p0\"\ndevice = {}\n", toml_string(text));
        for text in
            ["packet:veth0", "packet:a\" queues = 9 x = \"", "packet:\\", "packet:\\\"", "packet:größer"]
        {
            let read = DeviceFile::parse("a.toml", &file(text)).unwrap();
            assert_eq!((read.ports[0].device.as_str(), read.ports[0].queues), (text, 1), "{text}");
        }
        for text in ["a\"\nqueues = 9\nx = \"", "\t", "\u{0}", "\u{1f}\u{7f}", "\u{85}"] {
            let problems = DeviceFile::parse("a.toml", &file(text)).unwrap_err().problems;
            assert_eq!(
                (problems.len(), problems[0].kind, problems[0].place.line),
                (1, Kind::Value, 3),
                "{text:?}"
            );
        }
    }
}
