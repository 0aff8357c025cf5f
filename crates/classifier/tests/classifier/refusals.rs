//! Rules that are refused, with the rules named, and limits.

use crate::common::{BROADCAST, rule, station};
use millrace_classifier::{
    Classifier, MAX_BYTES_RULES, MAX_PORTS, MAX_RULES, MaskedByte, Match, Rule, RuleError, TagAction, Verdict,
};

fn refused(rules: &[Rule]) -> String {
    Classifier::new(rules).expect_err("refused").to_string()
}

fn bytes(list: &[(u8, u8, u8)]) -> Match {
    Match::Bytes(list.iter().map(|&(offset, value, mask)| MaskedByte { offset, value, mask }).collect())
}

#[test]
fn what_matches_the_same_is_refused_with_both_named() {
    let kinds = [
        (Match::Whole, "whole"),
        (Match::Vlan(7), "VLAN 7"),
        (Match::QinQ { outer: 7, inner: 8 }, "VLAN 7.8"),
        (Match::VlanMac { vid: 7, mac: station(1) }, "VLAN 7, address 02:00:00:00:00:01"),
        (Match::Mac(station(1)), "address 02:00:00:00:00:01"),
        (Match::Id(5), "id 5"),
        (bytes(&[(3, 0x10, 0xf0)]), "bytes 3:0x10/0xf0"),
    ];
    for (matches, words) in kinds {
        let rules = [rule(0, matches.clone(), 1), rule(1, matches.clone(), 2), rule(0, matches, 3)];
        Classifier::new(&rules[..2]).unwrap();
        let first = format!("rule 1 (port 0, {words} to switch 1 port 0)");
        assert_eq!(
            refused(&rules),
            format!("rule 3 (port 0, {words} to switch 3 port 0) matches the same as {first}")
        );
    }
}

#[test]
fn bytes_that_no_frame_reaches_are_refused() {
    let wide = bytes(&[(3, 0x10, 0xf0)]);
    let narrow = bytes(&[(3, 0x12, 0xff), (40, 1, 1)]);
    let rules = [rule(0, wide, 1), rule(0, narrow, 2)];
    let error = Classifier::new(&rules).unwrap_err();
    assert!(
        matches!(&error, RuleError::Unreachable { first, second } if (first.number, second.number) == (1, 2))
    );
    let text = "rule 2 (port 0, bytes 3:0x12/0xff 40:0x01/0x01 to switch 2 port 0) gets no frame, all of its frames match \
                rule 1 (port 0, bytes 3:0x10/0xf0 to switch 1 port 0)";
    assert_eq!(error.to_string(), text);
    // The other order is right, and so is a value that differs.
    Classifier::new(&[rules[1].clone(), rules[0].clone()]).unwrap();
    Classifier::new(&[rules[0].clone(), rule(0, bytes(&[(3, 0x22, 0xff)]), 2)]).unwrap();
    // The same in another order.
    let swapped = [rule(0, bytes(&[(1, 0, 1), (2, 0, 1)]), 1), rule(0, bytes(&[(2, 0, 1), (1, 0, 1)]), 2)];
    assert!(matches!(Classifier::new(&swapped), Err(RuleError::Duplicate { .. })));
}

#[test]
fn wrong_values_are_refused() {
    for vid in [0, 4095, 4096, u16::MAX] {
        let wrong = [
            Match::Vlan(vid),
            Match::QinQ { outer: vid, inner: 1 },
            Match::QinQ { outer: 1, inner: vid },
            Match::VlanMac { vid, mac: station(1) },
        ];
        for matches in wrong {
            assert!(
                matches!(Classifier::new(&[rule(0, matches, 1)]), Err(RuleError::Vid(_, wrong)) if wrong == vid)
            );
        }
        let rewrite = Rule { tag: TagAction::Rewrite(vid), ..rule(0, Match::Whole, 1) };
        assert!(refused(&[rewrite]).ends_with(&format!("the id of a VLAN is from 1 to 4094, not {vid}")));
    }
    for mac in [[0; 6], BROADCAST, [1, 0, 0, 0, 0, 1]] {
        for matches in [Match::Mac(mac), Match::VlanMac { vid: 1, mac }] {
            assert!(matches!(Classifier::new(&[rule(0, matches, 1)]), Err(RuleError::Address(_))));
        }
    }
    for list in [&[][..], &[(128, 0, 1)], &[(1, 0, 0)], &[(1, 2, 1)], &[(1, 0, 1), (1, 0, 2)]] {
        assert!(matches!(Classifier::new(&[rule(0, bytes(list), 1)]), Err(RuleError::Bytes(_))));
    }
    assert!(matches!(Classifier::new(&[rule(0, Match::Whole, 4096)]), Err(RuleError::Switch(_))));
}

#[test]
fn limits_have_names_and_what_is_at_a_limit_works() {
    let all: Vec<Rule> = (0..MAX_RULES).map(|at| rule(3, Match::Id(at as u32), (at % 4096) as u16)).collect();
    let classifier = Classifier::new(&all).unwrap();
    for id in [0, 1, MAX_RULES - 1] {
        let verdict = classifier.classify(3, &[], Some(id as u32));
        assert!(matches!(verdict, Verdict::One(hit) if usize::from(hit.switch) == id % 4096));
    }
    assert_eq!(refused(&[&all[..], &[rule(3, Match::Whole, 0)]].concat()), "60001 rules are more than 60000");

    let ports: Vec<Rule> = (0..=MAX_PORTS as u16).map(|port| rule(port * 60, Match::Vlan(4094), 1)).collect();
    let classifier = Classifier::new(&ports[..MAX_PORTS]).unwrap();
    let frame = crate::common::frame(station(1), &[(0x8100, 4094)]);
    assert!(matches!(classifier.classify((MAX_PORTS as u16 - 1) * 60, &frame, None), Verdict::One(_)));
    assert!(refused(&ports).ends_with("more than 1024 physical ports have rules"));

    let compared: Vec<Rule> =
        (0..=MAX_BYTES_RULES as u8).map(|at| rule(0, bytes(&[(at, 1, 1)]), 1)).collect();
    Classifier::new(&compared[..MAX_BYTES_RULES]).unwrap();
    assert!(refused(&compared).ends_with("its port has more than 64 rules that compare bytes"));
}
