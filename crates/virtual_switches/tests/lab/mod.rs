//! A device whose ports of the machine are memory: p0 and p1.

#![allow(dead_code, reason = "each test file uses a part")]

use millrace_ctl_api::{Answer, Changed, Refused, Request, Stats, SwitchStats};
use millrace_device_file::DeviceFile;
use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_virtual_switches::{Client, Device, OpenPorts};
use std::collections::{BTreeMap, VecDeque};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The entries of a switch that sends what comes in by port 0 out by port 1, and back.
pub(crate) const CROSS_FILE: &str = "entries = [\"cross.txt\"]";
pub(crate) const OPERATOR: Client = Client::Operator { uid: 0 };

/// The other end of a port of the machine. It rings when frames have come, so a lane with nothing to do sleeps.
#[derive(Clone)]
pub(crate) struct Cable {
    to: Arc<Mutex<VecDeque<Vec<u8>>>>,
    from: Arc<Mutex<Vec<Vec<u8>>>>,
    bell: Arc<[UnixStream; 2]>,
}

impl Default for Cable {
    fn default() -> Cable {
        let (ring, rung) = UnixStream::pair().unwrap();
        [&ring, &rung].into_iter().for_each(|end| end.set_nonblocking(true).unwrap());
        Cable { to: Arc::default(), from: Arc::default(), bell: Arc::new([ring, rung]) }
    }
}

struct Plug(Cable, Vec<u8>);

impl FarEnd for Plug {
    fn asked(&mut self) {
        // Whoever rings after this has put his frames there before.
        while (&self.0.bell[1]).read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    }

    fn next(&mut self) -> Next<'_> {
        match self.0.to.lock().unwrap().pop_front() {
            Some(frame) => {
                self.1 = frame;
                Next::Frame(&self.1)
            }
            None => Next::None,
        }
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.0.from.lock().unwrap().push(frame.to_vec());
        true
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.0.bell[1].as_raw_fd())
    }
}

impl Cable {
    pub(crate) fn send(&self, frames: impl IntoIterator<Item = Vec<u8>>) {
        self.to.lock().unwrap().extend(frames);
        // A bell that is full rings already.
        let _ = (&self.bell[0]).write(&[1]);
    }

    /// How many frames have come that nobody has received.
    pub(crate) fn waiting(&self) -> usize {
        self.from.lock().unwrap().len()
    }

    /// What has come, when it is so many frames.
    pub(crate) fn receive(&self, count: usize) -> Vec<Vec<u8>> {
        wait_for(|| self.from.lock().unwrap().len() >= count);
        let mut frames = self.from.lock().unwrap();
        assert_eq!(frames.len(), count);
        std::mem::take(&mut *frames)
    }
}

pub(crate) fn wait_for(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "nothing happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A frame of a VLAN, with a number in it.
pub(crate) fn frame(vid: u16, number: u16) -> Vec<u8> {
    let tag = [&[0x81, 0][..], &vid.to_be_bytes()].concat();
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9][..], &tag, &[0x88, 0xb5], &number.to_be_bytes(), &[0; 44]].concat()
}

pub(crate) fn numbers(frames: &[Vec<u8>]) -> Vec<u16> {
    frames.iter().map(|frame| u16::from_be_bytes([frame[18], frame[19]])).collect()
}

/// A folder that goes with this.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("millrace-virtual-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Folder(path.canonicalize().unwrap());
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/steer.p4");
        std::fs::copy(program, folder.0.join("steer.p4")).unwrap();
        folder.write("cross.txt", "table_add steer send 0 => 1\ntable_add steer send 1 => 0\n");
        folder
    }

    /// Writes a file that nobody else may read, as one with a secret has to be.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
        std::fs::set_permissions(self.0.join(name), Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A device that runs.
pub(crate) struct Lab {
    pub(crate) device: Arc<Device>,
    pub(crate) cables: [Cable; 2],
    pub(crate) folder: Folder,
}

/// Two ports of the machine, and what else is given.
pub(crate) fn file(device: &str, rest: &str) -> String {
    format!(
        "[device]\nsocket = \"ctl.sock\"\n{device}\n[[port]]\nname = \"p0\"\ndevice = \"null:-\"\n[[port]]\nname = \"p1\"\ndevice = \"null:-\"\n{rest}"
    )
}

/// A switch with ports 0 and 1 at p0 and p1, which has the frames of a VLAN and does not see its tag.
pub(crate) fn switch(name: &str, vid: u16, keys: &str) -> String {
    format!(
        "[[switch]]\nname = \"{name}\"\nprogram = \"steer.p4\"\nengine = \"interp\"\ndevice-id = {vid}\n{keys}\n\
         [[switch.port]]\nnumber = 0\nphysical = \"p0\"\nmatch = {{ vlan = {vid} }}\ntag = \"strip\"\n\
         [[switch.port]]\nnumber = 1\nphysical = \"p1\"\nmatch = {{ vlan = {vid} }}\ntag = \"strip\"\n"
    )
}

impl Lab {
    pub(crate) fn new(text: &str) -> Lab {
        Lab::within(Folder::new(), text)
    }

    pub(crate) fn within(folder: Folder, text: &str) -> Lab {
        let file = read(&folder, text);
        let cables = <[Cable; 2]>::default();
        let mut ports = OpenPorts::default();
        for (name, cable) in ["p0", "p1"].into_iter().zip(&cables) {
            ports.add(name, vec![Box::new(MemoryPort::new(Plug(cable.clone(), Vec::new())))]);
        }
        let device = Device::start(&file, ports).unwrap_or_else(|failure| panic!("{failure}"));
        Lab { device, cables, folder }
    }

    pub(crate) fn ask(&self, request: &Request) -> Answer {
        self.device.answer(&OPERATOR, request)
    }

    pub(crate) fn change(&self, request: &Request) -> Changed {
        match self.ask(request) {
            Answer::Changed(changed) => changed,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn refused(&self, request: &Request) -> Refused {
        match self.ask(request) {
            Answer::Refused(refused) => refused,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        match self.ask(&Request::Stats { switch: None }) {
            Answer::Stats(stats) => stats,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn counts(&self, name: &str) -> SwitchStats {
        self.stats().switches.into_iter().find(|switch| switch.name == name).unwrap()
    }

    pub(crate) fn apply(&self, text: &str) -> Request {
        Request::Apply {
            text: text.into(),
            folder: self.folder.text(),
            files: BTreeMap::new(),
            dry_run: false,
        }
    }

    /// Sends frames of a VLAN in by p0, and has them out by p1 with their tag.
    pub(crate) fn passes(&self, vid: u16) {
        self.cables[0].send((0..10).map(|number| frame(vid, number)));
        let expected: Vec<Vec<u8>> = (0..10).map(|number| frame(vid, number)).collect();
        assert_eq!(self.cables[1].receive(10), expected);
    }
}

pub(crate) fn read(folder: &Folder, text: &str) -> DeviceFile {
    let file = DeviceFile::parse_with_files("test.toml", text, &folder.0);
    file.unwrap_or_else(|problems| panic!("{}", problems.render(false))).rooted_at(&folder.0)
}
