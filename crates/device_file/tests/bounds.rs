//! What a file can cost: a text of the largest size is read in bounded time and memory, however it is made, and what is told of
//! it is bounded too.

use millrace_device_file::{DeviceFile, Kind, MAX_PROBLEMS, MAX_SHOWN};
use std::fs;
use std::time::Duration;

/// Most processor time for a text, without optimisation.
const LONGEST: Duration = Duration::from_secs(30);

/// Most memory of the process, in KiB.
const MOST_MEMORY: u64 = 1 << 20;

/// Processor time of this thread: the first number of `schedstat`, in nanoseconds.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("the time of the thread");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
}

/// The most memory that the process has had so far, in KiB.
fn most_memory() -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("the status of the process");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
}

fn filled(piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let piece = piece(number);
        if text.len() + piece.len() > MAX_SHOWN {
            break;
        }
        text.push_str(&piece);
    }
    text
}

#[test]
fn a_large_text_costs_bounded_time_and_memory() {
    let header = "[[port]]\nname = \"p\"\ndevice = \"v\"\n[[switch]]\nname = \"s\"\nimage = \"i\"\n";
    let port = |number, more: &str| format!("[[switch.port]]\nnumber = {number}\nphysical = \"p\"\n{more}\n");
    let texts = [
        ("what is no key", filled(|_| "=\n".into())),
        ("tables", filled(|_| "[[switch]]\n".into())),
        ("unknown keys", filled(|number| format!("k{number}=1\n"))),
        ("dotted keys", filled(|number| format!("{}k{number}=1\n", "a.".repeat(70)))),
        ("open lists", filled(|_| "[".into())),
        ("nested lists", filled(|_| format!("{}{}\n", "a=[".repeat(60), "]".repeat(60)))),
        ("one long key", "k".repeat(MAX_SHOWN)),
        ("one long text", format!("[device]\nname = \"{}\"", "n".repeat(MAX_SHOWN - 20))),
        ("a long list", format!("[device]\nprocessors = [{}]", "1,".repeat(MAX_SHOWN / 2 - 20))),
        ("inline tables", filled(|number| format!("t{number}={{a={{b=1}}}}\n"))),
        ("one claim", header.to_owned() + &filled(|number| port(number, ""))[header.len()..]),
        (
            "claims by headers",
            header.to_owned()
                + &filled(|number| port(number, &format!("match = {{ vlan = {} }}", number % 4000 + 1)))
                    [200..],
        ),
        (
            "claims by bytes",
            header.to_owned()
                + &filled(|number| {
                    port(
                        number,
                        &format!("match = {{ bytes = [{{ at = {}, value = \"0x00\" }}] }}", number % 128),
                    )
                })[200..],
        ),
        ("links", filled(|number| format!("[[link]]\nbetween = [\"a:{number}\", \"b:1\"]\n"))),
    ];
    for (what, text) in texts {
        let start = processor_time();
        let problems = DeviceFile::parse("a.toml", &text).expect_err(what);
        assert!((1..=MAX_PROBLEMS).contains(&problems.problems.len()), "{what}");
        let shown = problems.render(false);
        assert!(shown.len() < MAX_PROBLEMS * 16_384, "{what}: {} bytes", shown.len());
        assert!(problems.json().len() < MAX_PROBLEMS * 4096, "{what}");
        let took = processor_time() - start;
        let memory = most_memory();
        println!("{what}: {took:?}, {} MiB at most so far", memory >> 10);
        assert!(took < LONGEST, "{what}: {took:?}");
        assert!(memory < MOST_MEMORY, "{what}: {memory} KiB");
    }
}

#[test]
fn a_text_that_is_too_large_is_not_read() {
    let problems = DeviceFile::parse("a.toml", &"#".repeat(MAX_SHOWN + 1)).expect_err("too large");
    assert_eq!(problems.problems.len(), 1);
    assert_eq!(problems.problems[0].kind, Kind::Limit);
    assert!(problems.problems[0].message.contains("MAX_SHOWN"));
    assert!(DeviceFile::parse("a.toml", &"#".repeat(MAX_SHOWN)).is_ok());
}

#[test]
fn further_problems_are_counted() {
    let text: String = (0..MAX_PROBLEMS + 5).map(|number| format!("k{number} = 1\n")).collect();
    let problems = DeviceFile::parse("a.toml", &text).expect_err("unknown keys");
    assert_eq!((problems.problems.len(), problems.more), (MAX_PROBLEMS, 5));
    assert!(problems.render(false).ends_with("5 more problems (MAX_PROBLEMS is 100)\n"));
    assert!(problems.to_string().ends_with("a.toml: 5 more problems (MAX_PROBLEMS is 100)\n"));
}
