//! Slots of simulated hardware: each switch of a device is a simulation of its program's hardware, and is exchanged while others run.

mod lab;

use lab::*;
use millrace_ctl_api::{Answer, Request};
use std::sync::atomic::{AtomicBool, Ordering};

const SLOTS: u16 = 13;

fn slots() -> String {
    let names = (1..=SLOTS).map(|slot| switch(&format!("s{slot}"), slot, CROSS_FILE));
    file("", &names.map(|switch| switch.replace("\"interp\"", "\"rtl\"")).collect::<String>())
}

/// 13 slots under load, of which one is swapped: no frame of the others is lost or comes in another order, and those of the slot are lost
/// at most while it is exchanged, which is told.
#[test]
fn a_slot_is_exchanged_while_the_others_forward() {
    let lab = Lab::new(&slots());
    let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
    assert_eq!(list.len(), usize::from(SLOTS));
    assert!(list.iter().all(|switch| switch.engine == "rtl" && switch.silent.is_none()), "{list:?}");
    let changed = include_str!("programs/steer.p4")
        .replace("send(bit<9> port) {", "send(bit<9> port) { hdr.ethernet.src = 7;");
    let swap =
        Request::Swap { switch: "s7".into(), program: changed, keep_everything: true, probation: None };
    let (is_swapped, mut sent) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            lab.change(&swap);
            is_swapped.store(true, Ordering::Release);
        });
        // Before, while and after.
        let mut after = 0;
        while after < 3 {
            after += u16::from(is_swapped.load(Ordering::Acquire));
            lab.cables[0].send((1..=SLOTS).map(|slot| frame(slot, sent)));
            sent += 1;
            // As fast as they are simulated: what waits is bounded.
            wait_for(|| lab.cables[1].waiting() >= usize::from(SLOTS * sent));
        }
    });
    let came = lab.cables[1].receive(usize::from(SLOTS * sent));
    for slot in 1..=SLOTS {
        let of_slot: Vec<Vec<u8>> = came.iter().filter(|frame| frame[15] as u16 == slot).cloned().collect();
        assert_eq!(numbers(&of_slot), (0..sent).collect::<Vec<_>>(), "slot {slot}");
        let changed = of_slot.iter().filter(|frame| frame[6..12] == [0, 0, 0, 0, 0, 7]).count();
        assert_eq!(changed >= 3, slot == 7, "slot {slot}: {changed}");
        let first_changed = of_slot.iter().position(|frame| frame[6..12] == [0, 0, 0, 0, 0, 7]);
        assert!(first_changed.is_none_or(|first| first + changed == of_slot.len()), "slot {slot}");
    }
    assert!((1..=SLOTS).all(|slot| lab.counts(&format!("s{slot}")).drops.is_empty()));
}

/// A program that hardware cannot have is refused with its construct, and what ran goes on.
#[test]
fn what_hardware_cannot_have_leaves_a_slot_as_it_was() {
    let lab = Lab::new(&slots());
    let plain = include_str!("programs/steer.p4");
    // A product of more bits than multipliers in hardware have.
    let program = plain.replace(
        "send(bit<9> port) {",
        "send(bit<9> port) { bit<2048> wide = (bit<2048>)hdr.ethernet.src; hdr.ethernet.src = (bit<48>)(wide * wide * wide);",
    );
    assert_ne!(program, plain);
    let swap = Request::Swap { switch: "s1".into(), program, keep_everything: true, probation: None };
    let refused = lab.refused(&swap);
    assert!(refused.message.contains("hardware"), "{refused:?}");
    lab.cables[0].send([frame(1, 5)]);
    assert_eq!(numbers(&lab.cables[1].receive(1)), [5]);
}
