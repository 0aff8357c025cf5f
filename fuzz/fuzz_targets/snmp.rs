//! Datagrams to the SNMP agent of a switch with 4096 virtual links: as they come, and requests put together of arbitrary numbers and
//! names, which get further. No panic, little time and memory for each, no answer that is too long, and each answer a message of the
//! version of its request with the same number.

#![no_main]

use arbitrary::{Result, Unstructured};
use cap::Cap;
use libfuzzer_sys::fuzz_target;
use millrace_snmp::{Agent, Builder, Cell, MAX_RESPONSE, Rows, Value, View};
use rustix::time::{ClockId, clock_gettime};
use std::alloc::System;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// What one datagram may take of the processor, as released and with what fuzzing makes slower; and of memory at a time: an allocation
/// that exceeds it fails, which is a finding.
const TIME: Duration = Duration::from_millis(5 * 20);
const MEMORY: usize = 1 << 20;

/// The links of a large switch, with what has no value here and there, counters of 64 bits, texts and names.
static VIEW: LazyLock<Arc<View>> = LazyLock::new(|| {
    let mut builder = Builder::default();
    let mut rows: Vec<[u32; 2]> = (0..4096).map(|row| [row % 16 + 1, row]).collect();
    rows.sort_unstable();
    let rows = Rows::new(rows.iter().map(|row| &row[..]));
    let columns: [(u32, &dyn Fn(usize) -> Option<Cell>); 5] = [
        (3, &|row| Some(Value::counter(row as u64).into())),
        (4, &|row| Some(Value::Counter64(u64::MAX - row as u64).into())),
        (5, &|row| (row % 7 == 0).then(|| Value::Integer(-(row as i32)).into())),
        (7, &|row| Some(Value::text(&"x".repeat(row % 256)).into())),
        (9, &|_| Some(Value::Name([1, 3, 6, 1, u32::MAX].as_slice().into()).into())),
    ];
    builder.table(&[1, 3, 6, 1, 3, 6647, 1, 4, 1], rows, columns);
    builder.scalar(&[1, 3, 6, 1, 2, 1, 1, 3], Some(Cell::UpTime));
    Arc::new(builder.view())
});

fuzz_target!(|data: &[u8]| {
    let view = &*VIEW;
    answer(view, data);
    if let Ok(datagram) = request(&mut Unstructured::new(data)) {
        answer(view, &datagram);
    }
});

fn answer(view: &Arc<View>, datagram: &[u8]) {
    let agent = Agent::new("public");
    let _ = ALLOCATOR.set_limit(ALLOCATOR.allocated() + MEMORY);
    let before = processor_time();
    let answer = agent.answer(datagram, &|| Some(Arc::clone(view)));
    let took = processor_time().saturating_sub(before);
    let _ = ALLOCATOR.set_limit(usize::MAX);
    assert!(took <= TIME, "the datagram took {took:?}");
    let Some(answer) = answer else { return };
    assert!(answer.len() <= MAX_RESPONSE.max(datagram.len()), "{} bytes", answer.len());
    let (version, id) = version_and_id(datagram);
    assert_eq!((version, id), version_and_id(&answer));
}

/// The contents of a value, and what follows it; lengths in any form that has an end.
fn value(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (start, len) = match bytes[1] {
        long @ 0x81.. => {
            let digits = usize::from(long & 0x7f);
            (2 + digits, bytes[2..2 + digits].iter().fold(0usize, |len, digit| len << 8 | usize::from(*digit)))
        }
        // Indefinite: the rest, with its end.
        0x80 => (2, bytes.len() - 2),
        short => (2, usize::from(short)),
    };
    (&bytes[start..start + len], &bytes[start + len..])
}

/// The numbers of a message, without what only repeats their sign.
fn version_and_id(message: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (version, rest) = value(value(message).0);
    // The community may be in pieces.
    let (_, pdu) = if rest[1] == 0x80 { (rest, after_end(&rest[2..])) } else { value(rest) };
    let (id, _) = value(value(pdu).0);
    (shortest(version), shortest(id))
}

/// What follows the end of contents of a string in pieces.
fn after_end(mut pieces: &[u8]) -> &[u8] {
    let mut open = 1;
    while open > 0 {
        if pieces.starts_with(&[0, 0]) {
            (pieces, open) = (&pieces[2..], open - 1);
        } else if pieces[1] == 0x80 {
            (pieces, open) = (&pieces[2..], open + 1);
        } else {
            pieces = value(pieces).1;
        }
    }
    pieces
}

fn shortest(mut number: &[u8]) -> Vec<u8> {
    while let [0, 0..=127, ..] | [255, 128..=255, ..] = number {
        number = &number[1..];
    }
    number.to_vec()
}

fn tlv(tag: u8, contents: &[u8]) -> Vec<u8> {
    let len = u32::try_from(contents.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[tag, 0x84][..], &len, contents].concat()
}

/// A request that is nearly right.
fn request(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let version = tlv(2, &[u.int_in_range(0..=1)?]);
    let pdu = *u.choose(&[0xa0, 0xa1, 0xa3, 0xa5, 0xa5, 0xa2, 0xa7])?;
    let number = |u: &mut Unstructured<'_>| Ok(tlv(2, &u.arbitrary::<i32>()?.to_be_bytes()[u.int_in_range(0..=3)?..]));
    let mut contents = [number(u)?, number(u)?, number(u)?].concat();
    let mut list = Vec::new();
    for _ in 0..u.int_in_range(0..=300)? {
        let mut name = u.choose(&[&[0x2b, 6, 1, 3, 0xb3, 0x77, 1, 4, 1][..], &[0x2b, 6, 1, 2, 1, 1, 3], &[0x2b], &[]])?.to_vec();
        for _ in 0..u.int_in_range(0..=4)? {
            let part: u32 = if u.arbitrary()? { u.int_in_range(0..=20)? } else { u.arbitrary()? };
            let digits = (0..5).rev().map(|digit| (part >> (7 * digit)) as u8 & 0x7f).skip_while(|digit| *digit == 0);
            let digits: Vec<u8> = digits.collect();
            let (last, first) = digits.split_last().unwrap_or((&0, &[]));
            name.extend(first.iter().map(|digit| digit | 0x80));
            name.push(*last);
        }
        let value = match u.int_in_range(0..=3u8)? {
            0 => tlv(u.arbitrary()?, u.bytes(u.len().min(4))?),
            _ => tlv(5, &[]),
        };
        list.extend(tlv(0x30, &[tlv(6, &name), value].concat()));
        if u.is_empty() {
            break;
        }
    }
    contents.extend(tlv(0x30, &list));
    Ok(tlv(0x30, &[version, tlv(4, b"public"), tlv(pdu, &contents)].concat()))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
