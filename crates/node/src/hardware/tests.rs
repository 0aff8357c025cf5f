//! MACs of a design at the rate of their links.

use super::mac::mac;
use super::modules::{OCTETS, demultiplexer, merge, selector, tcam};
use super::programs::Programs;
use super::queue::queue;
use super::top::Top;
use crate::blocks::MAC_ERRORS;
use crate::limits::{MAX_FRAME, MAX_OCTETS};
use crate::model::{MacLink, NodeFile};
use millrace_netlist::{Bits, Design, ModuleBuilder, ModuleId, Simulator};
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::device::{Link, wire::Wire};
use millrace_rtl::map::Bus;

fn set(sim: &mut Simulator, input: &str, value: u64) {
    let signal = sim.input(input).unwrap_or_else(|| panic!("there is no input {input}"));
    sim.set_u64(signal, value);
}

fn get(sim: &mut Simulator, output: &str) -> u64 {
    let signal = sim.output(output).unwrap_or_else(|| panic!("there is no output {output}"));
    sim.get_u64(signal)
}

/// Whether an output of a MAC counts: the halves of it have counted what is wrong with frames themselves.
fn is_counted(name: &str) -> bool {
    let of = name.strip_prefix("rx.").or_else(|| name.strip_prefix("tx."));
    of.is_some_and(|of| !MAC_ERRORS.contains(&of))
}

/// A module whose outputs of these names, which count, are sums of all cycles.
fn adding_up(design: &mut Design, module: ModuleId, counts: impl Fn(&str) -> bool) -> ModuleId {
    let mut m = ModuleBuilder::new("adding_up");
    let inner = m.instance(design, module, "inner");
    let made = design.modules[module].clone();
    for port in made.inputs.values() {
        let value = m.input(&port.name, port.width);
        m.connect(inner, &port.name, value);
    }
    for port in made.outputs.values() {
        let mut value = m.output_of(inner, &port.name);
        if counts(&port.name) {
            let (register, sum) = m.register(&format!("sum.{}", port.name), 64, Some(0));
            let more = m.resize(value, 64);
            let next = m.add(sum, more);
            m.set_next(register, next);
            value = sum;
        }
        m.output(&port.name, value);
    }
    design.add(m.finish())
}

/// A MAC alone, up and for all frames, and who is at the other end of its link.
fn alone(of: MacLink) -> (Simulator, Wire) {
    let mut design = Design::new();
    let module = mac(&mut design, of);
    design.top = adding_up(&mut design, module, is_counted).into();
    let mut sim = Simulator::new(&design).unwrap_or_else(|errors| panic!("{errors:?}"));
    set(&mut sim, "up", 1);
    set(&mut sim, "port", 0x1234);
    let mut wire = Wire::of(&sim, of.of_devices(), ["rx", "tx"]).unwrap();
    wire.begin(&mut sim);
    sim.step();
    (sim, wire)
}

/// The frame of a number: its length follows from it, and it begins with it.
fn frame(number: usize) -> Vec<u8> {
    let mut frame = vec![0; 60 + 97 * number % 1455];
    frame[..2].copy_from_slice(&(2 * number as u16).to_be_bytes());
    frame
}

/// A beat of a stream that blocks take: what it adds to a frame, and whether that ends.
fn take(sim: &mut Simulator, bytes: &mut Vec<u8>) -> bool {
    let (data, keep) = (get(sim, "m_tdata").to_le_bytes(), get(sim, "m_tkeep"));
    bytes.extend(data.iter().take(keep.trailing_ones() as usize));
    get(sim, "m_tlast") == 1
}

/// Offers a beat to the stream that blocks send.
fn offer(sim: &mut Simulator, bytes: &[u8], is_last: bool, valid: bool) {
    let mut data = [0; 8];
    data[..bytes.len()].copy_from_slice(bytes);
    for (name, value) in [
        ("s_tdata", u64::from_le_bytes(data)),
        ("s_tkeep", u64::MAX >> (64 - bytes.len())),
        ("s_tlast", is_last.into()),
        ("s_tvalid", valid.into()),
    ] {
        set(sim, name, value);
    }
}

#[test]
fn what_a_link_has_broken_goes_no_further_and_is_counted() {
    for of in MacLink::ALL {
        let (mut sim, mut wire) = alone(of);
        let sent = [
            (frame(1), false),
            (frame(2), true),
            (vec![2; 59], false),
            (vec![2; MAX_FRAME + 1], false),
            (vec![2; MAX_FRAME], false),
            (frame(3), false),
        ];
        for (bytes, is_bad) in &sent {
            wire.send(bytes, *is_bad);
        }
        let (mut came, mut bytes, mut idle, mut cycle) = (Vec::new(), Vec::new(), 0, 0usize);
        while idle < 100 {
            wire.begin(&mut sim);
            // Blocks that take two beats of three.
            cycle += 1;
            let ready = !cycle.is_multiple_of(3);
            set(&mut sim, "m_tready", ready.into());
            let valid = get(&mut sim, "m_tvalid") == 1;
            if valid && ready && take(&mut sim, &mut bytes) {
                came.push(std::mem::take(&mut bytes));
            }
            idle = if valid || !wire.is_idle() { 0 } else { idle + 1 };
            sim.step();
        }
        assert!(came == [&sent[0].0, &sent[4].0, &sent[5].0].map(Clone::clone), "{of:?}");
        let counters = ["rx.frames", "rx.bad_check", "rx.runt", "rx.oversize", "rx.lost", "rx.filtered"];
        assert_eq!(counters.map(|name| get(&mut sim, name)), [3, 1, 1, 1, 0, 0], "{of:?}");
    }
}

/// The octets of a frame are those of the places that software had chosen when it began.
#[test]
fn a_frame_has_the_octets_of_one_choice() {
    let mut design = Design::new();
    design.top = selector(&mut design, 1).into();
    let bytes: Vec<u8> = (0..64).map(|at| 100 + at).collect();
    const FIRST: u32 = OCTETS + 8 * (MAX_OCTETS as u32 - 1);
    // The octet that a frame has if the place is another one from this beat on.
    let octet = |places: [u64; 2], from: usize| {
        let mut sim = Simulator::new(&design).unwrap_or_else(|errors| panic!("{errors:?}"));
        set(&mut sim, "m_tready", 1);
        for (number, beat) in bytes.chunks(8).enumerate() {
            set(&mut sim, "octet0", places[usize::from(number >= from)]);
            offer(&mut sim, beat, number == 7, true);
            assert_eq!(get(&mut sim, "s_tready"), 1);
            sim.step();
        }
        set(&mut sim, "s_tvalid", 0);
        while get(&mut sim, "m_tvalid") == 0 {
            sim.step();
        }
        let user = sim.output("m_tuser").unwrap();
        sim.get(user).slice(FIRST + 7, FIRST).to_u64()
    };
    for places in [[50, 13], [13, 50], [3, 40]] {
        assert_eq!(octet(places, 0), Some(100 + places[1]));
        for from in 1..9 {
            assert_eq!(octet(places, from), Some(100 + places[0]), "{places:?}, from beat {from}");
        }
    }
}

#[test]
fn frames_that_blocks_do_not_take_wait_or_are_lost_as_a_whole() {
    let (mut sim, mut wire) = alone(MacLink::Xgmii);
    let frames: Vec<Vec<u8>> = (0..40).map(|number| vec![2 * number; 1000]).collect();
    for bytes in &frames {
        wire.send(bytes, false);
    }
    set(&mut sim, "m_tready", 0);
    for _ in 0..40 * 140 {
        wire.begin(&mut sim);
        sim.step();
    }
    // 16 times 1000 bytes fit into 16384.
    assert_eq!(["rx.frames", "rx.lost"].map(|name| get(&mut sim, name)), [40, 24]);
    set(&mut sim, "m_tready", 1);
    let (mut came, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..16 * 130 {
        if get(&mut sim, "m_tvalid") == 1 && take(&mut sim, &mut bytes) {
            came.push(std::mem::take(&mut bytes));
        }
        sim.step();
    }
    assert!(came == frames[..16]);
}

/// Sends frames to a link that is slower than the stream; gives how many have left, and how many were lost.
fn send(of: MacLink, heeds_room: bool) -> (u64, u64) {
    const FRAMES: usize = 60;
    let (mut sim, mut wire) = alone(of);
    let mut left = Vec::new();
    let (mut number, mut at, mut idle) = (0, 0, 0);
    while idle < 2000 {
        wire.begin(&mut sim);
        let bytes = frame(number);
        let goes = number < FRAMES && (!heeds_room || get(&mut sim, "room") == 1);
        let is_last = at + 8 >= bytes.len();
        offer(&mut sim, &bytes[at..bytes.len().min(at + 8)], is_last, goes);
        if goes && get(&mut sim, "s_tready") == 1 {
            (number, at) = if is_last { (number + 1, 0) } else { (number, at + 8) };
        }
        left.extend(wire.end(&mut sim));
        idle = if number < FRAMES || !wire.is_idle() { 0 } else { idle + 1 };
        sim.step();
    }
    let lost = get(&mut sim, "tx.lost");
    let counted = (get(&mut sim, "tx.frames"), left.len() as u64);
    assert_eq!(counted.0, counted.1);
    assert_eq!(counted.0 + lost, FRAMES as u64);
    assert!(left.iter().all(|frame| !frame.is_bad));
    let mut expected = (0..FRAMES).map(frame);
    assert!(left.iter().all(|frame| expected.any(|sent| sent == frame.bytes)), "another order");
    (counted.0, lost)
}

#[test]
fn who_heeds_the_room_loses_nothing() {
    for of in MacLink::ALL {
        assert_eq!(send(of, true), (60, 0), "{of:?}");
    }
    // 6 KB leave in the time in which 45 KB come, and 16 KiB wait.
    let (left, lost) = send(MacLink::Gmii, false);
    assert!(left > 20 && lost > 20, "{left} have left, {lost} were lost");
}

/// A link takes the first beat of a frame some cycles after it has begun to send: what has begun then ends, whatever becomes of the port.
#[test]
fn a_port_that_goes_down_ends_the_frame_that_has_begun() {
    const FRAMES: usize = 40;
    for (of, pause) in [(MacLink::Xgmii, 37), (MacLink::Gmii, 301), (MacLink::Gmii, 13)] {
        let (mut sim, mut wire) = alone(of);
        let (mut left, mut number, mut at, mut idle, mut cycle) = (Vec::new(), 0, 0, 0, 0);
        while idle < 2000 {
            wire.begin(&mut sim);
            cycle += 1;
            set(&mut sim, "up", u64::from(cycle / pause % 3 != 1));
            let bytes = frame(number);
            let goes = number < FRAMES && get(&mut sim, "room") == 1;
            let is_last = at + 8 >= bytes.len();
            offer(&mut sim, &bytes[at..bytes.len().min(at + 8)], is_last, goes);
            if goes {
                (number, at) = if is_last { (number + 1, 0) } else { (number, at + 8) };
            }
            left.extend(wire.end(&mut sim));
            idle = if number < FRAMES || !wire.is_idle() { 0 } else { idle + 1 };
            sim.step();
        }
        let [sent, down, lost] = ["tx.frames", "tx.down", "tx.lost"].map(|name| get(&mut sim, name));
        assert!(left.iter().all(|frame| !frame.is_bad), "{of:?}, {pause}: a broken frame");
        assert_eq!([sent, sent + down, lost], [left.len() as u64, FRAMES as u64, 0], "{of:?}, {pause}");
        assert!(sent > 5 && down > 5, "{of:?}, {pause}: {sent} were sent, {down} were not");
    }
}

#[test]
fn a_queue_before_a_mac_loses_what_the_link_cannot_take() {
    const FILE: &str = r#"
        [[device]]
        name = "board"
        [[service]]
        name = "service"
        [[function]]
        name = "all"
        service = "service"
        device = "board"
        placement = "hardware"
        [[block]]
        name = "p0"
        function = "all"
        kind = "mac"
        port = 0
        [[block]]
        name = "p1"
        function = "all"
        kind = "mac"
        port = 1
        [[block]]
        name = "q"
        function = "all"
        kind = "queue"
        frames = 20
        bytes = "8KiB"
        [[block]]
        name = "s"
        function = "all"
        kind = "scheduler"
        ports = 1
        [[connection]]
        from = "p0.rx"
        to = "q.in"
        [[connection]]
        from = "p1.rx"
        to = "q.in"
        [[connection]]
        from = "q.out"
        to = "s.in0"
        [[connection]]
        from = "s.out"
        to = "p0.tx"
    "#;
    const FRAMES: usize = 150;
    let node = NodeFile::parse("node.toml", FILE).unwrap_or_else(|why| panic!("{}", why.render(false)));
    let top = Top::new(&node, &Programs::default(), 0, Bus::Axi4Lite).unwrap().unwrap();
    assert!(top.inputs.is_empty() && top.outputs.is_empty());
    // The blocks without the bus: their registers are ports.
    let mut design = top.design.clone();
    let blocks = design.module_named("blocks").unwrap();
    let counts =
        |name: &str| name.split_once('.').is_some_and(|(_, name)| name == "lost" || is_counted(name));
    design.top = adding_up(&mut design, blocks, counts).into();
    let mut sim = Simulator::new(&design).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut wires = ["p0", "p1"]
        .map(|name| Wire::of(&sim, Link::Xgmii, [&format!("{name}.rx"), &format!("{name}.tx")]).unwrap());
    ["p0.up", "p1.up"].into_iter().for_each(|name| set(&mut sim, name, 1));
    for wire in &mut wires {
        wire.begin(&mut sim);
        for number in 0..FRAMES {
            wire.send(&frame(number), false);
        }
    }
    sim.step();
    let (mut left, mut idle) = (Vec::new(), 0);
    while idle < 2000 {
        wires.iter_mut().for_each(|wire| wire.begin(&mut sim));
        idle = if wires.iter().all(Wire::is_idle) { idle + 1 } else { 0 };
        left.extend(wires[0].end(&mut sim));
        sim.step();
    }
    let [came0, came1, lost0, lost1, refused, sent, lost] =
        ["p0.rx.frames", "p1.rx.frames", "p0.rx.lost", "p1.rx.lost", "q.lost", "p0.tx.frames", "p0.tx.lost"]
            .map(|name| get(&mut sim, name));
    assert_eq!([came0, came1, lost, sent], [FRAMES as u64, FRAMES as u64, 0, left.len() as u64]);
    assert_eq!(lost0 + lost1 + refused + sent, came0 + came1);
    assert!(refused > 0 && sent > FRAMES as u64 / 2 && left.iter().all(|frame| !frame.is_bad));
}

const SIGNALS: [&str; 4] = ["tdata", "tkeep", "tlast", "tuser"];

/// A stream as whoever is at its other end has it.
struct Stream {
    name: String,
    /// The beat that is offered, with its facts; and what of its frame is left.
    beat: Option<Vec<Bits>>,
    left: usize,
    /// It takes a beat in this cycle.
    ready: bool,
}

impl Stream {
    fn all(design: &Design, module: ModuleId, is_input: bool) -> Vec<Stream> {
        let module = &design.modules[module];
        let valids: Vec<&str> = match is_input {
            true => module.inputs.values().filter_map(|port| port.name.strip_suffix("_tvalid")).collect(),
            false => module.outputs.values().filter_map(|port| port.name.strip_suffix("_tvalid")).collect(),
        };
        valids
            .into_iter()
            .map(|name| Stream { name: name.to_owned(), beat: None, left: 0, ready: false })
            .collect()
    }

    fn signal(&self, what: &str) -> String {
        format!("{}_{what}", self.name)
    }

    /// The beat that leaves by it.
    fn now(&self, sim: &mut Simulator) -> Option<Vec<Bits>> {
        let signals = SIGNALS.map(|what| sim.output(&self.signal(what)));
        (get(sim, &self.signal("tvalid")) == 1)
            .then(|| signals.into_iter().flatten().map(|of| sim.get(of)).collect())
    }
}

/// A beat that a block offers stays as it is until it is taken, whatever comes meanwhile: who takes it may have looked at it. Schedulers
/// alone choose in the last moment.
#[test]
fn a_beat_that_is_offered_stays() {
    let mut rng = Rng::new(7);
    let mut design = Design::new();
    let modules = [
        merge(&mut design, 3),
        tcam(&mut design, 4),
        demultiplexer(&mut design, 3),
        selector(&mut design, 3),
        queue(&mut design, 8, 1 << 14),
    ];
    for module in modules {
        design.top = module.into();
        let name = design.modules[module].name.clone();
        let mut sim = Simulator::new(&design).unwrap_or_else(|errors| panic!("{errors:?}"));
        let mut inputs = Stream::all(&design, module, true);
        let mut outputs = Stream::all(&design, module, false);
        let mut taken = 0;
        for cycle in 0..20_000 {
            for input in &mut inputs {
                if input.beat.is_none() && rng.below(3) > 0 {
                    if input.left == 0 {
                        input.left = 1 + rng.below(9);
                    }
                    input.left -= 1;
                    // The targets of a frame are the same in all of its beats: here of all frames.
                    let values = [rng.next_u64(), 0xff, u64::from(input.left == 0), 0x8000_0005];
                    for (what, value) in SIGNALS.into_iter().zip(values) {
                        set(&mut sim, &input.signal(what), value);
                    }
                    input.beat = Some(Vec::new());
                }
                set(&mut sim, &input.signal("tvalid"), u64::from(input.beat.is_some()));
            }
            for output in &mut outputs {
                output.ready = rng.below(3) == 0;
                set(&mut sim, &output.signal("tready"), output.ready.into());
            }
            for output in &mut outputs {
                let now = output.now(&mut sim);
                assert!(
                    output.beat.is_none() || output.beat == now,
                    "{name}, cycle {cycle}: {}",
                    output.name
                );
                taken += u32::from(now.is_some() && output.ready);
                output.beat = now.filter(|_| !output.ready);
            }
            for input in &mut inputs {
                if get(&mut sim, &input.signal("tready")) == 1 {
                    input.beat = None;
                }
            }
            sim.step();
        }
        assert!(taken > 1500, "{name}: {taken} beats");
    }
}

/// Streams that always have a frame are sent in turn.
#[test]
fn a_merge_starves_no_stream() {
    let mut design = Design::new();
    design.top = merge(&mut design, 3).into();
    let mut sim = Simulator::new(&design).unwrap_or_else(|errors| panic!("{errors:?}"));
    set(&mut sim, "m_tready", 1);
    let mut left = [3u64; 3];
    let mut sent = Vec::new();
    for _ in 0..60 {
        for (at, left) in left.iter().enumerate() {
            set(&mut sim, &format!("s{at}_tvalid"), 1);
            set(&mut sim, &format!("s{at}_tdata"), at as u64);
            set(&mut sim, &format!("s{at}_tlast"), u64::from(*left == 1));
        }
        if get(&mut sim, "m_tlast") == 1 {
            sent.push(get(&mut sim, "m_tdata"));
        }
        for (at, left) in left.iter_mut().enumerate() {
            if get(&mut sim, &format!("s{at}_tready")) == 1 {
                *left = if *left == 1 { 3 } else { *left - 1 };
            }
        }
        sim.step();
    }
    assert_eq!(sent.len(), 20);
    assert!(sent.windows(3).all(|turn| turn.iter().sum::<u64>() == 3 && turn[0] != turn[1]), "{sent:?}");
}
