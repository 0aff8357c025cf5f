//! A simulated device that is served on the host link, on this machine: software control writes its tables over TCP, frames go in and come out by the
//! link, digests come by themselves. All as the interpreter has it.

use millrace_dataplane::{EngineKind, KnownPorts, Outcome, Switch, SwitchConfig, device_groups};
use millrace_differential::compile_path;
use millrace_link::{Client, Event, Fault, LinkError, Server, Shape, Simulated};
use millrace_pipeline::Bits;
use millrace_rtl::map::{Field, RegisterDevice};
use millrace_rtl::{Device, DeviceOptions, Driver, Hardware, Objects, Options, PortKind};
use millrace_state::Effects;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A switch of a program as control has it, and the device that does what it says.
struct Pair {
    switch: Switch,
    driver: Driver,
    device: RegisterDevice<Client>,
    ports: Client,
    effects: Effects,
    server: Server,
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../programs/{name}.p4"))
}

fn switch(name: &str) -> Switch {
    let ports = KnownPorts::Only((0..4).collect());
    let config = SwitchConfig { engine: EngineKind::Interp, ports, ..SwitchConfig::default() };
    let mut switch = Switch::new(compile_path(&path(name)), config).unwrap();
    let entries = std::fs::read_to_string(path(name).with_extension("entries")).unwrap();
    millrace_control::entries::load(&mut switch, &entries).unwrap();
    switch
}

fn frames(name: &str) -> Vec<(u32, Vec<u8>)> {
    let text = std::fs::read_to_string(path(name).with_extension("stf")).unwrap();
    let test = millrace_stf::parse(&text).unwrap();
    test.frames().map(|(port, bytes)| (port, bytes.to_vec())).filter(|(port, _)| *port < 4).collect()
}

impl Pair {
    fn new(name: &str) -> Pair {
        let switch = switch(name);
        let hardware = Hardware::new(Arc::clone(switch.program()), Options::default()).unwrap();
        let device =
            Device::new(&hardware, DeviceOptions { width: 128, ..DeviceOptions::default() }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::serve(listener, Box::new(Simulated::new(&device).unwrap())).unwrap();
        let connect = |frames| Client::connect(server.address(), frames).unwrap();
        let ports = connect(true);
        assert_eq!((ports.shape().ports, ports.shape().bytes), (4, device.register_map().size()));
        let registers = RegisterDevice::attach(device.register_map().clone(), connect(false)).unwrap();
        let mut pair = Pair {
            switch,
            driver: device.driver(),
            device: registers,
            ports,
            effects: Effects::default(),
            server,
        };
        pair.update();
        pair
    }

    /// What control has done goes to the device.
    fn update(&mut self) -> bool {
        self.driver.set_groups(&device_groups(self.switch.replication())).unwrap();
        self.driver.update(self.switch.state(), &mut self.device).unwrap()
    }

    /// Sends a frame; gives those that leave, by port, and takes messages.
    fn send(&mut self, port: u32, bytes: &[u8], wanted: &Outcome) -> Vec<(u32, Vec<u8>)> {
        self.ports.send(port as u16, bytes).unwrap();
        let (mut left, mut messages) = (Vec::new(), 0);
        while left.len() < wanted.sent.len() || messages < wanted.digests.len() {
            match self.ports.event(SOON).unwrap().expect("the device says something soon") {
                Event::Frame { port, bytes } => left.push((u32::from(port), bytes)),
                Event::Message { kind, bytes } => {
                    let port = kind as usize;
                    let width = self.device.map().ports[port].width;
                    let word = Bits::from_bytes(width, &bytes);
                    let (state, effects) = (self.switch.state_mut(), &mut self.effects);
                    self.driver.take_message(port, &word, &mut Objects { state, now_ns: 0, effects });
                    messages += 1;
                }
            }
        }
        left
    }

    fn read(&mut self, name: &str) -> u64 {
        let (port, address) = self.device.map().find(name).unwrap();
        self.device.read_word(port, address).unwrap().to_u64_saturating()
    }
}

fn sorted(outcome: &Outcome) -> Vec<(u32, Vec<u8>)> {
    let mut all: Vec<_> = outcome.sent.iter().map(|sent| (sent.port, sent.bytes.clone())).collect();
    all.sort();
    all
}

#[test]
fn software_controls_a_device_over_the_link() {
    for name in ["l2_switch", "router"] {
        let mut pair = Pair::new(name);
        let mut interpreter = switch(name);
        // Digests come by themselves where software wants to hear of them.
        let queues = pair.device.map().queues().count() as u32;
        pair.device.access().write(&[(Field::Enabled.offset(), (1 << queues) - 1)]).unwrap();
        let (mut digests, mut drops) = (Vec::new(), 0);
        let mut pass = |pair: &mut Pair, interpreter: &mut Switch| {
            for (port, bytes) in frames(name) {
                let wanted = interpreter.inject(port, &bytes, 0);
                let mut left = pair.send(port, &bytes, &wanted);
                left.sort();
                assert_eq!(left, sorted(&wanted), "{name}");
                digests.extend(wanted.digests);
                drops += wanted.drops.len() as u64;
            }
        };
        pass(&mut pair, &mut interpreter);
        // Commands of bmv2, as Thrift and P4Runtime do them to the state of a switch.
        let more = match name {
            "l2_switch" => {
                "table_add smac NoAction 06:00:00:00:00:02 =>\ntable_add dmac forward 06:00:00:00:00:02 => 2\n"
            }
            _ => "table_clear ipv4_lpm\n",
        };
        for switch in [&mut pair.switch, &mut interpreter] {
            millrace_control::entries::load(switch, more).unwrap();
        }
        assert!(pair.update(), "{name}: entries are written");
        assert!(!pair.update(), "{name}: there is nothing new");
        pass(&mut pair, &mut interpreter);
        assert_eq!(pair.effects.digests(), digests, "{name}");
        let reasons = pair.device.map().names.clone().into_iter().map(|word| word.name);
        let reasons: Vec<String> = reasons.filter(|name| name.starts_with("drops.")).collect();
        // A frame that is dropped says nothing.
        let mut counted = 0;
        for _ in 0..1000 {
            counted = reasons.iter().map(|name| pair.read(name)).sum();
            if counted == drops {
                break;
            }
        }
        assert_eq!(counted, drops, "{name}");
    }
}

/// A port that is down sends nothing, by a name of the map; two clients use the registers and do not disturb each other.
#[test]
fn settings_are_words_with_names() {
    let mut pair = Pair::new("l2_switch");
    let mut other = RegisterDevice::attach(
        pair.device.map().clone(),
        Client::connect(pair.server.address(), false).unwrap(),
    )
    .unwrap();
    let up = pair.device.map().find("ports_up").unwrap();
    assert_eq!(pair.read("ports_up"), 15);
    for round in 0..50u32 {
        let (one, two) = (round % 16, (round * 7 + 3) % 65536);
        pair.device.write_word(up.0, up.1, &millrace_pipeline::Bits::new(32, one.into())).unwrap();
        let quantum = other.map().find("port1.queue0.quantum").unwrap();
        other.write_word(quantum.0, quantum.1, &millrace_pipeline::Bits::new(32, two.into())).unwrap();
        assert_eq!(pair.read("ports_up"), u64::from(one));
        assert_eq!(pair.read("port1.queue0.quantum"), u64::from(two));
        assert_eq!(other.read_word(up.0, up.1).unwrap().to_u64_saturating(), u64::from(one));
    }
    pair.device.write_word(up.0, up.1, &millrace_pipeline::Bits::new(32, 1)).unwrap();
    // To the station of port 1, from one that is known: it is dropped.
    let frame = [&[6, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0x88, 0xb5][..], &[0; 50]].concat();
    pair.ports.send(0, &frame).unwrap();
    for _ in 0..1000 {
        if pair.read("drops.port_disabled") == 1 {
            break;
        }
    }
    assert_eq!(pair.read("drops.port_disabled"), 1);
    // What no port is, and a frame that is too long, is refused and counted.
    pair.ports.send(4, &frame).unwrap();
    pair.ports.send(0, &[0; 4000]).unwrap();
    while pair.server.counts().refused < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(Client::connect(pair.server.address(), true), Err(LinkError::Refused(_))));
    let tables = pair.device.map().ports.iter().filter(|port| port.kind == PortKind::Table);
    assert_eq!(tables.count(), 2);
}

/// A simulated device that counts the writes to its registers.
struct Counting(Simulated, Arc<AtomicUsize>);

impl millrace_link::Device for Counting {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.0.read(address)
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.write(address, word)
    }

    fn words_by_registers(&self) -> usize {
        self.0.words_by_registers()
    }

    fn set_at_once(&mut self, port: usize, address: u64, word: &Bits) -> bool {
        self.0.set_at_once(port, address, word)
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        self.0.send(port, frame)
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        self.0.poll(tell)
    }
}

/// The router's prefixes are more than a thousand words of each bank. In the process the device has them without as many writes.
#[test]
fn a_simulated_device_starts_with_few_writes() {
    let switch = switch("router");
    let hardware = Hardware::new(Arc::clone(switch.program()), Options::default()).unwrap();
    let device = Device::new(&hardware, DeviceOptions::default()).unwrap();
    let writes = Arc::new(AtomicUsize::new(0));
    let simulated = Counting(Simulated::new(&device).unwrap(), Arc::clone(&writes));
    let simulated: Box<dyn millrace_link::Device> = Box::new(simulated);
    let mut registers = RegisterDevice::attach(device.register_map().clone(), simulated).unwrap();
    let mut driver = device.driver();
    driver.set_groups(&device_groups(switch.replication())).unwrap();
    assert!(driver.update(switch.state(), &mut registers).unwrap());
    let writes = writes.load(Ordering::Relaxed);
    assert!((100..1000).contains(&writes), "{writes} writes");
}
