//! Messages to the control plane: the same from every engine, in order, lost alike when they are too many, and sent without the
//! allocator.

use millrace_dataplane::{DigestMessage, EngineKind, Switch, SwitchConfig};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{text, verify};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

/// The first byte says how many messages a packet sends, 0 to 2; one of 3 sends one and is dropped.
const PROGRAM: &str = "
program messages
architecture test
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument)
on_reject drop
ingress (parse, ingress, deparse)
egress ()

intrinsic ingress_port = came
intrinsic parser_error = error
intrinsic egress_spec = port
intrinsic drop = drop

header h: h_t {
    count: bit<8>
    station: bit<48>
    wide: bit<200>
}
metadata error: bit<16>
metadata port: bit<32>
metadata drop: bool
metadata came: bit<32>
digest learn_t (station: bit<48>, port: bit<32>, is_first: bool, wide: bit<200>) receiver 1
digest count_t (count: bit<8>) receiver 2

body parser parse {
block0 state start:
    extract h
    end
}

body control ingress {
block0:
    port = 32w2
    select (h.count) {
        8w0 => block1
        8w1 => block2
        8w2 => block3
        default => block4
    }
block1:
    end
block2:
    digest learn_t, (h.station, came, true, h.wide)
    end
block3:
    digest learn_t, (h.station, came, false, h.wide)
    digest count_t, (h.count)
    end
block4:
    drop = true
    digest count_t, (h.count)
    end
}

body deparser deparse {
block0:
    emit h
    end
}
";

/// Counts what each thread asks of the allocator.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn ask() {
    // A thread that ends has none of its own any more.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

#[expect(unsafe_code, reason = "an allocator is")]
// SAFETY: all is done by the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ask();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ask();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ask();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The same with longer messages, and a number of varying length in them.
fn longer() -> String {
    let stations = ", h.station".repeat(20);
    let members: String = (0..20).map(|at| format!(", s{at}: bit<48>")).collect();
    let argument = |text: &str| text.replace("h.wide)", &format!("o.options{stations})"));
    argument(PROGRAM)
        .replace("metadata error", "header o: o_t {\n    options: varbit<320>\n}\nmetadata error")
        .replace("wide: bit<200>)", &format!("options: varbit<320>{members})"))
        .replace("    extract h\n", "    extract h\n    extract_var o, mul(zext(h.count, 32), 32w56)\n")
        .replace("    emit h\n", "    emit h\n    emit o\n")
}

fn switch(engine: EngineKind, program: &str) -> Switch {
    let program = text::parse(program).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    Switch::new(Arc::new(program), SwitchConfig { engine, ..SwitchConfig::default() }).unwrap()
}

/// A burst of packets, ready to be switched as often as wanted.
struct Packets {
    memory: Vec<u8>,
    places: Vec<Place>,
}

impl Packets {
    /// Packets that send so many messages, and have a station with a number.
    fn new(counts: impl Iterator<Item = u8>) -> Packets {
        let (mut memory, mut places) = (Vec::new(), Vec::new());
        for (number, count) in counts.enumerate() {
            memory.resize(memory.len() + HEADROOM, 0);
            places.push(Place { at: memory.len() as u32, len: 64 });
            memory.extend_from_slice(&[count, 0, 0, 0, 0, 0, number as u8]);
            memory.extend_from_slice(&[0x80 | number as u8; 57]);
            memory.resize(memory.len() + TAILROOM, 0);
        }
        Packets { memory, places }
    }

    /// Switches them; gives how many left, and how often the allocator was asked.
    fn pass(&mut self, switch: &mut Switch) -> (usize, usize) {
        let mut sent = 0;
        let before = ASKED.get();
        let mut burst = Burst::new(&mut self.memory, &self.places, HEADROOM).unwrap();
        switch.switch_burst(4, &mut burst, |_, _| sent += 1);
        (sent, ASKED.get() - before)
    }
}

#[test]
fn a_message_does_not_ask_the_allocator() {
    let mut switch = switch(EngineKind::Jit, PROGRAM);
    let mut packets = Packets::new((0..64).map(|number| number % 4));
    for round in 0..50 {
        let (sent, asked) = packets.pass(&mut switch);
        assert_eq!(sent, 48);
        // In the first rounds code is made, and what a burst needs.
        assert!(round < 8 || asked == 0, "round {round}: the allocator was asked {asked} times");
        // Messages of several bursts wait now and then.
        if round % 3 == 0 {
            assert_eq!(switch.take_messages().0.len() % 64, 0);
        }
        assert_eq!(switch.take_lost(), 0);
    }
    // The interpreter does, so asking is counted.
    assert!(packets.pass(&mut self::switch(EngineKind::Interp, PROGRAM)).1 > 64);
}

/// The messages of packets, in order, and how many were lost.
fn said(engine: EngineKind, program: &str, counts: &[u8], rounds: usize) -> (Vec<DigestMessage>, u64) {
    let mut switch = switch(engine, program);
    let mut packets = Packets::new(counts.iter().copied());
    for _ in 0..rounds {
        packets.pass(&mut switch);
    }
    assert!(switch.has_messages());
    let said = (switch.take_messages().0.collect(), switch.take_lost());
    assert!(!switch.has_messages());
    said
}

#[test]
fn engines_send_the_same_messages() {
    let counts = [2, 0, 1, 3, 1, 2];
    let (wanted, lost) = said(EngineKind::Interp, PROGRAM, &counts, 3);
    assert_eq!((wanted.len(), lost), (3 * 7, 0));
    assert_eq!(wanted[0].values[0].as_bits().to_u64(), Some(0));
    assert_eq!(wanted[2].values[0].as_bits().to_u64(), Some(2));
    assert_eq!(wanted[2].values[1].as_bits().to_u64(), Some(4));
    assert!(!wanted[0].values[2].as_bool() && wanted[2].values[2].as_bool());
    for &engine in EngineKind::HERE {
        assert_eq!(said(engine, PROGRAM, &counts, 3), (wanted.clone(), 0), "{engine:?}");
    }
    let longer = longer();
    let (wanted, _) = said(EngineKind::Interp, &longer, &counts, 3);
    let lengths = wanted.iter().filter_map(|message| match message.values.get(3) {
        Some(Value::Varbit(options)) => Some(options.len()),
        _ => None,
    });
    assert_eq!(lengths.take(4).collect::<Vec<_>>(), [112, 56, 56, 112]);
    for &engine in EngineKind::HERE {
        assert_eq!(said(engine, &longer, &counts, 3), (wanted.clone(), 0), "{engine:?}");
    }
}

/// One of `learn_t` takes 49 words, one of `count_t` three, all together 16 MiB.
#[test]
fn engines_lose_the_same_messages() {
    let bursts = 640;
    let kept = 2 * ((16 << 20) / 8 / (49 + 3));
    for &engine in EngineKind::HERE {
        let (messages, lost) = said(engine, &longer(), &[2; 64], bursts);
        assert_eq!((messages.len(), lost), (kept, (bursts * 128 - kept) as u64), "{engine:?}");
    }
}
