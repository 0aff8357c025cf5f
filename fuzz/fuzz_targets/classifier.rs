//! Rules and frames to the classifier: no panic; little time and memory; what is refused names its rules; tags that were stripped
//! or rewritten are put back, or the frame is refused and stays as it was.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use millrace_classifier::{
    Classifier, Exit, MaskedByte, Match, Priority, Rule, RuleError, TagAction, TagMap, Target, Verdict,
};
use millrace_frames::Packet;
use millrace_fuzz::budget::within;

/// Small numbers half of the time, so that rules and frames meet.
fn number(bytes: &mut Unstructured) -> Result<u16> {
    Ok(if bytes.arbitrary()? { bytes.arbitrary()? } else { u16::from(bytes.arbitrary::<u8>()? % 8) })
}

fn matches(bytes: &mut Unstructured) -> Result<Match> {
    Ok(match bytes.int_in_range(0..=6)? {
        0 => Match::Whole,
        1 => Match::Vlan(number(bytes)?),
        2 => Match::QinQ { outer: number(bytes)?, inner: number(bytes)? },
        3 => Match::VlanMac { vid: number(bytes)?, mac: bytes.arbitrary()? },
        4 => Match::Mac(bytes.arbitrary()?),
        5 => {
            let list: Vec<(u8, u8, u8)> = bytes.arbitrary()?;
            let byte = |(offset, value, mask): (u8, u8, u8)| MaskedByte { offset, value: value & mask, mask };
            Match::Bytes(list.into_iter().map(byte).collect())
        }
        _ => Match::Id(number(bytes)?.into()),
    })
}

fn rule(bytes: &mut Unstructured) -> Result<Rule> {
    let tag = match bytes.int_in_range(0..=3)? {
        0 => TagAction::Keep,
        1 => TagAction::Strip,
        2 => TagAction::StripBoth,
        _ => TagAction::Rewrite(number(bytes)?),
    };
    let target = Target { switch: number(bytes)? % 4097, port: bytes.arbitrary()? };
    Ok(Rule { physical: number(bytes)?, matches: matches(bytes)?, target, tag, flood: bytes.arbitrary()? })
}

/// Rules, and frames with their ports and the results of a program.
#[derive(Debug)]
struct Input {
    rules: Vec<Rule>,
    frames: Vec<(u16, Option<u32>, Vec<u8>)>,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Input> {
        let count = bytes.int_in_range(0..=200)?;
        let rules = (0..count).map(|_| rule(bytes)).collect::<Result<_>>()?;
        let mut frames = Vec::new();
        while !bytes.is_empty() && frames.len() < 100 {
            frames.push((number(bytes)?, bytes.arbitrary()?, bytes.arbitrary()?));
        }
        Ok(Input { rules, frames })
    }
}

/// A classifier of the rules that are not refused.
fn accepted(rules: &mut Vec<Rule>) -> Classifier {
    loop {
        let wrong = match Classifier::new(rules) {
            Ok(classifier) => return classifier,
            Err(RuleError::Duplicate { first, second } | RuleError::Unreachable { first, second }) => {
                assert!(first.number < second.number);
                second
            }
            Err(
                RuleError::Switch(wrong)
                | RuleError::Vid(wrong, _)
                | RuleError::Address(wrong)
                | RuleError::Bytes(wrong)
                | RuleError::TooManyBytesRules(wrong),
            ) => wrong,
            Err(error) => panic!("{error}"),
        };
        rules.remove(wrong.number - 1);
    }
}

fn check(rules: &[Rule], classifier: &Classifier, physical: u16, id: Option<u32>, frame: &[u8]) {
    let verdict = classifier.classify(physical, frame, id);
    let hits = match &verdict {
        Verdict::One(hit) => std::slice::from_ref(hit),
        Verdict::All(hits) => hits,
        Verdict::None => &[],
    };
    if let Some(hit) = classifier.whole(physical) {
        assert_eq!(verdict, Verdict::One(hit));
    }
    for hit in hits {
        let mut packet = Packet::from_frame(frame).expect("inputs are short");
        hit.tag.apply(&mut packet);
        let inside = packet.clone();
        let of_hit =
            |rule: &&Rule| rule.physical == physical && rule.target == hit.target() && rule.tag == hit.tag;
        assert!(rules.iter().any(|rule| of_hit(&rule)));
        for tags in rules.iter().filter(of_hit).filter_map(|rule| rule.tags_out(Priority::default())) {
            let map = TagMap::new(&[(hit.target(), Exit { physical, tags })]).expect("one exit");
            let mut packet = inside.clone();
            match map.exits(hit.target())[0].tags.apply(&mut packet) {
                Ok(()) => assert!(packet.len() >= inside.len() && packet.len() <= inside.len() + 8),
                Err(_) => assert_eq!(packet.data(), inside.data()),
            }
        }
    }
}

fuzz_target!(|input: Input| {
    within(|| {
        let mut rules = input.rules;
        let classifier = accepted(&mut rules);
        for (physical, id, frame) in &input.frames {
            check(&rules, &classifier, *physical, *id, frame);
        }
    });
});
