//! Measures what hostile programs cost.
//!
//! ```text
//! millrace-hostile run [--bin MILLRACE] [--only PART,PART] [--bytes N] [--doublings N,N] [--slower N] [--all] [--hardware | --code]
//! millrace-hostile write FOLDER [--only PART,PART] [--bytes N] [--doublings N,N]
//! ```
//!
//! `run` compiles each program in a process of its own and prints processor time and memory of those beyond the limits (of
//! all of them with `--all`); without `--bin` that is this executable with the libraries of the workspace. `--slower` allows
//! so many times the time, for executables that are not optimised. `--hardware` makes hardware of each, also of programs that
//! are small and whose hardware is much; `--code` makes machine code of each and its bounds. `write` leaves the programs in a folder.

use millrace_hostile::{
    BYTES, CODE_MEMORY, CODE_TIME, Family, HARDWARE_MEMORY, HARDWARE_TIME, MEMORY, Program, Size, TIME,
    families, of_code, of_hardware,
};
use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

mod subject;

/// Doublings to try: before, at and beyond what limits allow.
const DOUBLINGS: &[usize] = &[8, 10, 12, 13, 14, 15, 16, 17, 20, 29, 100];
/// Where the system ends a process, so that this machine survives what it looks for.
const GIVE_UP_BYTES: u64 = 4 << 30;
const GIVE_UP_SECONDS: u64 = 45;
/// Programs that are measured at a time.
const AT_A_TIME: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["one", action, standard, path] => subject::run(action, *standard == "p4-14", Path::new(path)),
        ["measure", command @ ..] => measure(command),
        ["write", folder, options @ ..] => write(Path::new(folder), &Choice::new(options)),
        ["run", options @ ..] => run(&Choice::new(options)),
        _ => {
            eprintln!("usage: millrace-hostile run|write FOLDER [OPTIONS]");
            ExitCode::from(2)
        }
    }
}

/// What the command line asks for.
struct Choice {
    bin: Option<String>,
    only: String,
    bytes: usize,
    doublings: Vec<usize>,
    seconds: f64,
    memory: u64,
    hardware: bool,
    code: bool,
    all: bool,
}

impl Choice {
    fn new(options: &[&str]) -> Choice {
        let value = |name: &str| {
            let at = options.iter().position(|option| *option == name)?;
            options.get(at + 1).map(|value| (*value).to_owned())
        };
        let numbers = |text: String| text.split(',').filter_map(|number| number.parse().ok()).collect();
        let hardware = options.contains(&"--hardware");
        let code = options.contains(&"--code");
        let (seconds, memory) = match (hardware, code) {
            (true, _) => (HARDWARE_TIME, HARDWARE_MEMORY),
            (_, true) => (CODE_TIME, CODE_MEMORY),
            _ => (TIME, MEMORY),
        };
        Choice {
            bin: value("--bin"),
            only: value("--only").unwrap_or_default(),
            bytes: value("--bytes").and_then(|text| text.parse().ok()).unwrap_or(BYTES),
            doublings: value("--doublings").map_or_else(|| DOUBLINGS.to_vec(), numbers),
            seconds: seconds * value("--slower").and_then(|text| text.parse().ok()).unwrap_or(1.0),
            memory,
            hardware,
            code,
            all: options.contains(&"--all"),
        }
    }

    fn programs(&self) -> impl Iterator<Item = (&'static Family, usize)> {
        let of_hardware = of_hardware().filter(|_| self.hardware);
        let of_code = of_code().filter(|_| self.code);
        families()
            .chain(of_hardware)
            .chain(of_code)
            .filter(|family| self.only.split(',').any(|part| family.name.contains(part)))
            .flat_map(|family| {
                let sizes = match family.size {
                    Size::Bytes => vec![self.bytes],
                    Size::Doublings => self.doublings.clone(),
                };
                sizes.into_iter().map(move |size| (family, size))
            })
    }
}

fn write(folder: &Path, choice: &Choice) -> ExitCode {
    for (family, size) in choice.programs() {
        let program = (family.make)(size);
        let path = folder.join(format!("{}-{size}.{}", family.name, ending(&program)));
        if let Err(error) = std::fs::write(&path, program.text) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn ending(program: &Program) -> &'static str {
    if program.p4_14 { "p4_14" } else { "p4" }
}

/// Measures two programs at a time: what counts is the time that the processor spends on each.
fn run(choice: &Choice) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("millrace-hostile-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("{}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let programs = Mutex::new(choice.programs());
    let next = || programs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (passed, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..AT_A_TIME {
            let (path, next, passed, failed) =
                (folder.join(format!("hostile-{number}.p4")), &next, &passed, &failed);
            scope.spawn(move || {
                while let Some((family, size)) = next() {
                    let good = is_within(choice, family, size, &path);
                    (if good { passed } else { failed }).fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let _ = std::fs::remove_dir_all(&folder);
    let (passed, failed) = (passed.into_inner(), failed.into_inner());
    println!("{passed} passed, {failed} failed, 0 skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a program stays within the limits; writes what it costs.
fn is_within(choice: &Choice, family: &Family, size: usize, path: &Path) -> bool {
    let program = (family.make)(size);
    if let Err(error) = std::fs::write(path, &program.text) {
        println!("{}: {error}", path.display());
        return false;
    }
    let mut costs = Vec::new();
    // An image has the checked program and its P4Info in it, a device the stages of a program; these are measured alone where the whole is
    // refused.
    let actions: &[&'static str] = match (choice.hardware, choice.code) {
        (true, _) => &["device", "rtl"],
        (_, true) => &["bounds"],
        _ => &["image", "p4info"],
    };
    for &action in actions {
        let cost = cost_of(choice.bin.as_deref(), action, &program, path);
        costs.push((action, cost));
        if cost.is_some_and(|cost| cost.exit == 0) {
            break;
        }
    }
    let mut good = true;
    for (action, cost) in costs {
        let (verdict, shown) = match cost {
            Some(cost) => (cost.verdict(choice), cost.to_string()),
            None => ("not measured", String::new()),
        };
        good &= verdict == "ok";
        if choice.all || verdict != "ok" {
            println!("{:34} {size:8} {action:7} {shown} {verdict}", family.name);
        }
    }
    good
}

/// What a process cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    bytes: u64,
    exit: i32,
}

impl Cost {
    fn verdict(self, choice: &Choice) -> &'static str {
        if !(0..=1).contains(&self.exit) {
            "DIED"
        } else if self.seconds > choice.seconds {
            "SLOW"
        } else if self.bytes > choice.memory {
            "LARGE"
        } else {
            "ok"
        }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:7.2} s {:6} MB exit {:3}", self.seconds, self.bytes >> 20, self.exit)
    }
}

/// Compiles a program in a process of its own.
fn cost_of(bin: Option<&str>, action: &str, program: &Program, path: &Path) -> Option<Cost> {
    let own = std::env::current_exe().ok()?;
    let standard = if program.p4_14 { "p4-14" } else { "p4-16" };
    let mut command = Command::new(&own);
    command.arg("measure");
    match bin {
        None => command.arg(own).args(["one", action, standard]).arg(path),
        Some(bin) => {
            command.arg(bin);
            match action {
                "rtl" => command.arg("rtl"),
                "device" => command.args(["rtl", "--device"]),
                "image" => command.args(["compile", "--emit", "image", "-o", "/dev/null"]),
                other => command.arg(other),
            };
            command.args(["--std", standard]).arg(path)
        }
    };
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.lines().last()?.split(' ');
    let seconds = numbers.next()?.parse().ok()?;
    let bytes = numbers.next()?.parse().ok()?;
    let exit = numbers.next()?.parse().ok()?;
    Some(Cost { seconds, bytes, exit })
}

/// Runs a command as the only child of this process and prints what it cost.
fn measure(command: &[&str]) -> ExitCode {
    let _ = setrlimit(Resource::RLIMIT_AS, GIVE_UP_BYTES, GIVE_UP_BYTES);
    let _ = setrlimit(Resource::RLIMIT_CPU, GIVE_UP_SECONDS, GIVE_UP_SECONDS + 1);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let Some((program, arguments)) = command.split_first() else { return ExitCode::from(2) };
    let status = Command::new(PathBuf::from(program))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let (Ok(status), Ok(usage)) = (status, getrusage(UsageWho::RUSAGE_CHILDREN)) else {
        return ExitCode::FAILURE;
    };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let exit = status.code().unwrap_or(-1);
    println!("{} {} {exit}", micros as f64 / 1e6, usage.max_rss() * 1024);
    ExitCode::SUCCESS
}
