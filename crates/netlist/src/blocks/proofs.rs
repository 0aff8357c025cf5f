//! What holds of the blocks in every run: Yosys proves that a monitor never sees anything wrong, by induction or for the first cycles.

use super::Discipline;
use crate::{Design, ModuleId, Op, verilog};
use std::process::Command;

/// Proves that `fault` is never 1 in a design, or says what Yosys says. Nothing is proven without Yosys.
fn prove(design: &Design) -> Result<(), String> {
    ask(design, None)
}

/// By induction, or for so many cycles from the reset on.
fn ask(design: &Design, cycles: Option<u32>) -> Result<(), String> {
    if Command::new("yosys").arg("-V").output().is_err() {
        eprintln!("skipped: yosys is not installed (Debian package yosys)");
        return Ok(());
    }
    crate::verify(design).map_err(|errors| format!("{errors:?}"))?;
    let [file] = verilog::print(design).try_into().map_err(|_| "one module")?;
    let path =
        std::env::temp_dir().join(format!("millrace-proof-{}-{}", std::process::id(), file.file_name()));
    std::fs::write(&path, &file.text).map_err(|error| error.to_string())?;
    // The reset is never active: it brings back the first state.
    let (how, success) = match cycles {
        None => ("-tempinduct -maxsteps 6".to_owned(), "Induction step proven: SUCCESS!"),
        Some(cycles) => (format!("-seq {cycles}"), "SAT proof finished - no model found: SUCCESS!"),
    };
    let script = format!(
        "read_verilog -sv {}; prep -flatten -top {}; memory_map; opt -full; sat -verify {how} -set rst 0 -prove fault 0",
        path.display(),
        file.module
    );
    let output = Command::new("yosys").args(["-p", &script]).output().map_err(|error| error.to_string())?;
    let _ = std::fs::remove_file(&path);
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat();
    match output.status.success() && said.contains(success) {
        true => Ok(()),
        false => Err(said),
    }
}

#[test]
fn axi4_lite_answers_each_request_once() {
    prove(&super::registers::tests::monitored()).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn a_queue_loses_doubles_and_reorders_nothing() {
    prove(&super::fifo::tests::monitored()).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn a_round_robin_starves_nobody() {
    prove(&super::arbiter::tests::monitored()).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn a_scheduler_starves_nobody() {
    use super::scheduler::tests::monitored;
    for discipline in [None, Some(Discipline::RoundRobin), Some(Discipline::Deficit)] {
        prove(&monitored(discipline)).unwrap_or_else(|said| panic!("{discipline:?}: {said}"));
    }
}

#[test]
fn a_mac_gives_each_word_of_a_frame_once() {
    prove(&super::xgmii::monitor::monitored()).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn a_mac_gives_each_octet_of_a_frame_once() {
    prove(&super::gmii::monitor::monitored()).unwrap_or_else(|said| panic!("{said}"));
}

/// Two words of a frame and three new bytes are enough for each case of the editor: new bytes that end within a beat or with it, old ones
/// that move to the front, the back or not at all, a word before the first beat, a beat after the last word, no byte at all. In so many
/// cycles the longest frame leaves with two pauses, and shorter ones follow each other. 14 cycles were proven once, in a minute.
const CYCLES: u32 = 9;

#[test]
fn an_editor_gives_each_byte_of_a_frame_once() {
    ask(&super::editor::monitor::monitored(), Some(CYCLES)).unwrap_or_else(|said| panic!("{said}"));
}

/// So many cycles have a frame with its gap and the begin of another one, as early as it may be; frames with padding and without, and those
/// that end in any lane of a word. 24 cycles, two whole frames, were proven once, in three minutes.
const CYCLES_OF_SENDING: u32 = 16;
/// So many cycles have the shortest frame of a sender of octets, and the begin of another one.
const CYCLES_OF_OCTETS: u32 = 42;
/// These have the begin of a frame, and its end. The whole takes a minute for each sender.
const FEWER_OF_SENDING: u32 = 12;
const FEWER_OF_OCTETS: u32 = 28;

#[test]
fn a_mac_sends_each_byte_of_a_frame_once() {
    ask(&super::xgmii::sent::monitored(), Some(FEWER_OF_SENDING)).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn a_mac_sends_each_octet_of_a_frame_once() {
    ask(&super::gmii::sent::monitored(), Some(FEWER_OF_OCTETS)).unwrap_or_else(|said| panic!("{said}"));
}

#[test]
#[ignore = "minutes: cargo test -p millrace-netlist --lib -- --ignored"]
fn macs_send_frames_that_follow_each_other() {
    ask(&super::xgmii::sent::monitored(), Some(CYCLES_OF_SENDING)).unwrap_or_else(|said| panic!("{said}"));
    ask(&super::gmii::sent::monitored(), Some(CYCLES_OF_OCTETS)).unwrap_or_else(|said| panic!("{said}"));
    // The next frame comes too early.
    let broken = stuck(super::gmii::sent::monitored(), "gap");
    assert!(ask(&broken, Some(CYCLES_OF_OCTETS)).is_err());
}

/// A design with a register that keeps its first value.
fn stuck(mut design: Design, name: &str) -> Design {
    let module = &mut design.modules[ModuleId::from_u32(0)];
    let (id, _) = module.registers.iter().find(|(_, register)| register.name == name).unwrap();
    let (value, _) = module.nodes.iter().find(|(_, node)| node.op == Op::Register(id)).unwrap();
    module.registers[id].next = value.into();
    design
}

/// What is wrong is found: monitors and proofs can fail.
#[test]
fn faults_are_found() {
    find_faults(FAULTS_OF_A_BLOCK);
}

#[test]
#[ignore = "minutes: cargo test -p millrace-netlist --lib -- --ignored"]
fn all_faults_are_found() {
    find_faults(usize::MAX);
}

/// So many faults of each block are tried in any case.
const FAULTS_OF_A_BLOCK: usize = 2;

/// Breaks each block by registers that are stuck, of these at most so many of each.
fn find_faults(most: usize) {
    if Command::new("yosys").arg("-V").output().is_err() {
        return;
    }
    for register in ["head", "tail", "stored", "valid"].into_iter().take(most) {
        assert!(prove(&stuck(super::fifo::tests::monitored(), register)).is_err(), "{register}");
    }
    assert!(prove(&stuck(super::arbiter::tests::monitored(), "mask")).is_err(), "mask");
    for register in ["has_address", "answers", "address", "reads", "gives", "given"].into_iter().take(most) {
        assert!(prove(&stuck(super::registers::tests::monitored(), register)).is_err(), "{register}");
    }
    for register in ["inside", "holds", "held", "closes", "word_full"].into_iter().take(most) {
        assert!(prove(&stuck(super::xgmii::monitor::monitored(), register)).is_err(), "{register}");
    }
    for register in ["ready", "inside", "given", "bytes", "line", "lane3"].into_iter().take(most) {
        assert!(prove(&stuck(super::gmii::monitor::monitored(), register)).is_err(), "{register}");
    }
    for register in ["left", "before", "ended", "rest", "turn", "out", "is_end"].into_iter().take(most) {
        let broken = stuck(super::editor::monitor::monitored(), register);
        assert!(ask(&broken, Some(CYCLES)).is_err(), "{register}");
    }
    for register in ["step", "padding", "left", "check", "is_last"].into_iter().take(most) {
        let broken = stuck(super::gmii::sent::monitored(), register);
        assert!(ask(&broken, Some(FEWER_OF_OCTETS)).is_err(), "{register}");
    }
    for register in ["gap", "word", "planned_shift", "before"].into_iter().take(most) {
        let broken = stuck(super::xgmii::sent::monitored(), register);
        assert!(ask(&broken, Some(CYCLES_OF_SENDING)).is_err(), "{register}");
    }
    for (discipline, registers) in [
        (None, &["count1", "ring1", "filled0"][..]),
        (Some(Discipline::RoundRobin), &["ring0"]),
        (
            Some(Discipline::Deficit),
            &["given", "filled1", "looked_has", "compared_covered", "turn_passes", "age"],
        ),
    ] {
        for register in registers.iter().take(most) {
            let broken = stuck(super::scheduler::tests::monitored(discipline), register);
            assert!(prove(&broken).is_err(), "{discipline:?} {register}");
        }
    }
}
