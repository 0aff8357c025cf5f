//! Random rules and frames, compared with a model that goes through the list of the crate's page, step by step.

use crate::common::{rule, station};
use millrace_classifier::{Classifier, Hit, MaskedByte, Match, Rule, RuleError, TagAction, Target, Verdict};
use proptest::prelude::*;

/// What the crate's page says of a frame: what rules look at.
struct Seen<'a> {
    frame: &'a [u8],
    id: Option<u32>,
}

impl Seen<'_> {
    /// The ids of the tags that are there, from the outer one, up to the first that names no VLAN.
    fn vlans(&self) -> Vec<u16> {
        let mut found = Vec::new();
        let mut rest = self.frame.get(12..).unwrap_or(&[]);
        while let [0x81, 0x00, high, low, after @ ..] | [0x88, 0xa8, high, low, after @ ..] = rest {
            match u16::from_be_bytes([*high, *low]) % 4096 {
                0 => break,
                vid => found.push(vid),
            }
            rest = after;
        }
        found
    }

    fn vlan(&self) -> Option<u16> {
        self.vlans().first().copied()
    }

    fn to(&self, mac: [u8; 6]) -> bool {
        self.frame.starts_with(&mac)
    }

    fn to_group(&self) -> bool {
        self.frame.len() >= 6 && self.frame[0] % 2 == 1
    }

    fn has(&self, byte: &MaskedByte) -> bool {
        self.frame.get(usize::from(byte.offset)).is_some_and(|found| found & byte.mask == byte.value)
    }
}

fn hit(rule: &Rule) -> Hit {
    Hit { switch: rule.target.switch, port: rule.target.port, tag: rule.tag }
}

/// Where a frame goes.
fn model(rules: &[Rule], physical: u16, seen: &Seen) -> Vec<Hit> {
    let rules: Vec<&Rule> = rules.iter().filter(|rule| rule.physical == physical).collect();
    let first = |matches: &dyn Fn(&Match) -> bool| {
        rules.iter().find(|rule| matches(&rule.matches)).map(|rule| vec![hit(rule)])
    };
    // What is shared goes to all that flood, or to the rest.
    let shared = |sharers: &dyn Fn(&Match) -> bool, rest: &dyn Fn(&Match) -> bool| {
        if !seen.to_group() {
            return first(rest).unwrap_or_default();
        }
        let mut hits: Vec<Hit> = Vec::new();
        for rule in rules.iter().filter(|rule| rule.flood && (sharers(&rule.matches) || rest(&rule.matches)))
        {
            if !hits.iter().any(|earlier| earlier.target() == rule.target) {
                hits.push(hit(rule));
            }
        }
        hits
    };
    let (vlan, vlans) = (seen.vlan(), seen.vlans());
    let in_vlan = |matches: &Match| matches!(matches, Match::VlanMac { vid, .. } if Some(*vid) == vlan);
    let of_vlan = |matches: &Match| matches!(matches, Match::Vlan(vid) if Some(*vid) == vlan);
    let is_mac = |matches: &Match| matches!(matches, Match::Mac(_));
    let is_whole = |matches: &Match| *matches == Match::Whole;
    let steps: [&dyn Fn() -> Option<Vec<Hit>>; 9] = [
        &|| {
            first(
                &|matches| matches!(matches, Match::Bytes(bytes) if bytes.iter().all(|byte| seen.has(byte))),
            )
        },
        &|| first(&|matches| matches!(matches, Match::Id(id) if Some(*id) == seen.id)),
        &|| {
            first(&|matches| {
                in_vlan(matches) && matches!(matches, Match::VlanMac { mac, .. } if seen.to(*mac))
            })
        },
        &|| first(&|matches| matches!(matches, Match::Mac(mac) if seen.to(*mac))),
        &|| {
            first(
                &|matches| matches!(matches, Match::QinQ { outer, inner } if vlans.starts_with(&[*outer, *inner])),
            )
        },
        &|| rules.iter().any(|rule| in_vlan(&rule.matches)).then(|| shared(&in_vlan, &of_vlan)),
        &|| first(&of_vlan),
        &|| rules.iter().any(|rule| is_mac(&rule.matches)).then(|| shared(&is_mac, &is_whole)),
        &|| first(&is_whole),
    ];
    steps.iter().find_map(|step| step()).unwrap_or_default()
}

/// Few numbers, so that rules and frames meet.
fn vids() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 1..4u16, 1 => Just(4094)]
}

fn matches() -> impl Strategy<Value = Match> {
    let byte = (0..24u8, any::<u8>(), prop_oneof![Just(0xff), Just(0x0f), Just(1)]).prop_map(
        |(offset, value, mask): (u8, u8, u8)| MaskedByte { offset, value: (value % 4) & mask, mask },
    );
    prop_oneof![
        Just(Match::Whole),
        vids().prop_map(Match::Vlan),
        (vids(), vids()).prop_map(|(outer, inner)| Match::QinQ { outer, inner }),
        (vids(), 0..5u8).prop_map(|(vid, last)| Match::VlanMac { vid, mac: station(last) }),
        (0..5u8).prop_map(|last| Match::Mac(station(last))),
        prop::collection::vec(byte, 1..4).prop_map(Match::Bytes),
        (0..4u32).prop_map(Match::Id),
    ]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let one = (0..3u16, matches(), 0..5u16, 0..2u32, any::<bool>(), 1..3u16);
    let one = one.prop_map(|(physical, matches, switch, port, flood, vid)| {
        let (target, tag) = (Target { switch, port }, TagAction::Rewrite(vid));
        Rule { target, tag, flood, ..rule(physical, matches, switch) }
    });
    prop::collection::vec(one, 0..30)
}

prop_compose! {
    /// Frames that rules are for, most of them whole.
    fn frames()(
        to in prop_oneof![(0..6u8).prop_map(station), Just([0xff; 6]), Just([1, 0, 0x5e, 0, 0, 1])],
        tags in prop::collection::vec(
            (prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)], 0..16u16, prop_oneof![6 => vids(), 1 => Just(0), 1 => Just(4095)]),
            0..4,
        ),
        tail in prop::collection::vec(0..5u8, 0..20),
        cut in prop_oneof![2 => Just(usize::MAX), 1 => 0..40usize],
    ) -> Vec<u8> {
        let mut frame = [to, [2, 0, 0, 0, 0, 3]].concat();
        for (kind, priority, vid) in tags {
            frame.extend([kind.to_be_bytes(), (priority << 12 | vid).to_be_bytes()].concat());
        }
        frame.extend(tail);
        frame.truncate(cut);
        frame
    }
}

/// The rules without what a classifier refuses, found by what it names.
fn accepted(mut rules: Vec<Rule>) -> (Vec<Rule>, Classifier) {
    loop {
        match Classifier::new(&rules) {
            Ok(classifier) => return (rules, classifier),
            Err(
                RuleError::Duplicate { second: wrong, .. }
                | RuleError::Unreachable { second: wrong, .. }
                | RuleError::Bytes(wrong),
            ) => {
                rules.remove(wrong.number - 1);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_classifier_does_what_its_page_says(
        rules in rules(),
        frames in prop::collection::vec((0..4u16, frames(), prop::option::of(0..5u32)), 1..40),
    ) {
        let (rules, classifier) = accepted(rules);
        for (physical, frame, id) in frames {
            let verdict = classifier.classify(physical, &frame, id);
            let found = match verdict {
                Verdict::One(hit) => vec![hit],
                Verdict::All(flood) => classifier.hits(flood).to_vec(),
                Verdict::None => Vec::new(),
            };
            let expected = model(&rules, physical, &Seen { frame: &frame, id });
            prop_assert_eq!(&found, &expected, "port {}, frame {:x?}, id {:?}, rules {:#?}", physical, frame, id, rules);
            prop_assert_eq!(matches!(verdict, Verdict::All(_)), found.len() > 1);
            let mut of_port = rules.iter().filter(|rule| rule.physical == physical);
            let only = of_port.next().filter(|rule| rule.matches == Match::Whole && of_port.next().is_none());
            prop_assert_eq!(classifier.whole(physical), only.map(hit));
        }
    }
}
