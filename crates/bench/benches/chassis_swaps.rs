//! Changes of one of many instances of `l2_switch` on a running device, all of them under full load: who loses frames for it, and how long it
//! takes.
//!
//!     cargo bench -p millrace-bench --bench chassis_swaps [-- swaps | cycles | instances=256 | rounds=1000]
//!
//! **Swaps.** One instance is swapped from an image again and again, to and fro between two programs that keep all that it holds. Each
//! instance has at most 64 frames under way (`WINDOW`) and gets the next one when one has left, so the lane always has as much as it can
//! do, and a frame that does not leave is lost, not late. Every frame has its time in it: latencies are from one port of the machine to the
//! other, of the others than the one that is swapped.
//!
//! **Cycles.** A swap of one instance, the load of another one and its removal, a thousand times, each asked for as `millrace ctl` does. The
//! memory of the process is looked at when the load has run for a while, after a hundred cycles, after five hundred and after all. The frames of the one that
//! comes and goes come all the time; they are nobody's while it is not there.
//!
//! The lane has one processor, all else shares another. Exit status 1 if the others have lost a frame.

mod lab;

use lab::{image, resident};
use millrace_bench::cpus;
use millrace_ctl_api::{Answer, Request};
use millrace_device_file::DeviceFile;
use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_virtual_switches::{Client, Device, OpenPorts};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const INSTANCES: usize = 256;
const SWAPS: usize = 100;
const CYCLES: usize = 1000;
/// Cycles after which memory is looked at, before the last.
const LOOKS: [usize; 2] = [100, 500];
const WARM_UP: Duration = Duration::from_secs(2);
/// How long latencies are taken without swaps.
const QUIET: Duration = Duration::from_secs(5);
/// Between two swaps.
const PAUSE: Duration = Duration::from_millis(20);
/// When no frame has left for so long, those that have not are lost: longer than a switch that has a debt of time waits.
const STILL: Duration = Duration::from_secs(30);
/// How long the device may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Frames of an instance that are under way.
const WINDOW: u64 = 64;
/// Bytes of a frame with its tag, where its time is in it, and the last byte of its source.
const LENGTH: usize = 68;
const TIME: usize = 18;
const SOURCE: usize = 11;
/// The stations at ports 0 and 1, as `l2_switch.entries` has them.
const STATIONS: [[u8; 6]; 2] = [[6, 0, 0, 0, 0, 0], [6, 0, 0, 0, 0, 1]];

/// Latencies in nanoseconds, by their first five bits and their number of bits.
struct Latencies(Vec<AtomicU64>);

/// Steps of an octave.
const STEPS: u32 = 32;

impl Latencies {
    fn new() -> Latencies {
        Latencies((0..64 * STEPS).map(|_| AtomicU64::new(0)).collect())
    }

    fn count(&self, ns: u64) {
        let octave = ns.max(u64::from(STEPS)).ilog2();
        let step = (ns >> (octave - STEPS.ilog2())) as u32 % STEPS;
        self.0[(octave * STEPS + step) as usize].fetch_add(1, Relaxed);
    }

    /// What so large a part of them is not above, in milliseconds; at most one in 32 more than it was.
    fn at(&self, part: f64) -> f64 {
        let counts: Vec<u64> = self.0.iter().map(|count| count.load(Relaxed)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * part).ceil() as u64;
        let mut sum = 0;
        let is_reached = |count: &u64| {
            sum += count;
            sum >= wanted
        };
        let place = counts.iter().position(is_reached).unwrap_or(0) as u32;
        let (octave, step) = (place / STEPS, u64::from(place % STEPS));
        ((u64::from(STEPS) + step + 1) << octave.saturating_sub(STEPS.ilog2())) as f64 / 1e6
    }
}

/// What is at both ports of the machine.
struct Traffic {
    begun: Instant,
    is_paused: AtomicBool,
    /// Frames of each instance that came, and those that left.
    came: Vec<AtomicU64>,
    left: Vec<AtomicU64>,
    /// The last instance comes and goes: what it loses does not count, so its frames have no window.
    has_guest: bool,
    /// The bit of the source that the program of the first instance sets, and when it was seen to be another one.
    bit: AtomicUsize,
    changed_ns: AtomicU64,
    /// Where latencies of the others are noted: without swaps, with swaps.
    kind: AtomicUsize,
    latencies: [Latencies; 2],
}

impl Traffic {
    fn new(instances: usize, has_guest: bool) -> Arc<Traffic> {
        let counts = || (0..instances + usize::from(has_guest)).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Traffic {
            begun: Instant::now(),
            is_paused: AtomicBool::new(true),
            came: counts(),
            left: counts(),
            has_guest,
            bit: AtomicUsize::new(0),
            changed_ns: AtomicU64::new(0),
            kind: AtomicUsize::new(0),
            latencies: [Latencies::new(), Latencies::new()],
        })
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn sum(counts: &[AtomicU64]) -> u64 {
        counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Frames that each instance has lost, when none comes any more and none has left for a while.
    fn lost(&self) -> Vec<u64> {
        self.is_paused.store(true, Relaxed);
        let counted = self.came.len() - usize::from(self.has_guest);
        let (mut before, mut moved) = (0, Instant::now());
        while moved.elapsed() < STILL
            && Traffic::sum(&self.came[..counted]) > Traffic::sum(&self.left[..counted])
        {
            std::thread::sleep(Duration::from_millis(20));
            let left = Traffic::sum(&self.left);
            if left != before {
                (before, moved) = (left, Instant::now());
            }
        }
        self.came.iter().zip(&self.left).map(|(came, left)| came.load(Relaxed) - left.load(Relaxed)).collect()
    }
}

/// Frames of all instances in turns.
struct Source {
    traffic: Arc<Traffic>,
    frame: [u8; LENGTH],
    next: usize,
    /// Frames of others since the guest had one.
    others: usize,
}

impl Source {
    fn new(traffic: &Arc<Traffic>) -> Source {
        let mut frame = [0; LENGTH];
        let head = [&STATIONS[1][..], &STATIONS[0], &[0x81, 0, 0, 0, 0x88, 0xb5]].concat();
        frame[..head.len()].copy_from_slice(&head);
        Source { traffic: Arc::clone(traffic), frame, next: 0, others: 0 }
    }

    /// The next instance that may have a frame.
    fn turn(&mut self) -> Option<usize> {
        let Traffic { came, left, has_guest, .. } = &*self.traffic;
        for _ in 0..came.len() {
            self.next = if self.next + 1 < came.len() { self.next + 1 } else { 0 };
            let is_guest = *has_guest && self.next + 1 == came.len();
            let under_way = || came[self.next].load(Relaxed) - left[self.next].load(Relaxed);
            match is_guest {
                true if self.others + 1 >= came.len() => self.others = 0,
                false if under_way() < WINDOW => self.others += 1,
                _ => continue,
            }
            return Some(self.next);
        }
        None
    }
}

impl FarEnd for Source {
    fn asked(&mut self) {
        let now = self.traffic.now_ns();
        self.frame[TIME..TIME + 8].copy_from_slice(&now.to_be_bytes());
    }

    fn next(&mut self) -> Next<'_> {
        if self.traffic.is_paused.load(Relaxed) {
            return Next::None;
        }
        let Some(instance) = self.turn() else { return Next::None };
        self.traffic.came[instance].fetch_add(1, Relaxed);
        self.frame[14..16].copy_from_slice(&vid(instance).to_be_bytes());
        Next::Frame(&self.frame)
    }

    fn take(&mut self, _frame: &[u8]) -> bool {
        panic!("no station is there for these frames")
    }
}

/// Where all of them leave.
struct Sink(Arc<Traffic>);

impl FarEnd for Sink {
    fn next(&mut self) -> Next<'_> {
        Next::None
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        let traffic = &self.0;
        let now = traffic.now_ns();
        let instance = usize::from(u16::from_be_bytes([frame[14], frame[15]])) - 1;
        traffic.left[instance].fetch_add(1, Relaxed);
        if instance == 0 {
            let bit = usize::from(frame[SOURCE]);
            if traffic.bit.swap(bit, Relaxed) != bit {
                traffic.changed_ns.store(now, Relaxed);
            }
        } else {
            let sent_ns = u64::from_be_bytes(frame[TIME..TIME + 8].try_into().expect("eight bytes"));
            traffic.latencies[traffic.kind.load(Relaxed)].count(now - sent_ns);
        }
        true
    }
}

fn vid(instance: usize) -> u16 {
    instance as u16 + 1
}

/// The section of an instance in the file of the device.
fn section(instance: usize) -> String {
    let port = |number: usize| {
        format!(
            "[[switch.port]]\nnumber = {number}\nphysical = \"p{number}\"\nmatch = {{ vlan = {} }}\ntag = \"strip\"\n",
            vid(instance)
        )
    };
    let ports = [0, 1].map(port).concat();
    let id = instance + 1;
    format!(
        "[[switch]]\nname = \"s{instance}\"\nimage = \"l2.mimg\"\nentries = [\"l2.txt\"]\ndevice-id = {id}\n{ports}"
    )
}

/// A device with its instances, all under load, in a folder of its own.
struct Lab {
    device: Arc<Device>,
    traffic: Arc<Traffic>,
    folder: PathBuf,
    /// The images of the program and of one with another bit.
    images: [String; 2],
    _pinned: cpus::Pinned,
}

impl Lab {
    /// So many instances; frames come for one more if there is to be a guest.
    fn start(instances: usize, has_guest: bool) -> Lab {
        let (here, there) = cpus::two();
        let pinned = cpus::Pinned::to(there);
        let folder = std::env::temp_dir().join(format!("millrace-swaps-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let read = |name: &str| std::fs::read_to_string(lab::programs().join(name)).expect("a program");
        let program = read("l2_switch.p4");
        let at = "// Who shares the port";
        let changed = program.replacen(at, &format!("hdr.ethernet.src = hdr.ethernet.src ^ 1;\n{at}"), 1);
        assert_ne!(program, changed);
        let images = [&program, &changed].map(|program| image(program).to_string());
        std::fs::write(folder.join("l2.mimg"), &images[0]).expect("an image");
        std::fs::write(folder.join("l2.txt"), read("l2_switch.entries")).expect("entries");
        let processor = here.map(|here| format!("processors = [{here}]\n")).unwrap_or_default();
        let ports =
            [0, 1].map(|number| format!("[[port]]\nname = \"p{number}\"\ndevice = \"null:-\"\n")).concat();
        let switches: String = (0..instances).map(section).collect();
        let text = format!("[device]\nsocket = \"ctl.sock\"\n{processor}{ports}{switches}");
        let file = DeviceFile::parse_with_files("device.toml", &text, &folder);
        let file = file.unwrap_or_else(|problems| panic!("{}", problems.render(false))).rooted_at(&folder);
        let traffic = Traffic::new(instances, has_guest);
        let mut ports = OpenPorts::default();
        ports.add("p0", vec![Box::new(MemoryPort::without_kinds(Source::new(&traffic)))]);
        ports.add("p1", vec![Box::new(MemoryPort::without_kinds(Sink(Arc::clone(&traffic))))]);
        let begun = Instant::now();
        let device = Device::start(&file, ports).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{instances} instances of l2_switch, made in {:.2} s", begun.elapsed().as_secs_f64());
        traffic.is_paused.store(false, Relaxed);
        std::thread::sleep(WARM_UP);
        Lab { device, traffic, folder, images, _pinned: pinned }
    }

    fn change(&self, request: &Request) {
        match self.device.answer(&Client::Operator { uid: 0 }, request) {
            Answer::Changed(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Swaps the first instance; gives the time until the answer, and until the first frame of the new program has left.
    fn swap(&self, round: usize) -> [Duration; 2] {
        let next = (round + 1) % 2;
        let (switch, program) = ("s0".to_owned(), self.images[next].clone());
        let asked_ns = self.traffic.now_ns();
        self.change(&Request::Swap { switch, program, keep_everything: true, probation: None });
        let answered_ns = self.traffic.now_ns();
        let asked = Instant::now();
        while self.traffic.bit.load(Relaxed) != next {
            assert!(asked.elapsed() < PATIENCE, "the new program does not forward");
            std::thread::sleep(Duration::from_micros(50));
        }
        let changed_ns = self.traffic.changed_ns.load(Relaxed);
        [answered_ns, changed_ns].map(|then| Duration::from_nanos(then.saturating_sub(asked_ns)))
    }

    /// What was lost and dropped of all, by reason.
    fn show_reasons(&self) {
        let Answer::Stats(stats) =
            self.device.answer(&Client::Operator { uid: 0 }, &Request::Stats { switch: None })
        else {
            panic!("no answer")
        };
        let mut reasons = BTreeMap::<String, u64>::new();
        for (reason, count) in
            stats.switches.into_iter().flat_map(|switch| switch.losses.into_iter().chain(switch.drops))
        {
            *reasons.entry(reason).or_default() += count;
        }
        if !reasons.is_empty() {
            println!("lost and dropped, by reason: {reasons:?}");
        }
    }

    /// Thousands of frames a second that leave, within a time.
    fn rate(&self, time: Duration) -> f64 {
        let (before, begun) = (Traffic::sum(&self.traffic.left), Instant::now());
        std::thread::sleep(time);
        (Traffic::sum(&self.traffic.left) - before) as f64 / begun.elapsed().as_secs_f64() / 1e3
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").expect("the load of the machine");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Median and largest, in milliseconds.
fn shown(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!("median {:.2} ms, largest {:.2} ms", ms(times[times.len() / 2]), ms(times[times.len() - 1]))
}

/// One is swapped again and again; whether the others have lost nothing.
fn swaps(instances: usize, rounds: usize) -> bool {
    let lab = Lab::start(instances, false);
    let traffic = &lab.traffic;
    let quiet = lab.rate(QUIET);
    traffic.kind.store(1, Relaxed);
    let (before, begun) = (Traffic::sum(&traffic.left), Instant::now());
    let (mut answered, mut changed) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let [answer, change] = lab.swap(round);
        answered.push(answer);
        changed.push(change);
        std::thread::sleep(PAUSE);
    }
    let rate = (Traffic::sum(&traffic.left) - before) as f64 / begun.elapsed().as_secs_f64() / 1e3;
    let load = load_average();
    let came = Traffic::sum(&traffic.came);
    let lost = traffic.lost();
    let others: u64 = lost[1..].iter().sum();
    println!("{rounds} swaps of one, {:.1} million frames; load {load}", came as f64 / 1e6);
    println!("lost by the others {others}, by the one {}", lost[0]);
    lab.show_reasons();
    println!("a swap, until it is answered: {}", shown(answered));
    println!("a swap, until its first frame: {}", shown(changed));
    println!("kpps without swaps {quiet:.0}, with swaps {rate:.0}");
    for (what, latencies) in ["without", "with"].into_iter().zip(&traffic.latencies) {
        let [half, late, most] = [0.5, 0.999, 1.0].map(|part| latencies.at(part));
        println!(
            "latency of the others {what} swaps: median {half:.2} ms, 99.9 % {late:.2} ms, largest {most:.2} ms"
        );
    }
    others == 0
}

/// One is swapped, another comes and goes; whether the others have lost nothing.
fn cycles(instances: usize, rounds: usize) -> bool {
    let lab = Lab::start(instances, true);
    let extra = section(instances);
    let begun = Instant::now();
    let mut looks = vec![(0, resident(), threads())];
    for round in 0..rounds {
        lab.swap(round);
        lab.change(&Request::Load {
            text: extra.clone(),
            folder: lab.folder.display().to_string(),
            files: BTreeMap::new(),
        });
        lab.change(&Request::Remove { switch: format!("s{instances}") });
        if round + 1 == rounds || LOOKS.contains(&(round + 1)) {
            looks.push((round + 1, resident(), threads()));
        }
    }
    let each = begun.elapsed().as_secs_f64() * 1e3 / rounds as f64;
    let load = load_average();
    let came = Traffic::sum(&lab.traffic.came);
    let lost = lab.traffic.lost();
    let others: u64 = lost[1..instances].iter().sum();
    println!(
        "{rounds} times swap, load and remove, {each:.1} ms each, {:.1} million frames; load {load}",
        came as f64 / 1e6
    );
    println!("lost by the others {others}, by the one that is swapped {}", lost[0]);
    lab.show_reasons();
    for (cycles, memory, threads) in looks {
        println!("after {cycles:>5}: {:>9.1} MiB, {threads} threads", memory as f64 / f64::from(1 << 20));
    }
    others == 0
}

/// Threads of the process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("threads").count()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let number =
        |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
    let names = ["swaps", "cycles"];
    let any = words.iter().any(|word| names.contains(&word.as_str()));
    let is_wanted = |name: &str| !any || words.iter().any(|word| word == name);
    let instances = number("instances").unwrap_or(INSTANCES);
    let mut is_right = true;
    if is_wanted("swaps") {
        is_right &= swaps(instances, number("rounds").unwrap_or(SWAPS));
    }
    if is_wanted("cycles") {
        is_right &= cycles(instances, number("rounds").unwrap_or(CYCLES));
    }
    std::process::exit(i32::from(!is_right));
}
