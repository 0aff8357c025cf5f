//! Files that come from outside, read with a limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Most bytes that are read from a device: enough for a terminal, and from others nothing is expected.
const MAX_DEVICE_BYTES: u64 = 1 << 20;

/// Reads a file of at most so many bytes. Pipes are read up to the limit, too; devices, which might never end, up to a
/// megabyte.
///
/// # Errors
/// Those of the system, and [`ErrorKind::FileTooLarge`].
pub fn read_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let is_device = !(about.is_file() || is_pipe(&about));
    let limit = if is_device { limit.min(MAX_DEVICE_BYTES) } else { limit };
    let too_large = || {
        let message = format!("the file is larger than the limit of {limit} bytes");
        Err(io::Error::new(ErrorKind::FileTooLarge, message))
    };
    if about.len() > limit {
        return too_large();
    }
    // A file in /proc says that it has none, one that grows has more than it says: one byte more than allowed shows it.
    let mut bytes = Vec::new();
    bytes.try_reserve(about.len() as usize).map_err(|_| ErrorKind::OutOfMemory)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { too_large() } else { Ok(bytes) }
}

/// As [`read_file`], for text. What is not UTF-8 becomes the replacement character.
///
/// # Errors
/// As [`read_file`].
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = read_file(path, limit)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

#[cfg(unix)]
fn is_pipe(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    about.file_type().is_fifo() || about.file_type().is_socket()
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_limits() {
        let path = std::env::temp_dir().join(format!("millrace-file-{}", std::process::id()));
        std::fs::write(&path, b"a\xffb").unwrap();
        assert_eq!(read_file(&path, 3).unwrap(), b"a\xffb");
        assert_eq!(read_text(&path, 3).unwrap(), "a\u{fffd}b");
        assert_eq!(read_file(&path, 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_file(&path, 2).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_end() {
        for device in ["/dev/zero", "/dev/urandom"] {
            assert_eq!(read_file(Path::new(device), 1 << 40).unwrap_err().kind(), ErrorKind::FileTooLarge);
        }
        assert!(read_file(Path::new("/dev/null"), 1 << 40).unwrap().is_empty());
        assert!(read_file(Path::new("/dev"), 100).is_err());
        // It says that it is empty, and is not.
        assert!(!read_file(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert!(read_file(Path::new("/proc/self/status"), 10).is_err());
    }
}
