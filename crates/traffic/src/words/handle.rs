//! Handles as text; [`Handle`] shows itself.

use crate::plan::Handle;

/// A handle, such as `1:` or `1:2`: a discipline, or a class of it. Both numbers are hexadecimal, and the first is not 0.
pub(super) fn read(text: &str) -> Result<Handle, String> {
    let no = || format!("`{text}` is no handle, such as 1: or 1:2 in hexadecimal numbers");
    let part = |text: &str| match text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => u16::from_str_radix(text, 16).map_err(|_| no()),
        false => Err(no()),
    };
    let (major, minor) = text.split_once(':').ok_or_else(no)?;
    let (major, minor) = (part(major)?, if minor.is_empty() { 0 } else { part(minor)? });
    if major == 0 { Err(no()) } else { Ok(Handle::new(major, minor)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_hexadecimal() {
        assert_eq!(read("10:1f"), Ok(Handle::new(16, 31)));
        assert_eq!(
            (Handle::new(16, 31).to_string(), read("a:").unwrap().to_string()),
            ("10:1f".into(), "a:".into())
        );
        for text in ["", "1", ":1", "0:", "1:2:3", "+1:", "g:", "10000:", "1:10000"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
