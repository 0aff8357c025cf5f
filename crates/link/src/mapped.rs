//! Registers that are mapped into the memory of this machine, as the kernel's UIO gives them to a process.
//!
//! `/dev/uioN` is a device whose memory `mmap` maps: map M at the offset of M pages, as long as `/sys/class/uio/uioN/maps/mapM/size`
//! says. A plain file is mapped as a whole; that is what tests use.
#![allow(unsafe_code)]

use crate::device::{Device, Event, Fault, Shape};
use rustix::fs::{Mode, OFlags, open};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::{metadata, read_to_string};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::ptr::NonNull;

/// Registers of a device in the memory of this machine.
#[derive(Debug)]
pub struct Mapped {
    name: String,
    first: NonNull<u32>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value alone and stays where it is whichever thread has the value; its words are accessed through
// `&mut self`.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps a device of UIO, or a file whose bytes stand for registers.
    ///
    /// # Errors
    /// There is no such file, it may not be mapped, or its length is not one of whole registers.
    pub fn open(path: &Path, map: u32) -> Result<Mapped, Fault> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Fault::new(format_args!("{what} {}: {error}", path.display()))
        };
        let kind = metadata(path).map_err(|error| failed("cannot open", &error))?.file_type();
        let (bytes, offset) = match kind.is_char_device() {
            true => (size_of(path, map)?, u64::from(map) * rustix::param::page_size() as u64),
            false => (metadata(path).map_err(|error| failed("cannot open", &error))?.len(), 0),
        };
        if bytes == 0 || !bytes.is_multiple_of(4) || u32::try_from(bytes).is_err() {
            return Err(failed(
                "cannot map",
                &format_args!("{bytes} bytes are no registers of 4 bytes each"),
            ));
        }
        let bytes = bytes as usize;
        // Without O_SYNC a kernel may map memory of a device through the caches of the processor.
        let flags = OFlags::RDWR | OFlags::SYNC | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(|error| failed("cannot open", &error))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place of a new mapping, so it overlaps with no memory of this process.
        let first = unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, offset) };
        let first = first.map_err(|error| failed("cannot map", &error))?;
        let first = NonNull::new(first.cast()).ok_or_else(|| failed("cannot map", &"it is nowhere"))?;
        Ok(Mapped { name: path.display().to_string(), first, bytes })
    }

    /// The word at an address.
    fn word(&self, address: u32) -> Result<NonNull<u32>, Fault> {
        let at = address as usize;
        if !at.is_multiple_of(4) || at >= self.bytes {
            return Err(Fault::new(format_args!("there is no register at {address:#x}")));
        }
        // SAFETY: `at` is within the mapping, whose length is a multiple of 4.
        Ok(unsafe { self.first.byte_add(at) })
    }
}

/// How long a map of a UIO device is.
fn size_of(path: &Path, map: u32) -> Result<u64, Fault> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let size = format!("/sys/class/uio/{name}/maps/map{map}/size");
    let text = read_to_string(&size).map_err(|error| Fault::new(format_args!("{size}: {error}")))?;
    let digits = text.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).map_err(|_| Fault::new(format_args!("{size}: {digits} is no length")))
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing refers to it any more. That it fails would say that there is none.
        let _ = unsafe { munmap(self.first.as_ptr().cast::<c_void>(), self.bytes) };
    }
}

impl Device for Mapped {
    fn shape(&self) -> Shape {
        Shape { name: self.name.clone(), bytes: self.bytes as u32, ports: 0 }
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        let word = self.word(address)?;
        // SAFETY: a word of the mapping, aligned; volatile, as the device changes it and a read may have an effect.
        Ok(u32::from_le(unsafe { word.read_volatile() }))
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), Fault> {
        let word = self.word(address)?;
        // SAFETY: as for reads.
        unsafe { word.write_volatile(value.to_le()) };
        Ok(())
    }

    fn send(&mut self, port: u16, _frame: &[u8]) -> Result<(), Fault> {
        Err(Fault::new(format_args!("{} has no port {port}: it carries registers alone", self.name)))
    }

    fn poll(&mut self, _tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        Ok(())
    }

    fn tells(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_for_registers() {
        let path = std::env::temp_dir().join(format!("millrace-link-mapped-{}", std::process::id()));
        std::fs::write(&path, [0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0]).unwrap();
        let mut mapped = Mapped::open(&path, 0).unwrap();
        assert_eq!(mapped.shape().bytes, 8);
        assert_eq!(mapped.read(0), Ok(0x1234_5678));
        mapped.write(4, 0xdead_beef).unwrap();
        assert_eq!(mapped.read(4), Ok(0xdead_beef));
        for address in [2, 8, u32::MAX] {
            assert!(mapped.read(address).unwrap_err().to_string().contains("no register"), "{address}");
            assert!(mapped.write(address, 1).is_err());
        }
        drop(mapped);
        assert_eq!(std::fs::read(&path).unwrap(), [0x78, 0x56, 0x34, 0x12, 0xef, 0xbe, 0xad, 0xde]);
        std::fs::write(&path, [0; 6]).unwrap();
        assert!(Mapped::open(&path, 0).unwrap_err().to_string().contains("6 bytes are no registers"));
        std::fs::remove_file(&path).unwrap();
        assert!(Mapped::open(&path, 0).unwrap_err().to_string().contains("cannot open"));
    }
}
