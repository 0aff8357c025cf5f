//! Units next to plain models: a request in every cycle in which one may come, few cells, software in between.

use super::super::*;
use super::*;
use crate::software_port::READ_LATENCY;
use millrace_netlist::{Design, SignalId, Simulator};
use millrace_pipeline::arbitrary::Rng;
use millrace_state::{AccountConfig, AccountTest, Color, Meter as PlainMeter, MeterRates, Rate};
use std::collections::VecDeque;

/// A unit in simulation.
struct Bench {
    sim: Simulator,
}

impl Bench {
    fn new(unit: &ObjectUnit) -> Bench {
        let mut design = Design::new();
        design.add(unit.module("unit"));
        Bench { sim: Simulator::new(&design).unwrap_or_else(|errors| panic!("{errors:?}")) }
    }

    fn input(&self, name: &str) -> SignalId {
        self.sim.input(name).unwrap_or_else(|| panic!("no input {name}"))
    }

    fn set(&mut self, name: &str, value: u64) {
        let signal = self.input(name);
        self.sim.set_u64(signal, value);
    }

    fn set_bits(&mut self, name: &str, value: &Bits) {
        let signal = self.input(name);
        self.sim.set(signal, value);
    }

    fn get(&mut self, name: &str) -> Bits {
        let signal = self.sim.output(name).unwrap_or_else(|| panic!("no output {name}"));
        self.sim.get(signal)
    }

    /// Writes as software does, and waits until it is done.
    fn write(&mut self, address: u64, data: &Bits) {
        self.set("write_enable", 1);
        self.set("write_address", address);
        self.set_bits("write_data", data);
        self.sim.step();
        self.set("write_enable", 0);
        while self.sim.output("busy").is_some() && !self.get("busy").is_zero() {
            self.sim.step();
        }
    }

    fn read(&mut self, address: u64) -> Bits {
        self.set("read_enable", 1);
        self.set("read_address", address);
        self.sim.step();
        self.set("read_enable", 0);
        for _ in 1..READ_LATENCY {
            self.sim.step();
        }
        self.get("read_data")
    }

    fn collisions(&self) -> u64 {
        self.sim.collisions()
    }
}

/// Each answer has what was written in all cycles before its own.
#[test]
fn registers_answer_with_what_was_written_last() {
    for one_read in [false, true] {
        let mut bench = Bench::new(&register(5, one_read));
        let mut rng = Rng::new(1);
        let mut cells = [77u64; 5];
        // Requests of the last two cycles: the port and the index, if there was one.
        let mut asked: VecDeque<Vec<(usize, u64)>> = VecDeque::from([Vec::new(), Vec::new()]);
        let mut waiting: Option<(u64, u64)> = None;
        for _ in 0..4000 {
            let due = asked.pop_front().unwrap();
            for (port, index) in due {
                let wanted = cells.get(index as usize).copied().unwrap_or(0);
                let found = bench.get(&format!("slot{port}_answer"));
                assert_eq!(found.to_u64_saturating(), wanted);
            }
            let mut now = Vec::new();
            let first = rng.below(2);
            for port in 0..2 {
                let enable = rng.one_in(2) && (!one_read || port == first);
                let index = rng.below(7) as u64;
                bench.set(&format!("slot{port}_enable"), enable.into());
                bench.set(&format!("slot{port}_input0"), index);
                if enable {
                    now.push((port, index));
                }
            }
            asked.push_back(now);
            let (writes, index, value) = (!rng.one_in(3), rng.below(7) as u64, rng.next_u64() >> 24);
            bench.set("slot2_enable", writes.into());
            bench.set("slot2_input0", index);
            bench.set("slot2_input1", value);
            // Software waits for a cycle without a write of the pipeline.
            if let Some((cell, value)) = waiting
                && !(writes && index < 5)
            {
                cells[cell as usize] = value;
                waiting = None;
            }
            let comes = waiting.is_none() && rng.one_in(8);
            bench.set("write_enable", comes.into());
            if comes {
                let (cell, value) = (rng.below(5) as u64, rng.next_u64() >> 24);
                bench.set("write_address", cell);
                bench.set("write_data", value);
                waiting = Some((cell, value));
            }
            if writes && index < 5 {
                cells[index as usize] = value;
            }
            bench.sim.step();
        }
        assert_eq!(bench.collisions(), 0);
        bench.set("slot2_enable", 0);
        bench.set("write_enable", 0);
        (0..4).for_each(|_| bench.sim.step());
        if let Some((cell, value)) = waiting {
            cells[cell as usize] = value;
        }
        for (index, value) in cells.into_iter().enumerate() {
            assert_eq!(bench.read(index as u64).to_u64_saturating(), value, "cell {index}");
        }
    }
}

#[test]
fn counters_lose_nothing_and_wrap() {
    let mut bench = Bench::new(&counter(6));
    let mut rng = Rng::new(2);
    let mut counts = [(0u64, 0u64); 6];
    bench.write(4, &Bits::new(128, u128::from(u64::MAX - 5) << 64 | u128::from(u64::MAX)));
    counts[4] = (u64::MAX, u64::MAX - 5);
    for _ in 0..3000 {
        let port = rng.below(2);
        for other in 0..2 {
            bench.set(&format!("slot{other}_enable"), u64::from(other == port && !rng.one_in(5)));
        }
        let (index, bytes) = (rng.below(8) as u64, rng.next_u64() >> 40);
        bench.set(&format!("slot{port}_input0"), index);
        bench.set(&format!("slot{port}_input1"), bytes);
        let enable = bench.input(&format!("slot{port}_enable"));
        if bench.sim.get_u64(enable) == 1
            && let Some((packets, all)) = counts.get_mut(index as usize)
        {
            (*packets, *all) = (packets.wrapping_add(1), all.wrapping_add(bytes));
        }
        bench.sim.step();
    }
    (0..2).for_each(|port| bench.set(&format!("slot{port}_enable"), 0));
    (0..4).for_each(|_| bench.sim.step());
    for (index, (packets, bytes)) in counts.into_iter().enumerate() {
        let wanted = Bits::new(128, u128::from(bytes) << 64 | u128::from(packets));
        assert_eq!(bench.read(index as u64), wanted, "counter {index}");
    }
    assert!(counts[4].0 < 3000, "it has wrapped");
    assert_eq!(bench.collisions(), 0);
}

/// Software's writes go in while the pipeline counts, in the order in which they come.
#[test]
fn writes_wait_for_the_pipeline() {
    let mut bench = Bench::new(&counter(6));
    bench.set("slot0_enable", 1);
    bench.set("slot0_input0", 0);
    bench.set("slot0_input1", 10);
    (0..5).for_each(|_| bench.sim.step());
    for (at, value) in [(1, 5), (1, 6), (2, 7)] {
        bench.set("write_enable", 1);
        bench.set("write_address", at);
        bench.set("write_data", value);
        bench.sim.step();
    }
    bench.set("write_enable", 0);
    for _ in 0..3 {
        assert!(!bench.get("busy").is_zero(), "the pipeline has the memory in every cycle");
        bench.sim.step();
    }
    bench.set("slot0_enable", 0);
    (0..8).for_each(|_| bench.sim.step());
    assert!(bench.get("busy").is_zero());
    let read = [0, 1, 2].map(|at| bench.read(at).slice(63, 0).to_u64_saturating());
    assert_eq!(read, [11, 6, 7]);
}

/// Packets two cycles apart or more, to three meters of which one has no configuration.
#[test]
fn meters_color_as_the_software_does() {
    for measure in [Measure::Bytes, Measure::Packets, Measure::Account] {
        let packets = measure == Measure::Packets;
        let mut bench = Bench::new(&meter(3, measure));
        let mut rng = Rng::new(3 + measure as u64);
        let mut plain = [PlainMeter::default(); 3];
        let scale = if packets { 1 } else { 500 };
        for (cell, cir) in [(0, 3_000_000), (1, 20_000_001)] {
            let rates = MeterRates {
                cir: Rate::per_second_millionths(cir * scale * 1_000_000),
                cbs: 3 * scale,
                pir: Rate::per_second_millionths(cir * scale * 2_500_000),
                pbs: 5 * scale,
            };
            let test = [AccountTest::Both, AccountTest::Frames][cell as usize];
            let account = AccountConfig::new(10_000 + cell * 7, 3_000_000 * cell, 1471, test).unwrap();
            let config = if measure == Measure::Account { account.into() } else { rates.into() };
            plain[cell as usize].configure(Some(config)).unwrap();
            let mut words = Vec::new();
            sync::meter_words(&mut words, measure, (cell, Some(plain[cell as usize])), Default::default());
            words.iter().for_each(|(at, word)| bench.write(*at, word));
        }
        let mut coming: VecDeque<(u64, Color)> = VecDeque::new();
        let (mut now, mut last, mut colors) = (1_000_000_000_000u64, 0, [0u64; 3]);
        for cycle in 0..6000u64 {
            if let Some((_, color)) = coming.pop_front_if(|(due, _)| *due == cycle) {
                assert_eq!(bench.get("slot0_answer").to_u64_saturating(), color as u64, "cycle {cycle}");
            }
            let enable = cycle >= last + 2 && !rng.one_in(3);
            bench.set("slot0_enable", enable.into());
            if enable {
                last = cycle;
                // Time may run backwards.
                let time = if rng.one_in(9) { now - 40 } else { now };
                let (cell, bytes) = (rng.below(4) as u64, 64 + rng.below(1400) as u64);
                // More than any account has.
                let bytes = if rng.one_in(40) { u64::from(u32::MAX) - bytes } else { bytes };
                let before = [Color::Green, Color::Yellow, Color::Red][rng.below(9) / 4];
                for (at, value) in [cell, bytes, before as u64, time].into_iter().enumerate() {
                    bench.set(&format!("slot0_input{at}"), value);
                }
                let units = if packets { 1 } else { bytes };
                let color = match plain.get_mut(cell as usize) {
                    Some(meter) => meter.execute(time, units, before),
                    None => Color::Green,
                };
                colors[color as usize] += u64::from(cell < 3);
                coming.push_back((cycle + u64::from(crate::stage::METER_LATENCY), color));
            }
            now += if rng.one_in(500) { 20_000 } else { rng.below(120) as u64 };
            bench.sim.step();
        }
        bench.set("slot0_enable", 0);
        (0..12).for_each(|_| bench.sim.step());
        let mut counted = [0; 3];
        for (cell, meter) in (0..).zip(&plain) {
            let mut words = Vec::new();
            sync::meter_words(&mut words, measure, (cell, Some(*meter)), Default::default());
            for (at, word) in words.into_iter().filter(|(at, _)| at % meter_part::ALL < meter_part::COUNTS) {
                assert_eq!(bench.read(at), word, "part {at}");
            }
            for (color, counted) in (0..).zip(&mut counted) {
                let read = bench.read(cell * meter_part::ALL + meter_part::COUNTS + color);
                *counted += read.slice(63, 0).to_u64_saturating();
            }
        }
        assert_eq!(counted, colors);
        // An account makes no packet yellow.
        let rare = colors.iter().filter(|count| **count < 50).count();
        assert_eq!(rare, usize::from(measure == Measure::Account), "{colors:?}");
        assert_eq!(bench.collisions(), 0);
    }
}

#[test]
fn messages_come_in_order_and_what_is_lost_is_counted() {
    let mut bench = Bench::new(&messages(8));
    let mut rng = Rng::new(4);
    let (mut queue, mut lost) = (VecDeque::new(), 0);
    // The answers that are on their way.
    let mut due: VecDeque<(u32, Option<u64>)> = VecDeque::new();
    // When a read reaches the queue, it takes the first of those that came before.
    let mut reaching: VecDeque<u32> = VecDeque::new();
    for cycle in 0..3000u32 {
        if let Some((_, wanted)) = due.pop_front_if(|(at, _)| *at == cycle) {
            let word = bench.get("read_data");
            let top = word.width() - 1;
            let found = (!word.slice(top, top).is_zero()).then(|| word.slice(20, 0).to_u64_saturating());
            assert_eq!(found, wanted, "cycle {cycle}");
        }
        let (port, comes, number) = (rng.below(2), !rng.one_in(3), rng.next_u64() >> 43);
        for other in 0..2 {
            bench.set(&format!("slot{other}_enable"), u64::from(comes && other == port));
        }
        bench.set(&format!("slot{port}_input0"), number);
        let reads = !rng.one_in(if cycle < 1500 { 3 } else { 2 });
        bench.set("read_enable", reads.into());
        let had = queue.len();
        if reaching.pop_front_if(|at| *at == cycle).is_some() {
            due.push_back((cycle + 2, queue.pop_front()));
        }
        match (comes, had < 8) {
            (true, true) => queue.push_back(number),
            (true, false) => lost += 1,
            _ => {}
        }
        if reads {
            reaching.push_back(cycle + READ_LATENCY - 2);
        }
        bench.sim.step();
    }
    (0..2).for_each(|port| bench.set(&format!("slot{port}_enable"), 0));
    assert_eq!(bench.read(1).to_u64_saturating(), lost);
    assert!(lost > 20, "{lost} lost");
    assert_eq!(bench.collisions(), 0);
}

#[test]
fn value_sets_compare_all_members() {
    let mut bench = Bench::new(&values());
    let mut rng = Rng::new(5);
    let mut members: Vec<Option<[u64; 5]>> = vec![None; 4];
    let mut hits = 0;
    for _ in 0..400 {
        let at = rng.below(4);
        let small = |rng: &mut Rng| rng.below(4) as u64;
        let member = [small(&mut rng), small(&mut rng), small(&mut rng), small(&mut rng), small(&mut rng)];
        let valid = !rng.one_in(3);
        members[at] = valid.then_some(member);
        let [exact, value, mask, low, high] = member.map(u128::from);
        let word = Bits::new(1, valid.into())
            .concat(&Bits::new(8, exact))
            .concat(&Bits::new(12, value & mask))
            .concat(&Bits::new(6, low))
            .concat(&Bits::new(8, 0xff))
            .concat(&Bits::new(12, mask))
            .concat(&Bits::new(6, high));
        bench.write(at as u64, &word);
        let key = [small(&mut rng), small(&mut rng), small(&mut rng)];
        (0..3).for_each(|field| bench.set(&format!("slot0_input{field}"), key[field]));
        (0..3).for_each(|_| bench.sim.step());
        let wanted = members.iter().flatten().any(|[exact, value, mask, low, high]| {
            key[0] == *exact && key[1] & mask == value & mask && (*low..=*high).contains(&key[2])
        });
        assert_eq!(!bench.get("slot0_answer").is_zero(), wanted);
        hits += u32::from(wanted);
    }
    assert!(hits > 20, "{hits} hits");
}
