//! Datagrams of whoever reaches the agent: none of them makes it fail, or costs much.

mod ber;

use ber::*;
use millrace_snmp::{Agent, Builder, Cell, MAX_REQUEST, MAX_RESPONSE, Rows, Value, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most time for one datagram, without optimisation and with other tests at work; docs/snmp.md has what it takes as released.
const TIME: Duration = Duration::from_millis(200);

/// As many objects as a switch with 4096 virtual links has.
fn large() -> Arc<View> {
    let mut builder = Builder::default();
    let rows: Vec<[u32; 2]> = (0..4096).map(|row| [row % 16 + 1, row]).collect();
    let mut rows: Vec<&[u32]> = rows.iter().map(|row| &row[..]).collect();
    rows.sort_unstable();
    let wide: &dyn Fn(usize) -> Option<Cell> = &|row| Some(Value::Counter64(row as u64).into());
    let narrow: &dyn Fn(usize) -> Option<Cell> = &|row| Some(Value::counter(row as u64).into());
    let columns = (1..=12).map(|number| (number, if number < 11 { wide } else { narrow }));
    builder.table(&parts("1.3.6.1.3.6647.1.4.1"), Rows::new(rows), columns);
    Arc::new(builder.view())
}

/// Answers a datagram, and looks at what that took.
fn answer(agent: &Agent, view: &Arc<View>, datagram: &[u8]) -> Option<Vec<u8>> {
    let begun = Instant::now();
    let answer = agent.answer(datagram, &|| Some(Arc::clone(view)));
    assert!(begun.elapsed() < TIME, "{:?} for {datagram:02x?}", begun.elapsed());
    assert!(answer.as_ref().is_none_or(|answer| answer.len() <= MAX_RESPONSE.max(datagram.len())));
    answer
}

#[test]
fn damaged_requests_are_dropped_or_answered() {
    let (agent, view) = (Agent::new("public"), large());
    let names = ["1.3.6.1.3.6647.1.4.1.1", "1.3.6.1.3.6647.1.4.1.11.3.4294967295"].map(asked);
    let whole = [
        message(0, GET, 1, (0, 0), &names),
        message(0, SET, 77_777, (0, 0), &[binding("1.3.6.1.2.1.1.5.0", tlv(OCTETS, &[7; 200]))]),
        message(1, BULK, 1, (0, 20), &names),
        message(1, NEXT, -1, (0, 0), &names),
    ];
    for whole in whole {
        assert!(answer(&agent, &view, &whole).is_some());
        for end in 0..whole.len() {
            answer(&agent, &view, &whole[..end]);
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0x81, 0x84, 0xff, whole[at].wrapping_add(1), whole[at] ^ 0x20] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                answer(&agent, &view, &damaged);
            }
        }
    }
}

#[test]
fn the_most_that_a_datagram_can_ask_for_is_bounded() {
    let (agent, view) = (Agent::new("public"), large());
    let first = asked("1.3.6.1.3.6647.1.4.1.1");
    // All bindings that fit a request, each before a table of counters that version 1 has not.
    let fit = (MAX_REQUEST - 100) / first.len();
    for (version, pdu, numbers) in [
        (0, NEXT, (0, 0)),
        (0, GET, (0, 0)),
        (1, NEXT, (0, 0)),
        (1, BULK, (255, i32::MAX)),
        (1, BULK, (0, i32::MAX)),
    ] {
        for many in [1, 200, 256, 257, fit] {
            let numbers = (numbers.0.into(), numbers.1.into());
            let datagram = message(version, pdu, 1, numbers, &vec![first.clone(); many]);
            assert!(datagram.len() <= MAX_REQUEST);
            assert!(answer(&agent, &view, &datagram).is_some(), "{version} {pdu:x} {many}");
        }
    }
    // Nesting, in definite and indefinite form; strings of strings; a request's number of a thousand bytes; lengths that lie.
    let mut deep = tlv(NULL, &[]);
    while deep.len() < MAX_REQUEST - 8 {
        deep = tlv(SEQUENCE, &deep);
    }
    answer(&agent, &view, &deep);
    answer(&agent, &view, &[0x30, 0x80].repeat(MAX_REQUEST / 2));
    answer(&agent, &view, &[&[0x30, 0x80, 2, 1, 0], &[0x24, 0x80].repeat(MAX_REQUEST / 2 - 10)[..]].concat());
    let long = tlv(INTEGER, &[0x55; 8000]);
    let pdu = tlv(GET, &[long, number(INTEGER, 0), number(INTEGER, 0), tlv(SEQUENCE, &[])].concat());
    let datagram = tlv(SEQUENCE, &[number(INTEGER, 0), tlv(OCTETS, b"public"), pdu].concat());
    // Version 1 has no limit for it: it comes back as it was.
    let repeated = answer(&agent, &view, &datagram).unwrap();
    assert_eq!(repeated.len(), datagram.len());
    answer(&agent, &view, &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 2, 1, 0]);
    answer(&agent, &view, &[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 1, 0]);
}

#[test]
fn a_walk_over_all_objects_ends() {
    let (agent, view) = (Agent::new("public"), large());
    let (mut name, mut found) = ("1.3".to_owned(), 0);
    loop {
        let datagram = message(1, BULK, 1, (0, 100), &[asked(&name)]);
        let said = agent.answer(&datagram, &|| Some(Arc::clone(&view))).unwrap();
        let names = names(&said);
        found += names.len();
        if said.ends_with(&[END_OF_VIEW, 0]) {
            // The end repeats the last name.
            assert_eq!(found - 1, view.len());
            break;
        }
        name = names.last().unwrap().clone();
    }
}

/// The names of an answer's bindings.
fn names(message: &[u8]) -> Vec<String> {
    fn contents(bytes: &[u8]) -> (u8, &[u8], &[u8]) {
        let (start, len) = match bytes[1] {
            0x81 => (3, usize::from(bytes[2])),
            0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
            len => (2, usize::from(len)),
        };
        (bytes[0], &bytes[start..start + len], &bytes[start + len..])
    }
    let after = |bytes| contents(bytes).2;
    let pdu = contents(after(after(contents(message).1))).1;
    let mut list = contents(after(after(after(pdu)))).1;
    let mut names = Vec::new();
    while !list.is_empty() {
        let (_, one, rest) = contents(list);
        let mut numbers: Vec<u32> = Vec::new();
        let mut number = 0;
        for byte in contents(one).1 {
            number = number << 7 | u32::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                numbers.push(std::mem::take(&mut number));
            }
        }
        let first = numbers[0];
        let all = [first / 40, first % 40].into_iter().chain(numbers[1..].iter().copied());
        names.push(all.map(|number| number.to_string()).collect::<Vec<_>>().join("."));
        list = rest;
    }
    names
}
