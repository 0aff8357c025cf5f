use super::*;
use crate::engines::checks::{self, StopOnDrop};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rules as a list.
struct Model {
    fields: Vec<(u32, u32)>,
    rules: BTreeMap<Order, (Vec<Condition>, u32)>,
}

fn field(key: &[u64], offset: u32, width: u32) -> Vec<u64> {
    let bit = |at: u32| key[(offset + at) as usize / 64] >> ((offset + at) % 64) & 1;
    let limb =
        |limb: u32| (0..64).filter(|at| limb * 64 + at < width).map(|at| bit(limb * 64 + at) << at).sum();
    (0..width.div_ceil(64)).map(limb).collect()
}

impl Model {
    fn accepts(&self, conditions: &[Condition], key: &[u64]) -> bool {
        self.fields.iter().zip(conditions).all(|(&(offset, width), condition)| {
            let value = field(key, offset, width);
            match condition {
                Condition::Masked { value: want, mask } => {
                    value.iter().zip(mask).zip(want).all(|((value, mask), want)| value & mask == want & mask)
                }
                Condition::Range { low, high } => {
                    let order = |limbs: &[u64]| limbs.iter().rev().copied().collect::<Vec<_>>();
                    order(low) <= order(&value) && order(&value) <= order(high)
                }
            }
        })
    }

    fn find(&self, key: &[u64]) -> u32 {
        let winner = self.rules.values().find(|(conditions, _)| self.accepts(conditions, key));
        winner.map_or(0, |(_, result)| *result)
    }
}

fn check(model: &Model, table: &Acl, keys: &[Vec<u64>]) {
    let worker = table.version.domain().worker();
    let expected: Vec<u32> = keys.iter().map(|key| model.find(key)).collect();
    checks::check(keys, &expected, |simd, keys, out| {
        AclReader { simd, ..table.reader() }.lookup(&worker, keys, out)
    });
}

/// Numbers without a pattern.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 20) % limit
    }

    /// A value of few, in limbs.
    fn value(&mut self, width: u32) -> Vec<u64> {
        let seed = self.below(6);
        let limbs = width.div_ceil(64);
        let limb = |limb: u32| {
            let value = seed.wrapping_mul(0x1234_5678_9abc_def1).rotate_left(seed as u32 * 9 + limb);
            if limb + 1 == limbs && !width.is_multiple_of(64) {
                value & ((1 << (width % 64)) - 1)
            } else {
                value
            }
        };
        (0..limbs).map(limb).collect()
    }

    fn condition(&mut self, width: u32) -> Condition {
        let value = self.value(width);
        let all: Vec<u64> = field(&vec![!0; width.div_ceil(64) as usize], 0, width);
        match self.below(6) {
            0 => Condition::Masked { mask: vec![0; value.len()], value },
            1 => Condition::Masked { value, mask: all },
            2 | 3 => {
                let cut = self.below(u64::from(width) + 1) as u32;
                let mask = all
                    .iter()
                    .zip(0..)
                    .map(|(limb, at)| limb & (!0u64).checked_shl(cut.saturating_sub(at * 64)).unwrap_or(0));
                Condition::Masked { mask: mask.collect(), value }
            }
            4 => Condition::Masked { mask: all.iter().map(|limb| limb & self.next()).collect(), value },
            _ => {
                let other = self.value(width);
                let (low, high) =
                    if value.iter().rev().le(other.iter().rev()) { (value, other) } else { (other, value) };
                Condition::Range { low, high }
            }
        }
    }

    fn key(&mut self, bits: u32, fields: &[(u32, u32)]) -> Vec<u64> {
        let mut key = vec![0u64; bits.div_ceil(64).max(1) as usize];
        for &(offset, width) in fields {
            let value = self.value(width);
            let flip = if self.below(3) == 0 { self.below(u64::from(width)) as u32 } else { width };
            for at in 0..width {
                let bit = value[at as usize / 64] >> (at % 64) & 1 ^ u64::from(at == flip);
                key[(offset + at) as usize / 64] |= bit << ((offset + at) % 64);
            }
        }
        key
    }
}

/// Fields of these widths, the first one most significant.
fn fields(widths: &[u32]) -> (u32, Vec<(u32, u32)>) {
    let bits = widths.iter().sum();
    let mut top = bits;
    let fields = widths.iter().map(|width| {
        top -= width;
        (top, *width)
    });
    (bits, fields.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn lookups_agree_with_the_list_through_writes(
        widths in prop_oneof![
            Just(vec![32u32, 32, 8, 16, 16]), Just(vec![48, 48, 16]), Just(vec![128, 128, 8]), Just(vec![9]),
            Just(vec![1]), Just(vec![64, 3]), Just(vec![100, 33]), Just(vec![512]), Just(vec![7; 20])],
        seed in any::<u64>(),
        writes in 1usize..120,
        commits in 1usize..40,
    ) {
        let (bits, fields) = fields(&widths);
        let mut table = Acl::new(&Domain::new(), bits, &fields, Simd::best());
        let mut model = Model { fields: fields.clone(), rules: BTreeMap::new() };
        let mut random = Random(seed);
        for write in 0..writes {
            let order = Order::new(random.below(4) as u32, random.below(60));
            if random.below(3) == 0 {
                prop_assert_eq!(table.remove(order), model.rules.remove(&order).is_some());
            } else {
                let conditions: Vec<Condition> = widths.iter().map(|width| random.condition(*width)).collect();
                table.set(order, &conditions, write as u32 + 1);
                model.rules.insert(order, (conditions, write as u32 + 1));
            }
            if write % commits == 0 {
                // Now and then all is made again, and otherwise the new rules are put next to the others.
                table.publish(random.below(8) == 0);
            }
        }
        table.publish(false);
        prop_assert_eq!(table.len(), model.rules.len());
        let keys: Vec<Vec<u64>> = (0..150).map(|_| random.key(bits, &fields)).collect();
        check(&model, &table, &keys);
        table.settle();
        prop_assert!(table.pending.is_empty());
        check(&model, &table, &keys);
    }
}

/// A five-tuple rule with nested prefixes of few sites.
fn five_tuple(random: &mut Random) -> Vec<Condition> {
    let prefix = |random: &mut Random| {
        let len = [0, 8, 16, 20, 24, 28, 32][random.below(7) as usize];
        let mask = if len == 0 { 0 } else { 0xffff_ffffu64 << (32 - len) & 0xffff_ffff };
        let site = random.below(40) * 0x0503_0100 + random.below(3000);
        Condition::Masked { value: vec![site & mask], mask: vec![mask] }
    };
    let ports = |random: &mut Random| match random.below(3) {
        0 => Condition::Range { low: vec![0], high: vec![65535] },
        1 => {
            let port = random.below(2000);
            Condition::Range { low: vec![port], high: vec![port] }
        }
        _ => {
            let low = random.below(60_000);
            Condition::Range { low: vec![low], high: vec![low + random.below(5000)] }
        }
    };
    let protocol = if random.below(4) == 0 { 0 } else { 0xff };
    let protocol = Condition::Masked { value: vec![6 + random.below(3)], mask: vec![protocol] };
    vec![prefix(random), prefix(random), protocol, ports(random), ports(random)]
}

#[test]
fn thousands_of_rules_are_laid_out_in_layers_and_still_agree() {
    let (bits, fields) = fields(&[32, 32, 8, 16, 16]);
    let mut table = Acl::new(&Domain::new(), bits, &fields, Simd::best());
    let mut model = Model { fields: fields.clone(), rules: BTreeMap::new() };
    let mut random = Random(7);
    for n in 0..6000u32 {
        let (order, rule) = (Order::new(0, n.into()), five_tuple(&mut random));
        table.set(order, &rule, n + 1);
        model.rules.insert(order, (rule, n + 1));
    }
    table.commit();
    assert!(table.groups[0].group.layers.len() > 1);
    let key = |random: &mut Random| {
        let address = |random: &mut Random| random.below(40) * 0x0503_0100 + random.below(3000);
        let (source, destination) = (address(random), address(random));
        let ports = random.below(4000) << 16 | random.below(4000);
        let low = ports | (6 + random.below(3)) << 32 | destination << 40;
        vec![low, source << 8 | destination >> 24]
    };
    let keys: Vec<Vec<u64>> = (0..3000).map(|_| key(&mut random)).collect();
    check(&model, &table, &keys);
    // Single writes are put next to the layers that are there.
    for n in (0..600u32).map(|n| n * 9) {
        let order = Order::new(0, n.into());
        if n % 2 == 0 {
            table.remove(order);
            model.rules.remove(&order);
        } else {
            let rule = five_tuple(&mut random);
            table.set(order, &rule, 10_000 + n);
            model.rules.insert(order, (rule, 10_000 + n));
        }
        if n % 180 == 0 {
            table.publish(false);
            check(&model, &table, &keys[..300]);
        }
    }
    table.publish(false);
    assert!(!table.pending.is_empty() && !table.groups[0].dead.is_empty());
    check(&model, &table, &keys);
    table.settle();
    check(&model, &table, &keys);
}

#[test]
fn a_commit_is_met_whole_or_not_at_all() {
    // Two rules always swap their results together: a batch must never see one without the other.
    let (bits, fields) = fields(&[16, 16]);
    let domain = Domain::new();
    let mut table = Acl::new(&domain, bits, &fields, Simd::best());
    let stop = AtomicBool::new(false);
    let rule = |value| {
        vec![
            Condition::Masked { value: vec![value], mask: vec![0xffff] },
            Condition::Range { low: vec![5], high: vec![900] },
        ]
    };
    let mut write = |a, b| {
        table.set(Order::new(1, 1), &rule(1), a);
        table.set(Order::new(1, 2), &rule(2), b);
        table.commit();
        table.reader()
    };
    let reader = write(1, 2);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for simd in Simd::all() {
            let (reader, domain, stop) = (AclReader { simd, ..reader.clone() }, &domain, &stop);
            scope.spawn(move || {
                let mut worker = domain.worker();
                let keys: Vec<u64> = (0..64).map(|n| (1 + n % 2) << 16 | (n + 5)).collect();
                let mut out = [0; 64];
                while !stop.load(Ordering::Relaxed) {
                    reader.lookup(&worker, &keys, &mut out);
                    for pair in out.chunks(2) {
                        assert!(pair == [1, 2] || pair == [2, 1], "{pair:?}");
                    }
                    worker.quiescent();
                }
            });
        }
        for round in 0..3000 {
            if round % 2 == 0 {
                write(2, 1)
            } else {
                write(1, 2)
            };
        }
    });
}

#[test]
fn masks_of_too_many_pieces_are_checked_against_the_rule() {
    let (bits, fields) = fields(&[32, 16]);
    let mut table = Acl::new(&Domain::new(), bits, &fields, Simd::best());
    let mut model = Model { fields: fields.clone(), rules: BTreeMap::new() };
    let mut random = Random(3);
    let odd = |random: &mut Random| vec![random.next() & random.next() & 0xffff_ffff];
    for n in 0..400u32 {
        let (value, mask) = (odd(&mut random), odd(&mut random));
        let port = random.below(3);
        let rule = vec![
            Condition::Masked { value, mask },
            Condition::Range { low: vec![port], high: vec![port + 1] },
        ];
        table.set(Order::new(n % 7, n.into()), &rule, n + 1);
        model.rules.insert(Order::new(n % 7, n.into()), (rule, n + 1));
    }
    // Seven free bits between others make 128 pieces.
    for n in 400..500u32 {
        let mask = vec![0xaaab_5fff_u64 & !(1 << (n % 12))];
        let rule = vec![
            Condition::Masked { value: odd(&mut random), mask },
            Condition::Range { low: vec![0], high: vec![65535] },
        ];
        table.set(Order::new(9, n.into()), &rule, n + 1);
        model.rules.insert(Order::new(9, n.into()), (rule, n + 1));
    }
    table.commit();
    assert!(table.groups[0].group.inexact.iter().all(Option::is_some));
    assert!(table.memory_bytes() < 8 << 20);
    let key =
        |random: &mut Random| vec![(random.next() & random.next() & 0xffff_ffff) << 16 | random.below(5)];
    let keys: Vec<Vec<u64>> = (0..2000).map(|_| key(&mut random)).collect();
    check(&model, &table, &keys);
}

#[test]
fn more_rules_than_a_group_holds_are_several_groups() {
    let (bits, fields) = fields(&[20]);
    let mut table = Acl::new(&Domain::new(), bits, &fields, Simd::best());
    let count = MAX_GROUP as u64 + 700;
    for n in 0..count {
        // Neighbours overlap, and the later one of them has the higher priority.
        let rule = [Condition::Range { low: vec![n * 50], high: vec![n * 50 + 60] }];
        table.set(Order::new(n as u32 % 2, n), &rule, n as u32 + 1);
    }
    table.commit();
    assert_eq!(table.groups.len(), 2);
    let keys: Vec<u64> = (0..count * 50).step_by(7).collect();
    let mut out = vec![0; keys.len()];
    table.reader().lookup(&table.version.domain().worker(), &keys, &mut out);
    for (key, result) in keys.iter().zip(out) {
        let (rule, into) = (key / 50, key % 50);
        let before = into <= 10 && rule > 0 && rule % 2 == 0;
        assert_eq!(u64::from(result), if before { rule } else { rule + 1 }, "{key}");
    }
}
