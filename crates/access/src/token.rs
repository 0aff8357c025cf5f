//! Bearer tokens: secrets of clients that have no certificate.

use crate::secret::{SecretError, read_secret};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use std::fmt;
use std::path::Path;
use subtle::{Choice, ConstantTimeEq};

/// Fewest bytes of a token: one that is shorter can be guessed.
pub const MIN_TOKEN: usize = 16;
/// Most bytes of a token.
pub const MAX_TOKEN: usize = 1024;
/// Most bytes of its file, with blanks and ends of lines around it.
pub const MAX_TOKEN_FILE: u64 = 2 * MAX_TOKEN as u64;

/// A token, of which only its hash is kept.
#[derive(Clone)]
pub struct Token([u8; SHA256_OUTPUT_LEN]);

/// Why there is no token.
#[derive(Debug)]
pub enum TokenError {
    /// It has fewer than [`MIN_TOKEN`] or more than [`MAX_TOKEN`] bytes.
    Length(usize),
    /// It has a character that no header can have.
    Character,
    /// Its file cannot be read, or others may read it, too.
    File(SecretError),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Length(length) => {
                write!(f, "a token has {MIN_TOKEN} to {MAX_TOKEN} bytes, not {length}")
            }
            TokenError::Character => {
                f.write_str("a token has letters, digits and signs of ASCII, and no blanks")
            }
            TokenError::File(SecretError::File(error)) => write!(f, "the token cannot be read: {error}"),
            TokenError::File(SecretError::Exposed(exposed)) => exposed.fmt(f),
        }
    }
}

impl std::error::Error for TokenError {}

impl Token {
    /// Of its text.
    ///
    /// # Errors
    /// [`TokenError::Length`], [`TokenError::Character`].
    pub fn new(text: &[u8]) -> Result<Token, TokenError> {
        if !(MIN_TOKEN..=MAX_TOKEN).contains(&text.len()) {
            return Err(TokenError::Length(text.len()));
        }
        match text.iter().all(u8::is_ascii_graphic) {
            true => Ok(Token::presented(text)),
            false => Err(TokenError::Character),
        }
    }

    /// Of a file that holds it alone; blanks and ends of lines around it do not count.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let text = read_secret(path, MAX_TOKEN_FILE).map_err(TokenError::File)?;
        Token::new(text.trim_ascii())
    }

    /// What a client presents as its token, whatever it is.
    pub fn presented(text: &[u8]) -> Token {
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, text).as_ref());
        Token(hash)
    }

    /// Whether both are one, found out in a time that does not depend on where they differ.
    pub(crate) fn is(&self, other: &Token) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for Token {
    /// Without the hash.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_comes_from_a_file() {
        let path = std::env::temp_dir().join(format!("millrace-token-{}", std::process::id()));
        std::fs::write(&path, "  0123456789abcdef\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let refused = Token::read(&path).unwrap_err().to_string();
        assert!(refused.contains("(mode 0644)"), "{refused}");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let token = Token::read(&path).unwrap();
        assert!(bool::from(token.is(&Token::presented(b"0123456789abcdef"))));
        assert!(!bool::from(token.is(&Token::presented(b"0123456789abcdeF"))));
        assert_eq!(format!("{token:?}"), "Token");
        for (text, refused) in [("short", true), ("0123456789 abcdef", true), ("0123456789abcdef", false)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Token::read(&path).is_err(), refused, "{text}");
        }
        std::fs::write(&path, "a".repeat(MAX_TOKEN + 1)).unwrap();
        assert!(matches!(Token::read(&path), Err(TokenError::Length(_))));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(Token::read(&path), Err(TokenError::File(_))));
    }
}
