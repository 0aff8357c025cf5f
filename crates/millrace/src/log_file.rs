//! A log file that another one follows when it is full, so that a log of every packet does not fill the disk.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that lines are added to.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
    /// A line that would make it larger goes to another file.
    largest: Option<u64>,
    /// How many files of before are kept.
    kept: usize,
}

impl LogFile {
    pub(crate) fn open(path: &Path, largest: Option<u64>, kept: usize) -> io::Result<LogFile> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(LogFile { path: path.to_owned(), file, size, largest, kept })
    }

    /// Goes on in the file that has the name now.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        *self = LogFile::open(&self.path, self.largest, self.kept)?;
        Ok(())
    }

    /// `switch.log.txt` as the one before the last is `switch.log.2.txt`.
    fn before(&self, number: usize) -> PathBuf {
        let mut name: OsString = self.path.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".{number}"));
        if let Some(ending) = self.path.extension() {
            name.push(".");
            name.push(ending);
        }
        self.path.with_file_name(name)
    }

    fn begin_another(&mut self) -> io::Result<()> {
        for number in (1..self.kept).rev() {
            // The first times there is none.
            let _ = std::fs::rename(self.before(number), self.before(number + 1));
        }
        if self.kept > 0 {
            std::fs::rename(&self.path, self.before(1))?;
        }
        self.file = OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.largest.is_some_and(|largest| self.size > 0 && self.size + line.len() as u64 > largest) {
            self.begin_another()?;
        }
        let written = self.file.write(line)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_followed_by_another() {
        let folder = std::env::temp_dir().join(format!("millrace-log-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("s.log.txt");
        let mut log = LogFile::open(&path, Some(10), 2).unwrap();
        for number in 0..9 {
            log.write_all(format!("line{number}\n").as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            [read("s.log.txt"), read("s.log.1.txt"), read("s.log.2.txt")],
            ["line8\n", "line7\n", "line6\n"]
        );
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
