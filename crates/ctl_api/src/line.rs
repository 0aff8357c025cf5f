//! Lines of JSON, each with a bound.

use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, ErrorKind, Write};

/// Why a line could not be read or written. The connection is of no use after it: where in a line it stands is not known.
#[derive(Debug)]
pub enum LineError {
    /// The line is longer than so many bytes.
    TooLong(usize),
    /// The stream has ended within a line.
    Partial,
    /// The stream fails, or nothing came in time.
    Io(io::Error),
    /// The value has no form in JSON.
    Json(serde_json::Error),
}

impl LineError {
    /// Whether nothing came, or nothing could be sent, in the time that the stream has for it.
    pub fn is_timeout(&self) -> bool {
        matches!(self, LineError::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::TooLong(max) => write!(f, "the line is longer than {max} bytes"),
            LineError::Partial => f.write_str("the connection ended within a line"),
            LineError::Io(error) => error.fmt(f),
            LineError::Json(error) => error.fmt(f),
        }
    }
}

impl Error for LineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LineError::Io(error) => Some(error),
            LineError::Json(error) => Some(error),
            LineError::TooLong(_) | LineError::Partial => None,
        }
    }
}

/// Reads a line, without its end: none if the stream ends before it begins. No more than `max` bytes are kept of any line.
///
/// # Errors
/// The line is longer than `max` bytes, is not whole, or the stream fails. A time-out of the stream keeps its kind
/// ([`LineError::is_timeout`]); what came of the line before it is lost.
pub fn read_line(reader: &mut impl BufRead, max: usize) -> Result<Option<Vec<u8>>, LineError> {
    let mut line = Vec::new();
    let mut has_begun = false;
    loop {
        let come = match reader.fill_buf() {
            Ok(come) => come,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(LineError::Io(error)),
        };
        if come.is_empty() {
            return if has_begun { Err(LineError::Partial) } else { Ok(None) };
        }
        has_begun = true;
        let end = come.iter().position(|byte| *byte == b'\n');
        let part = &come[..end.unwrap_or(come.len())];
        append(&mut line, part, max)?;
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

/// A value as a line of JSON, with its end. What is longer than `max` bytes without it is refused.
///
/// # Errors
/// The line is longer than `max` bytes, or the value has no form in JSON.
pub fn line_of<T: Serialize + ?Sized>(value: &T, max: usize) -> Result<Vec<u8>, LineError> {
    let mut bounded = Bounded { line: Vec::new(), max, is_over: false };
    let made = serde_json::to_writer(&mut bounded, value);
    if bounded.is_over {
        return Err(LineError::TooLong(max));
    }
    made.map_err(LineError::Json)?;
    let mut line = bounded.line;
    line.push(b'\n');
    Ok(line)
}

/// Writes a value as a line of JSON, and all that is buffered. What is longer than `max` bytes is refused before anything is written.
///
/// # Errors
/// The line is longer than `max` bytes, the value has no form in JSON, or the stream fails.
pub fn write_line<T: Serialize + ?Sized>(
    writer: &mut impl Write,
    value: &T,
    max: usize,
) -> Result<(), LineError> {
    let line = line_of(value, max)?;
    writer.write_all(&line).and_then(|()| writer.flush()).map_err(LineError::Io)
}

/// Puts bytes at the end of a line. Its memory grows by doubling, but never beyond `max`.
fn append(line: &mut Vec<u8>, part: &[u8], max: usize) -> Result<(), LineError> {
    let length = line.len().saturating_add(part.len());
    if length > max {
        return Err(LineError::TooLong(max));
    }
    if length > line.capacity() {
        let wanted = length.max(line.capacity().saturating_mul(2)).min(max);
        line.reserve_exact(wanted - line.len());
    }
    line.extend_from_slice(part);
    Ok(())
}

/// A line that is made, with its bound.
struct Bounded {
    line: Vec<u8>,
    max: usize,
    is_over: bool,
}

impl Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        match append(&mut self.line, part, self.max) {
            Ok(()) => Ok(part.len()),
            Err(error) => {
                self.is_over = true;
                Err(io::Error::other(error))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Bytes that come so many at once.
    fn pieces(bytes: &[u8], size: usize) -> BufReader<&[u8]> {
        BufReader::with_capacity(size, bytes)
    }

    #[test]
    fn lines_are_read_as_they_come() {
        for size in [1, 2, 3, 7, 64] {
            let mut reader = pieces(b"one\n\ntwo three\n", size);
            let mut next = || read_line(&mut reader, 9).unwrap();
            assert_eq!(next(), Some(b"one".to_vec()));
            assert_eq!(next(), Some(Vec::new()));
            assert_eq!(next(), Some(b"two three".to_vec()));
            assert_eq!((next(), next()), (None, None));
        }
    }

    #[test]
    fn a_line_has_its_limit_and_its_end() {
        for size in [1, 3, 64] {
            assert_eq!(read_line(&mut pieces(b"12345\n", size), 5).unwrap(), Some(b"12345".to_vec()));
            let long = read_line(&mut pieces(b"123456\n", size), 5);
            assert!(matches!(long, Err(LineError::TooLong(5))), "{long:?}");
            let partial = read_line(&mut pieces(b"12345", size), 5);
            assert!(matches!(partial, Err(LineError::Partial)), "{partial:?}");
        }
        assert_eq!(LineError::TooLong(5).to_string(), "the line is longer than 5 bytes");
    }

    /// A stream without an end in which no line ends: what is read of it stays near the limit.
    #[test]
    fn a_line_without_end_costs_no_more_than_its_limit() {
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                bytes.fill(b'x');
                self.0 += bytes.len() as u64;
                Ok(bytes.len())
            }
        }
        let mut reader = BufReader::with_capacity(4096, Endless(0));
        assert!(matches!(read_line(&mut reader, 100_000), Err(LineError::TooLong(100_000))));
        assert!(reader.get_ref().0 <= 100_000 + 2 * 4096, "{} bytes were read", reader.get_ref().0);
        let mut line = Vec::new();
        while append(&mut line, &[b'x'; 999], 100_000).is_ok() {
            assert!(line.capacity() <= 100_000, "{}", line.capacity());
        }
    }

    #[test]
    fn what_is_too_long_to_write_is_not_begun() {
        let mut written = Vec::new();
        write_line(&mut written, &"abc", 5).unwrap();
        assert_eq!(written, b"\"abc\"\n");
        let long = write_line(&mut written, &"abcd", 5);
        assert!(matches!(long, Err(LineError::TooLong(5))), "{long:?}");
        let pairs = std::collections::BTreeMap::from([((1, 2), 3)]);
        let no_json = write_line(&mut written, &pairs, 100);
        assert!(matches!(no_json, Err(LineError::Json(_))), "{no_json:?}");
        assert_eq!(written, b"\"abc\"\n", "nothing more is written");
    }

    #[test]
    fn a_time_out_keeps_its_kind() {
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        there.write_all(b"half a li").unwrap();
        let error = read_line(&mut BufReader::new(here), 100).unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert!(
            matches!(&error, LineError::Io(io) if io.kind() == ErrorKind::WouldBlock || io.kind() == ErrorKind::TimedOut)
        );
        assert!(!LineError::Io(ErrorKind::BrokenPipe.into()).is_timeout());
    }
}
