//! Each kind of rule, their order, sharing by address, and frames by hand.

use crate::common::{BROADCAST, flooding, frame, rule, station};
use millrace_classifier::{Classifier, Hit, MaskedByte, Match, Rule, TagAction, Target, Verdict};

const C: u16 = 0x8100;
const S: u16 = 0x88a8;

/// The switches that a frame of port 1 goes to.
fn switches(classifier: &Classifier, frame: &[u8], id: Option<u32>) -> Vec<u16> {
    match classifier.classify(1, frame, id) {
        Verdict::One(hit) => vec![hit.switch],
        Verdict::All(flood) => classifier.hits(flood).iter().map(|hit| hit.switch).collect(),
        Verdict::None => Vec::new(),
    }
}

fn byte(offset: u8, value: u8, mask: u8) -> MaskedByte {
    MaskedByte { offset, value, mask }
}

#[test]
fn a_whole_port_goes_to_a_switch_without_a_look_at_frames() {
    let target = Target { switch: 4095, port: u32::MAX };
    let whole = Rule { target, tag: TagAction::Strip, ..rule(1, Match::Whole, 0) };
    let classifier = Classifier::new(&[whole, rule(2, Match::Whole, 6), rule(2, Match::Vlan(3), 7)]).unwrap();
    let hit = Hit { switch: 4095, port: u32::MAX, tag: TagAction::Strip };
    assert_eq!(classifier.whole(1), Some(hit));
    for frame in [&[][..], &[0xff; 3], &frame(BROADCAST, &[(C, 5)]), &frame(station(1), &[])] {
        assert_eq!(classifier.classify(1, frame, None), Verdict::One(hit));
        assert_eq!(classifier.classify(3, frame, None), Verdict::None, "a port without rules");
        assert_eq!(classifier.classify(u16::MAX, frame, Some(1)), Verdict::None);
    }
    // Other ports have to be looked at.
    assert_eq!([0, 2, 3, u16::MAX].map(|port| classifier.whole(port)), [None; 4]);
    assert_eq!(Classifier::new(&[]).unwrap().classify(0, &[], None), Verdict::None);
}

/// What it shows, the frame, the result of the operator's program, and the switches.
type Case = (&'static str, Vec<u8>, Option<u32>, &'static [u16]);

#[test]
fn frames_by_hand_go_where_the_documented_order_says() {
    let qinq = |outer, inner| Match::QinQ { outer, inner };
    let at = |vid, last| Match::VlanMac { vid, mac: station(last) };
    let rules = [
        rule(1, Match::Whole, 1),
        rule(1, Match::Vlan(10), 2),
        rule(1, Match::Vlan(20), 3),
        rule(1, qinq(20, 30), 4),
        rule(1, qinq(40, 30), 5),
        rule(1, at(20, 1), 6),
        rule(1, Match::Id(77), 7),
        rule(1, Match::Bytes(vec![byte(5, 9, 0xff), byte(0, 2, 0x0f)]), 8),
        rule(1, Match::Bytes(vec![byte(5, 9, 0xff)]), 9),
        rule(2, Match::Vlan(10), 10),
    ];
    let classifier = Classifier::new(&rules).unwrap();
    let cases: &[Case] = &[
        ("untagged", frame(station(1), &[]), None, &[1]),
        ("a priority tag is no VLAN", frame(station(1), &[(C, 0xe000)]), None, &[1]),
        ("nor is what follows it", frame(station(1), &[(C, 0), (C, 10)]), None, &[1]),
        ("a VLAN", frame(station(1), &[(C, 10)]), None, &[2]),
        ("with priority bits", frame(station(1), &[(C, 0xf00a)]), None, &[2]),
        ("the tag of a provider", frame(station(1), &[(S, 10)]), None, &[2]),
        ("no other kind of tag", frame(station(1), &[(0x9100, 10)]), None, &[1]),
        ("two tags, a rule for the outer", frame(station(1), &[(S, 10), (C, 30)]), None, &[2]),
        ("a VLAN without rules", frame(station(1), &[(C, 11)]), None, &[1]),
        ("the reserved id", frame(station(1), &[(C, 4095)]), None, &[1]),
        ("two tags", frame(station(2), &[(S, 20), (C, 30)]), None, &[4]),
        ("two tags of customers", frame(station(2), &[(C, 20), (C, 30)]), None, &[4]),
        ("another inner tag", frame(station(2), &[(S, 20), (C, 31)]), None, &[3]),
        ("an inner priority tag", frame(station(2), &[(S, 20), (C, 0)]), None, &[3]),
        ("an outer tag with inner rules only", frame(station(2), &[(C, 40)]), None, &[1]),
        ("its inner tag", frame(station(2), &[(C, 40), (C, 30)]), None, &[5]),
        ("address before both tags", frame(station(1), &[(S, 20), (C, 30)]), None, &[6]),
        ("address in the VLAN", frame(station(1), &[(C, 20)]), None, &[6]),
        ("unknown in a shared VLAN with a rest", frame(station(2), &[(C, 20)]), None, &[3]),
        ("broadcast, nobody floods", frame(BROADCAST, &[(C, 20)]), None, &[]),
        ("broadcast of both tags", frame(BROADCAST, &[(C, 20), (C, 30)]), None, &[4]),
        ("broadcast of a VLAN that is not shared", frame(BROADCAST, &[(C, 10)]), None, &[2]),
        ("an id", frame(station(1), &[(C, 20)]), Some(77), &[7]),
        ("an id without a rule", frame(station(1), &[(C, 20)]), Some(78), &[6]),
        ("bytes before an id, in order", frame(station(9), &[]), Some(77), &[8]),
        ("the second of bytes", frame([0x40, 0, 0, 0, 0, 9], &[]), Some(77), &[9]),
        ("too short for the bytes", vec![2, 0, 0, 0, 0], Some(77), &[7]),
        ("half a tag", frame(station(1), &[(C, 10)])[..15].to_vec(), None, &[1]),
        ("a tag and no more", frame(station(1), &[(C, 10)])[..16].to_vec(), None, &[2]),
        ("half an inner tag", frame(station(2), &[(C, 20), (C, 30)])[..19].to_vec(), None, &[3]),
        ("both tags and no more", frame(station(2), &[(C, 20), (C, 30)])[..20].to_vec(), None, &[4]),
        ("nothing", Vec::new(), None, &[1]),
    ];
    for (what, frame, id, expected) in cases {
        assert_eq!(switches(&classifier, frame, *id), *expected, "{what}");
    }
}

#[test]
fn bytes_are_compared_up_to_the_128th() {
    let rules = [
        rule(1, Match::Bytes(vec![byte(127, 0x50, 0xf0)]), 1),
        rule(1, Match::Bytes(vec![byte(126, 0, 1)]), 2),
    ];
    let classifier = Classifier::new(&rules).unwrap();
    for length in [128, 129, 1500] {
        let mut frame = vec![0xff; length];
        assert_eq!(switches(&classifier, &frame, None), []);
        frame[127] = 0x5c;
        assert_eq!(switches(&classifier, &frame, None), [1]);
    }
    // What is not there does not match, whatever its mask.
    assert_eq!(switches(&classifier, &[0; 127], None), [2]);
    assert_eq!(switches(&classifier, &[0; 126], None), []);
}

#[test]
fn switches_share_a_vlan_by_address() {
    let at = |last| Match::VlanMac { vid: 5, mac: station(last) };
    let rules = [
        flooding(1, at(1), 1),
        flooding(1, at(2), 2),
        rule(1, at(3), 3),
        // A second address of the first switch: it gets one broadcast.
        flooding(1, at(4), 1),
        rule(1, Match::Whole, 9),
    ];
    let shared = Classifier::new(&rules).unwrap();
    for last in 1..=4 {
        assert_eq!(
            switches(&shared, &frame(station(last), &[(C, 5)]), None),
            [[1, 2, 3, 1][usize::from(last) - 1]]
        );
    }
    let multicast = frame([1, 0, 0x5e, 0, 0, 1], &[(C, 5)]);
    assert_eq!(switches(&shared, &multicast, None), [1, 2]);
    assert_eq!(switches(&shared, &frame(BROADCAST, &[(C, 5)]), None), [1, 2]);
    assert_eq!(switches(&shared, &frame(station(9), &[(C, 5)]), None), [], "to nobody's address");
    assert_eq!(switches(&shared, &frame(BROADCAST, &[(C, 6)]), None), [9], "another VLAN");

    let with_rest = [&rules[..], &[flooding(1, Match::Vlan(5), 4)]].concat();
    let with_rest = Classifier::new(&with_rest).unwrap();
    assert_eq!(switches(&with_rest, &frame(station(9), &[(C, 5)]), None), [4]);
    assert_eq!(switches(&with_rest, &multicast, None), [1, 2, 4]);

    let one = Classifier::new(&[flooding(1, at(1), 1), rule(1, at(2), 2)]).unwrap();
    assert_eq!(switches(&one, &multicast, None), [1]);
    assert!(matches!(one.classify(1, &multicast, None), Verdict::One(_)));
}

#[test]
fn switches_share_a_port_by_address() {
    let rules = [
        flooding(1, Match::Mac(station(1)), 1),
        flooding(1, Match::Mac(station(2)), 2),
        rule(1, Match::Vlan(5), 5),
        rule(1, Match::QinQ { outer: 6, inner: 7 }, 6),
    ];
    let classifier = Classifier::new(&rules).unwrap();
    for tags in [&[][..], &[(C, 0)], &[(C, 5)], &[(C, 6), (C, 7)]] {
        assert_eq!(
            switches(&classifier, &frame(station(2), tags), None),
            [2],
            "a Mac rule comes before tags"
        );
    }
    assert_eq!(switches(&classifier, &frame(BROADCAST, &[]), None), [1, 2]);
    assert_eq!(switches(&classifier, &frame(BROADCAST, &[(C, 8)]), None), [1, 2]);
    assert_eq!(switches(&classifier, &frame(BROADCAST, &[(C, 5)]), None), [5], "that VLAN is not shared");
    assert_eq!(switches(&classifier, &frame(BROADCAST, &[(C, 6), (C, 7)]), None), [6]);
    assert_eq!(switches(&classifier, &frame(station(3), &[]), None), []);
    assert_eq!(switches(&classifier, &[], None), [], "no address");

    let with_rest = [&rules[..], &[flooding(1, Match::Whole, 9)]].concat();
    let with_rest = Classifier::new(&with_rest).unwrap();
    assert_eq!(switches(&with_rest, &frame(station(3), &[]), None), [9]);
    assert_eq!(switches(&with_rest, &frame(BROADCAST, &[]), None), [1, 2, 9]);
    assert_eq!(switches(&with_rest, &[0xff; 5], None), [9], "half an address is of no group");
}
