//! Files that hold secrets: tokens, and private keys.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What group and others may do with a file of a user: nothing.
const OF_A_USER: u32 = 0o077;
/// What they may not do with a file of root, whose group may be the one of those who read it.
const OF_ROOT: u32 = 0o037;
/// The bits of a mode that say who may do what.
const PERMISSIONS: u32 = 0o7777;

/// Why there is no secret.
#[derive(Debug)]
pub enum SecretError {
    /// The file cannot be read.
    File(io::Error),
    /// Its permissions do not keep it secret.
    Exposed(Exposed),
}

/// A file whose permissions do not keep it secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    mode: u32,
    is_of_root: bool,
    /// As a shell reads it.
    path: String,
}

impl Exposed {
    /// Whether it is, by the rule that PostgreSQL has for the keys of its server: the group may read a file of root, and nobody but its owner
    /// a file of another user. What is no file is not looked at: who sees the other end of a pipe, the system says in another way.
    fn of(path: &Path, about: &Metadata) -> Option<Exposed> {
        let (mode, is_of_root) = (about.mode() & PERMISSIONS, about.uid() == 0);
        let forbidden = if is_of_root { OF_ROOT } else { OF_A_USER };
        let is_exposed = about.is_file() && mode & forbidden != 0;
        is_exposed.then(|| Exposed { mode, is_of_root, path: word(path) })
    }
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exposed { mode, is_of_root, path } = self;
        let mended = if *is_of_root { "o=,g-wx" } else { "go=" };
        write!(f, "others may read or change it (mode {mode:04o}), so it is no secret: chmod {mended} {path}")
    }
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretError::File(error) => error.fmt(f),
            SecretError::Exposed(exposed) => exposed.fmt(f),
        }
    }
}

impl std::error::Error for SecretError {}

impl From<io::Error> for SecretError {
    fn from(error: io::Error) -> SecretError {
        SecretError::File(error)
    }
}

/// A path as a word of a shell.
fn word(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%:,".contains(&byte);
    match !path.starts_with('-') && path.bytes().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Reads a secret of at most so many bytes from its file, which nobody else may read.
///
/// # Errors
/// [`SecretError`].
pub fn read_secret(path: &Path, limit: u64) -> Result<Vec<u8>, SecretError> {
    let (secret, exposed) = read_exposed_secret(path, limit)?;
    exposed.map_or(Ok(secret), |exposed| Err(SecretError::Exposed(exposed)))
}

/// As [`read_secret`], also where others may read it; says that they may.
///
/// # Errors
/// The file cannot be read, or has more bytes.
pub fn read_exposed_secret(path: &Path, limit: u64) -> io::Result<(Vec<u8>, Option<Exposed>)> {
    let file = File::open(path)?;
    // Of what was opened, whatever has the name later.
    let exposed = Exposed::of(path, &file.metadata()?);
    let mut secret = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut secret)?;
    if secret.len() as u64 > limit {
        let message = format!("the file is larger than the limit of {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok((secret, exposed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_others_may_read_holds_no_secret() {
        let path = std::env::temp_dir().join(format!("millrace secret's-{}", std::process::id()));
        std::fs::write(&path, "secret").unwrap();
        let is_root = std::fs::metadata(&path).unwrap().uid() == 0;
        for mode in 0..0o1000 {
            std::fs::set_permissions(&path, Permissions::from_mode(mode | 0o400)).unwrap();
            let read = read_secret(&path, 6);
            let is_secret = mode & if is_root { 0o037 } else { 0o077 } == 0;
            match read {
                Ok(secret) => assert!(is_secret && secret == b"secret", "{mode:o}"),
                Err(SecretError::Exposed(exposed)) => {
                    assert!(!is_secret, "{mode:o}");
                    let said = exposed.to_string();
                    assert!(said.contains(&format!("(mode {:04o})", mode | 0o400)), "{said}");
                    // What it says is what mends it.
                    let command = said.split_once(": ").unwrap().1;
                    let done = std::process::Command::new("sh").args(["-c", command]).status();
                    assert!(done.unwrap().success(), "{command}");
                    assert_eq!(read_secret(&path, 6).unwrap(), b"secret", "{command}");
                }
                Err(SecretError::File(error)) => panic!("{error}"),
            }
        }
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let (secret, exposed) = read_exposed_secret(&path, 6).unwrap();
        assert!(secret == b"secret" && exposed.is_some());
        assert_eq!(read_exposed_secret(&path, 5).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(read_secret(&path, 6), Err(SecretError::File(_))));
        assert_eq!(read_exposed_secret(Path::new("/dev/null"), 0).unwrap(), (Vec::new(), None));
    }
}
