//! The effort for bits that never change is that of the whole design.

use super::*;

/// So many modules, each with words of which half of the bits are always 0, carried along a few registers.
fn design(modules: u32) -> Design {
    let mut design = Design::new();
    let ids: Vec<ModuleId> = (0..modules)
        .map(|number| {
            let mut m = ModuleBuilder::new(&format!("part{number}"));
            let (given, zeros) = (m.input("given", 100), m.number(100, 0));
            let mut value = m.concat(&[zeros, given]);
            for stage in 0..4 {
                value = m.delayed(&format!("stage{stage}"), value, Some(0));
            }
            let more = m.number(200, number.into());
            let sum = m.add(value, more);
            m.output("sum", sum);
            design.add(m.finish())
        })
        .collect();
    let mut m = ModuleBuilder::new("top");
    let given = m.input("given", 100);
    for (number, id) in ids.into_iter().enumerate() {
        let part = m.instance(&design, id, &format!("part{number}"));
        m.connect(part, "given", given);
        let sum = m.output_of(part, "sum");
        m.output(&format!("sum{number}"), sum);
    }
    design.add(m.finish());
    design
}

/// How many modules have registers of 100 bits where they had 200.
fn narrowed(design: &Design) -> usize {
    let is_narrow = |module: &&Module| {
        !module.registers.is_empty() && module.registers.values().all(|register| register.width == 100)
    };
    design.modules.values().filter(is_narrow).count()
}

#[test]
fn modules_are_left_as_they_are_when_the_effort_of_the_design_is_used_up() {
    let whole = design(20);
    let mut counts = Vec::new();
    for effort in [0, 5_000, 15_000, 40_000, u64::MAX] {
        let mut bounded = whole.clone();
        optimize_within(&mut bounded, steady::Effort::new(effort));
        assert_eq!(verify(&bounded), Ok(()), "{effort}");
        counts.push(narrowed(&bounded));
        let [mut one, mut other] = [&whole, &bounded].map(|design| Simulator::new(design).unwrap());
        for cycle in 0..12_u64 {
            for sim in [&mut one, &mut other] {
                let given = sim.input("given").unwrap();
                sim.set_limbs(given, &[cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15), cycle]);
            }
            for number in 0..20 {
                let [wanted, got] = [&mut one, &mut other].map(|sim| {
                    let sum = sim.output(&format!("sum{number}")).unwrap();
                    sim.get(sum)
                });
                assert_eq!(got, wanted, "effort {effort}, cycle {cycle}, sum {number}");
            }
            one.step();
            other.step();
        }
    }
    assert!(counts.is_sorted() && counts[0] == 0 && counts[1] > 0 && counts[2] < 20, "{counts:?}");
    assert_eq!(counts.last(), Some(&20), "{counts:?}");
}
