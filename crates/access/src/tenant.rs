//! Names of tenants.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Most bytes in the name of a tenant.
pub const MAX_TENANT_NAME: usize = 64;

/// Who has devices: letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

/// A text is no name of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantError(String);

impl fmt::Display for TenantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TenantError(text) = self;
        write!(f, "`{text}` is no name of a tenant: 1 to {MAX_TENANT_NAME} letters, digits, `-`, `_` and `.`")
    }
}

impl std::error::Error for TenantError {}

impl Tenant {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tenant {
    type Err = TenantError;

    fn from_str(text: &str) -> Result<Tenant, TenantError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = (1..=MAX_TENANT_NAME).contains(&text.len()) && text.bytes().all(is_plain);
        match fits {
            true => Ok(Tenant(text.into())),
            false => Err(TenantError(
                text.chars().take(MAX_TENANT_NAME + 1).flat_map(char::escape_debug).collect(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!("red-1.a_B".parse::<Tenant>().unwrap().name(), "red-1.a_B");
        assert!("a".repeat(MAX_TENANT_NAME).parse::<Tenant>().is_ok());
        for text in
            ["", "a b", "a/b", "é", "\x1b[2J", &"a".repeat(MAX_TENANT_NAME + 1), &"\n".repeat(100_000)]
        {
            let error = text.parse::<Tenant>().unwrap_err().to_string();
            assert!(error.len() < 400 && !error.contains(['\x1b', '\n']), "{error}");
        }
    }
}
