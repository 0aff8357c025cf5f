//! The session of tests/thrift over a switch without interfaces, and what it does not hold.

use millrace_chassis::{Making, Programs};
use millrace_dataplane::{EngineKind, PortId};
use millrace_drivers::QueuePair;
use millrace_quiet::{Quiet, quiet_port};
use millrace_shell::{PROMPT, Shell, script};
use millrace_thrift::{DeviceConfig, PortMaker, PortName, Server, serve};
use std::net::TcpListener;

const SESSION: &str = include_str!("../../../tests/thrift/session.txt");

/// Opens what is called `lo`, on which nothing arrives.
#[derive(Debug)]
struct Loopbacks;

impl PortMaker for Loopbacks {
    fn open(&self, _: PortId, interface: &str, _: &str) -> Result<Vec<Box<dyn QueuePair>>, String> {
        if interface == "lo" { Ok(vec![quiet_port()]) } else { Err(format!("there is no {interface}")) }
    }

    fn added(&self, _: PortId, _: &str) {}

    fn removed(&self, _: PortId) {}

    fn refused(&self, _: PortId) {}
}

/// A switch with its server.
fn start() -> (Server, Quiet) {
    let quiet = Quiet::start();
    let ports = [1, 2].map(|number| PortName { number, interface: format!("mrt{number}") });
    let making = Making { engine: EngineKind::Fastest, ..Making::default() };
    let programs = Programs::new(making, quiet.control.clone());
    let maker = Some(Box::new(Loopbacks) as Box<dyn PortMaker>);
    let config = DeviceConfig {
        programs,
        device_id: 1,
        ports: ports.into(),
        maker,
        made_from: None,
        notifications: None,
        guard: None,
    };
    (serve(TcpListener::bind("127.0.0.1:0").unwrap(), config).unwrap(), quiet)
}

fn connect(server: &Server) -> std::io::Result<Shell> {
    Shell::connect(&server.address().ip().to_string(), server.address().port())
}

/// Runs lines, and gives what each shows.
fn run(text: &str) -> Vec<String> {
    let (server, _quiet) = start();
    let mut shell = connect(&server).unwrap();
    let mut greeting = Vec::new();
    shell.load(None, &mut greeting).unwrap();
    assert_eq!(greeting, b"Obtaining JSON from switch...\nDone\n");
    let mut out = Vec::new();
    script(&mut shell, text.as_bytes(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let mut shown: Vec<String> = out.split(PROMPT).skip(1).map(str::to_owned).collect();
    assert_eq!(shown.pop().as_deref(), Some("\n"), "after the last prompt");
    shown
}

/// Whether a line is the one wanted, in which after `~ ` a `#` stands for digits.
fn same(found: &str, wanted: &str) -> bool {
    let Some(pattern) = wanted.strip_prefix("~ ") else { return found == wanted };
    let mut rest = found;
    for (at, part) in pattern.split('#').enumerate() {
        if at > 0 {
            let after = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if after.len() == rest.len() {
                return false;
            }
            rest = after;
        }
        let Some(after) = rest.strip_prefix(part) else { return false };
        rest = after;
    }
    rest.is_empty()
}

#[test]
fn every_command_shows_what_bmv2s_tool_shows() {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in SESSION.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("> ") {
            Some(command) => commands.push((command, Vec::new())),
            None => commands.last_mut().unwrap().1.push(line),
        }
    }
    assert!(commands.len() > 140, "{}", commands.len());
    let text: String = commands.iter().map(|(command, _)| format!("{command}\n")).collect();
    let shown = run(&text);
    assert_eq!(shown.len(), commands.len());
    for ((command, wanted), found) in commands.iter().zip(&shown) {
        let lines: Vec<&str> = found.lines().collect();
        let same = lines.len() == wanted.len()
            && lines.iter().zip(wanted).all(|(found, wanted)| same(found, wanted));
        assert!(same, "{command}: {lines:#?}, not {wanted:#?}");
    }
}

#[test]
fn mistakes_are_told_and_the_script_goes_on() {
    let shown = run(
        "tabel_add x\ntable_add route forward 10.0.0.0/8\ntable_add route forward 10.0.0.0/33 => 1\n\
         table_add route forward 10.0.0.0/8 => 512\ntable_add acl drop 0&&&0 0->1 0&&&0 => x\nregister_write last 0 x\n\
         counter_read prots 1\n# nothing\n\nhelp table_delete\nmirroring_add_truncate 1 2 3\ntable_num_entries route\n\
         port_add veth9 9\nport_add lo 1\nport_remove 3\nport_add lo 70000\nport_add lo\nexit\nnever\n",
    );
    let first = |at: usize| shown[at].lines().last().unwrap_or_default().to_owned();
    assert_eq!(first(0), "*** Unknown syntax: tabel_add x (did you mean `table_add`?)");
    assert!(
        first(1).starts_with("Error: `=>` between match fields and parameters is missing"),
        "{}",
        first(1)
    );
    assert!(first(2).starts_with("Invalid match key: 10.0.0.0/33: a prefix of 33 bits"), "{}", first(2));
    assert!(first(3).starts_with("Invalid runtime data: 512:"), "{}", first(3));
    assert!(first(4).starts_with("Error: the table has priorities"), "{}", first(4));
    assert_eq!(first(5), "Error: Bad format for value, must be an integer");
    assert_eq!(first(6), "Error: Invalid counter name (prots), did you mean `In.ports`?");
    assert_eq!((first(7).as_str(), first(8).as_str()), ("", ""));
    assert_eq!(shown[9], "table_delete TABLE HANDLE\n    remove an entry\n");
    assert!(first(10).starts_with("Error: sessions that cut packets"), "{}", first(10));
    assert_eq!(first(11), "0");
    assert_eq!(first(12), "Invalid device manager operation: there is no veth9");
    assert_eq!(first(13), "Invalid device manager operation: there is a port 1 already");
    assert_eq!(first(14), "Invalid device manager operation: there is no port 3");
    assert!(
        first(15).starts_with("Invalid device manager operation: `70000` is not a port"),
        "{}",
        first(15)
    );
    assert_eq!(first(16), "Error: Insufficient number of args");
    assert_eq!(shown.len(), 17, "nothing after exit");
}

#[test]
fn a_switch_that_goes_away_ends_the_script() {
    let (server, _quiet) = start();
    let address = server.address();
    let mut shell = connect(&server).unwrap();
    shell.load(None, &mut Vec::new()).unwrap();
    drop(server);
    let ended = script(&mut shell, &b"table_num_entries In.route\n"[..], &mut Vec::new());
    assert!(matches!(ended, Err(millrace_shell::Trouble::Lost(_))), "{ended:?}");
    assert!(Shell::connect("127.0.0.1", address.port()).is_err());
}
