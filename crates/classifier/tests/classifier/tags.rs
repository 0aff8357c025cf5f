//! Tags in and out.

use crate::common::{frame, rule, station};
use millrace_classifier::{
    Belongs, Exit, Match, Priority, Rule, Tag, TagAction, TagChange, TagError, TagMap, TagsOut, Target,
};
use millrace_frames::{HEADROOM, MAX_FRAME, Packet};

const C: u16 = 0x8100;
const S: u16 = 0x88a8;

fn to(tags: &[(u16, u16)]) -> Packet {
    Packet::from_frame(&frame(station(1), tags)).unwrap()
}

fn tags_out(matches: Match, tag: TagAction, priority: Priority) -> Option<TagsOut> {
    Rule { tag, ..rule(0, matches, 1) }.tags_out(priority)
}

#[test]
fn tags_go_on_the_way_in() {
    use TagAction::{Keep, Rewrite, Strip, StripBoth};
    let (none, one, two) = (&[][..], &[(C, 0xe005)][..], &[(S, 0x7005), (C, 0x2006)][..]);
    let cases = [
        (Keep, two, two),
        (Strip, none, none),
        (Strip, one, none),
        (Strip, two, &[(C, 0x2006)]),
        (Strip, &[(C, 0xe000)], none),
        (StripBoth, none, none),
        (StripBoth, one, none),
        (StripBoth, two, none),
        (StripBoth, &[(S, 1), (C, 2), (C, 3)], &[(C, 3)]),
        (Rewrite(9), none, none),
        (Rewrite(9), one, &[(C, 0xe009)]),
        (Rewrite(4094), two, &[(S, 0x7ffe), (C, 0x2006)]),
    ];
    for (action, before, after) in cases {
        let mut packet = to(before);
        action.apply(&mut packet);
        assert_eq!(packet.data(), to(after).data(), "{action:?} of {before:x?}");
    }
    // Frames that end before, in and after their tags.
    let whole = frame(station(1), two);
    for length in 0..=whole.len() {
        for (action, most) in [(Strip, 1), (StripBoth, 2), (Rewrite(5), 0)] {
            let mut packet = Packet::from_frame(&whole[..length]).unwrap();
            action.apply(&mut packet);
            let gone = 4 * (length.saturating_sub(12) / 4).min(most);
            let rest = &whole[(12 + gone).min(length)..length];
            assert_eq!(
                packet.data(),
                [&whole[..length.min(12)], rest].concat(),
                "{action:?} of {length} bytes"
            );
        }
    }
}

#[test]
fn what_a_rule_does_is_undone_on_the_way_out() {
    let priority = Priority::new(5, true).unwrap();
    let (vlan, qinq) = (Match::Vlan(5), Match::QinQ { outer: 5, inner: 6 });
    let at = Match::VlanMac { vid: 5, mac: station(1) };
    let cases = [
        (Match::Whole, TagAction::Keep, vec![(C, 0xe005)], vec![(C, 0xe005)]),
        (vlan.clone(), TagAction::Keep, vec![(S, 0xe005)], vec![(S, 0xe005)]),
        (vlan.clone(), TagAction::Strip, vec![(C, 0x2005)], vec![(C, 0xb005)]),
        (at, TagAction::Strip, vec![(S, 0x2005), (C, 7)], vec![(C, 0xb005), (C, 7)]),
        (vlan, TagAction::Rewrite(9), vec![(S, 0x2005)], vec![(S, 0x2005)]),
        (qinq.clone(), TagAction::Keep, vec![(C, 5), (C, 6)], vec![(C, 5), (C, 6)]),
        (qinq.clone(), TagAction::Strip, vec![(C, 5), (C, 0xe006)], vec![(S, 0xb005), (C, 0xe006)]),
        (qinq.clone(), TagAction::StripBoth, vec![(C, 5), (S, 6)], vec![(S, 0xb005), (C, 0xb006)]),
        (qinq, TagAction::Rewrite(8), vec![(C, 0x1005), (S, 0xf006)], vec![(C, 0x1005), (S, 0xf006)]),
    ];
    for (matches, action, before, after) in cases {
        let mut packet = to(&before);
        action.apply(&mut packet);
        tags_out(matches.clone(), action, priority).unwrap().apply(&mut packet).unwrap();
        assert_eq!(packet.data(), to(&after).data(), "{matches}, {action:?}");
    }
    // Nobody knows which tags these had.
    for (matches, action) in [
        (Match::Whole, TagAction::Strip),
        (Match::Mac(station(1)), TagAction::Rewrite(3)),
        (Match::Id(1), TagAction::StripBoth),
        (Match::Vlan(5), TagAction::StripBoth),
    ] {
        assert_eq!(tags_out(matches, action, priority), None);
    }
}

#[test]
fn a_switch_cannot_send_into_another_vlan() {
    let zero = Priority::default();
    let keep = tags_out(Match::Vlan(5), TagAction::Keep, zero).unwrap();
    let rewrite = tags_out(Match::Vlan(5), TagAction::Rewrite(9), zero).unwrap();
    let strip = tags_out(Match::QinQ { outer: 5, inner: 6 }, TagAction::Strip, zero).unwrap();
    for (out, tags) in [
        (keep, &[][..]),
        (keep, &[(C, 6)]),
        (keep, &[(C, 0), (C, 5)]),
        (strip, &[]),
        (strip, &[(C, 7)]),
        (strip, &[(C, 0), (C, 6)]),
    ] {
        let mut packet = to(tags);
        assert_eq!(out.apply(&mut packet), Err(TagError::Foreign));
        assert_eq!(packet.data(), to(tags).data(), "as it was");
    }
    for (tags, after) in [(&[][..], (C, 5)), (&[(C, 0xe007)], (C, 0xe005)), (&[(C, 0x2000)], (C, 0x2005))] {
        let mut packet = to(tags);
        rewrite.apply(&mut packet).unwrap();
        assert_eq!(packet.data(), to(&[after]).data());
    }
    let both = TagsOut { belongs: Belongs::QinQ { outer: 1, inner: 2 }, change: TagChange::Keep };
    assert_eq!(both.apply(&mut to(&[(S, 1)])), Err(TagError::Foreign));
    assert_eq!(both.apply(&mut to(&[(S, 1), (C, 2)])), Ok(()));
}

#[test]
fn what_has_no_room_for_a_tag_stays_as_it_was() {
    let tag = Tag::customer(5, Priority::default()).unwrap();
    let one = TagsOut { change: TagChange::Push(tag), belongs: Belongs::Any };
    let two = TagsOut { change: TagChange::PushBoth { outer: tag, inner: tag }, ..one };
    for length in 0..12 {
        let frame = vec![7; length];
        let mut packet = Packet::from_frame(&frame).unwrap();
        assert_eq!(one.apply(&mut packet), Err(TagError::Short(length)));
        assert_eq!(packet.data(), frame);
    }
    let mut packet = Packet::from_frame(&[7; 12]).unwrap();
    two.apply(&mut packet).unwrap();
    assert_eq!(packet.data(), [&[7; 12][..], &[0x81, 0, 0, 5, 0x81, 0, 0, 5]].concat());

    let mut longest = Packet::from_frame(&vec![7; MAX_FRAME - 7]).unwrap();
    assert!(matches!(two.apply(&mut longest), Err(TagError::Long(_))));
    assert_eq!(longest.data(), vec![7; MAX_FRAME - 7]);
    one.apply(&mut longest).unwrap();
    assert!(matches!(one.apply(&mut longest), Err(TagError::Long(error)) if error.length == MAX_FRAME - 3));
    assert_eq!((longest.len(), &longest.data()[12..17]), (MAX_FRAME - 3, &[0x81, 0, 0, 5, 7][..]));

    // Without headroom the packet moves its frame, as long as its slot has room.
    let mut packet = Packet::from_frame(&[9; 60]).unwrap();
    packet.push(HEADROOM).unwrap();
    two.apply(&mut packet).unwrap();
    assert_eq!(packet.data()[HEADROOM + 8..], [9; 60]);
    assert_eq!(packet.len(), HEADROOM + 68);
}

#[test]
fn a_target_has_each_exit_once() {
    let target = |port| Target { switch: 3, port };
    let tags = tags_out(Match::Vlan(5), TagAction::Strip, Priority::default()).unwrap();
    let exit = |physical| Exit { physical, tags };
    let pairs = [(target(1), exit(9)), (target(0), exit(1)), (target(1), exit(4)), (target(1), exit(9))];
    let map = TagMap::new(&pairs).unwrap();
    assert_eq!(map.exits(target(1)), [exit(9), exit(4)]);
    assert_eq!(map.exits(target(0)), [exit(1)]);
    assert_eq!(map.exits(target(2)), []);
    let other = Exit { tags: TagsOut::default(), ..exit(4) };
    let error = TagMap::new(&[&pairs[..], &[(target(1), other)]].concat()).unwrap_err();
    let text = "frames of switch 3 port 1 would leave physical port 4 with two kinds of tags";
    assert_eq!(error.to_string(), text);
}
