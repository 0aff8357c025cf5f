//! Requests and answers byte by byte: the examples of the standards, and each error that they have.

mod ber;

use ber::*;
use millrace_snmp::{Agent, Builder, Cell, MAX_BINDINGS, MAX_RESPONSE, Rows, Value, View};
use std::sync::Arc;

const SYS_UP_TIME: &str = "1.3.6.1.2.1.1.3";
const IP_ROUTING_DISCARDS: &str = "1.3.6.1.2.1.4.23";
const NET_TO_MEDIA: &str = "1.3.6.1.2.1.4.22.1";

/// A table: its entry, its rows, its columns with a value for each row.
fn table(builder: &mut Builder, entry: &str, rows: &[&[u32]], columns: &[(u32, &[Value])]) {
    type Of<'c> = Box<dyn Fn(usize) -> Option<Cell> + 'c>;
    let columns = columns.iter().map(|(number, values)| {
        let of: Of<'_> = Box::new(move |row| Some(values[row].clone().into()));
        (*number, of)
    });
    let columns: Vec<(u32, Of<'_>)> = columns.collect();
    builder.table(
        &parts(entry),
        Rows::new(rows.iter().copied()),
        columns.iter().map(|(number, of)| (*number, &**of)),
    );
}

fn scalar(builder: &mut Builder, object: &str, value: Value) {
    builder.scalar(&parts(object), Some(value));
}

fn ask(view: View, request: &[u8]) -> Option<Vec<u8>> {
    let view = Arc::new(view);
    Agent::new("public").answer(request, &|| Some(Arc::clone(&view)))
}

/// The routes of RFC 1157, 4.1.3.1: destination, next hop, metric.
fn routes() -> View {
    let address = Value::Address;
    let mut builder = Builder::default();
    table(
        &mut builder,
        "1.3.6.1.2.1.4.21.1",
        &[&[9, 1, 2, 3], &[10, 0, 0, 51], &[10, 0, 0, 99]],
        &[
            (1, &[address([9, 1, 2, 3]), address([10, 0, 0, 51]), address([10, 0, 0, 99])]),
            (3, &[Value::Integer(3), Value::Integer(5), Value::Integer(5)]),
            (7, &[address([99, 0, 0, 3]), address([89, 1, 1, 42]), address([89, 1, 1, 42])]),
        ],
    );
    builder.view()
}

/// The objects of the examples of RFC 3416, 4.2.2.1 and 4.2.3.1.
fn addresses() -> View {
    let text = |bytes: [u8; 6]| Value::Text(bytes.as_slice().into());
    let mut builder = Builder::default();
    scalar(&mut builder, SYS_UP_TIME, Value::Ticks(123_456));
    scalar(&mut builder, IP_ROUTING_DISCARDS, Value::Counter32(2));
    table(
        &mut builder,
        NET_TO_MEDIA,
        &[&[1, 9, 2, 3, 4], &[1, 10, 0, 0, 51], &[2, 10, 0, 0, 15]],
        &[
            (
                2,
                &[
                    text([0, 0, 16, 0x54, 0x32, 16]),
                    text([0, 0, 16, 1, 0x23, 0x45]),
                    text([0, 0, 16, 0x98, 0x76, 0x54]),
                ],
            ),
            (
                3,
                &[
                    Value::Address([9, 2, 3, 4]),
                    Value::Address([10, 0, 0, 51]),
                    Value::Address([10, 0, 0, 15]),
                ],
            ),
            (4, &[Value::Integer(3), Value::Integer(4), Value::Integer(3)]),
        ],
    );
    builder.view()
}

#[test]
fn an_exchange_of_version_1_byte_by_byte() {
    let mut builder = Builder::default();
    builder.scalar(&[1, 3, 6, 1, 2, 1, 1, 2], Some(Value::Name([1, 3, 6, 1, 3, 6647, 3].as_slice().into())));
    #[rustfmt::skip]
    let request = [
        0x30, 0x26,                                           // SEQUENCE
        0x02, 0x01, 0x00,                                     // version: 1 is 0
        0x04, 0x06, 0x70, 0x75, 0x62, 0x6c, 0x69, 0x63,       // community: public
        0xa0, 0x19,                                           // GetRequest
        0x02, 0x01, 0x26, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00, // request-id 38, no error
        0x30, 0x0e, 0x30, 0x0c,                               // one binding
        0x06, 0x08, 0x2b, 0x06, 0x01, 0x02, 0x01, 0x01, 0x02, 0x00, // sysObjectID.0
        0x05, 0x00,                                           // NULL
    ];
    #[rustfmt::skip]
    let answer = [
        0x30, 0x2d,
        0x02, 0x01, 0x00,
        0x04, 0x06, 0x70, 0x75, 0x62, 0x6c, 0x69, 0x63,
        0xa2, 0x20,                                           // GetResponse
        0x02, 0x01, 0x26, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00,
        0x30, 0x15, 0x30, 0x13,
        0x06, 0x08, 0x2b, 0x06, 0x01, 0x02, 0x01, 0x01, 0x02, 0x00,
        0x06, 0x07, 0x2b, 0x06, 0x01, 0x03, 0xb3, 0x77, 0x03, // 6647 is 51 * 128 + 119
    ];
    assert_eq!(ask(builder.view(), &request).as_deref(), Some(&answer[..]));
}

#[test]
fn routes_are_walked_as_rfc_1157_has_it() {
    const ROUTE: &str = "1.3.6.1.2.1.4.21.1";
    let of = |column: u32, row: &str| format!("{ROUTE}.{column}{row}");
    let mut rows = ["", ".9.1.2.3", ".10.0.0.51", ".10.0.0.99"].map(str::to_owned);
    let said = [
        ([9, 1, 2, 3], [99, 0, 0, 3], 3),
        ([10, 0, 0, 51], [89, 1, 1, 42], 5),
        ([10, 0, 0, 99], [89, 1, 1, 42], 5),
    ];
    for (at, (destination, hop, metric)) in said.into_iter().enumerate() {
        let from = &rows[at];
        let request =
            message(0, NEXT, 7, (0, 0), &[asked(&of(1, from)), asked(&of(7, from)), asked(&of(3, from))]);
        let row = &rows[at + 1];
        let wanted = [
            binding(&of(1, row), tlv(ADDRESS, &destination)),
            binding(&of(7, row), tlv(ADDRESS, &hop)),
            binding(&of(3, row), number(INTEGER, metric)),
        ];
        assert_eq!(ask(routes(), &request), Some(message(0, RESPONSE, 7, (0, 0), &wanted)));
    }
    // After the last row come objects of other columns, and after the last column none.
    rows[0] = rows[3].clone();
    let request = [asked(&of(1, &rows[0])), asked(&of(3, &rows[0]))];
    let wanted = [
        binding(&of(3, ".9.1.2.3"), number(INTEGER, 3)),
        binding(&of(7, ".9.1.2.3"), tlv(ADDRESS, &[99, 0, 0, 3])),
    ];
    let answer = ask(routes(), &message(0, NEXT, 7, (0, 0), &request));
    assert_eq!(answer, Some(message(0, RESPONSE, 7, (0, 0), &wanted)));
    let last = [asked(&of(1, "")), asked(&of(7, &rows[0]))];
    let answer = ask(routes(), &message(0, NEXT, 7, (0, 0), &last));
    assert_eq!(answer, Some(message(0, RESPONSE, 7, (2, 2), &last)));
}

#[test]
fn tables_are_read_in_bulk_as_rfc_3416_has_it() {
    let up_time = binding("1.3.6.1.2.1.1.3.0", number(TICKS, 123_456));
    let physical =
        |row: &str, bytes: [u8; 6]| binding(&format!("{NET_TO_MEDIA}.2.{row}"), tlv(OCTETS, &bytes));
    let kind = |row: &str, kind| binding(&format!("{NET_TO_MEDIA}.4.{row}"), number(INTEGER, kind));
    let first = [SYS_UP_TIME, &format!("{NET_TO_MEDIA}.2"), &format!("{NET_TO_MEDIA}.4")].map(asked);
    let wanted = [
        up_time.clone(),
        physical("1.9.2.3.4", [0, 0, 16, 0x54, 0x32, 16]),
        kind("1.9.2.3.4", 3),
        physical("1.10.0.0.51", [0, 0, 16, 1, 0x23, 0x45]),
        kind("1.10.0.0.51", 4),
    ];
    // Non-repeaters 1, max-repetitions 2.
    let answer = ask(addresses(), &message(1, BULK, 1, (1, 2), &first));
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), &wanted)));

    let second =
        [SYS_UP_TIME, &format!("{NET_TO_MEDIA}.2.1.10.0.0.51"), &format!("{NET_TO_MEDIA}.4.1.10.0.0.51")];
    let wanted = [
        up_time.clone(),
        physical("2.10.0.0.15", [0, 0, 16, 0x98, 0x76, 0x54]),
        kind("2.10.0.0.15", 3),
        binding(&format!("{NET_TO_MEDIA}.3.1.9.2.3.4"), tlv(ADDRESS, &[9, 2, 3, 4])),
        binding(&format!("{IP_ROUTING_DISCARDS}.0"), number(COUNTER32, 2)),
    ];
    let answer = ask(addresses(), &message(1, BULK, 1, (1, 2), &second.map(asked)));
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), &wanted)));

    // Past the end the name stays, and no more than one repetition says so.
    let past = format!("{IP_ROUTING_DISCARDS}.0");
    let answer = ask(addresses(), &message(1, BULK, 1, (0, 9), &[asked(&past)]));
    let wanted = [binding(&past, tlv(END_OF_VIEW, &[]))];
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), &wanted)));
    // More non-repeaters than bindings are all of them, and no repetition is none.
    let answer = ask(addresses(), &message(1, BULK, 1, (7, 2), &[asked(SYS_UP_TIME)]));
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), std::slice::from_ref(&up_time))));
    let answer = ask(addresses(), &message(1, BULK, 1, (1, 0), &[asked(SYS_UP_TIME), asked(NET_TO_MEDIA)]));
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), std::slice::from_ref(&up_time))));
    // Numbers that are less than zero stand for zero.
    let least = i32::MIN.into();
    let answer = ask(addresses(), &message(1, BULK, 1, (least, 1), &[asked(SYS_UP_TIME)]));
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), std::slice::from_ref(&up_time))));
    let answer = ask(addresses(), &message(1, BULK, 1, (1, -1), &[asked(SYS_UP_TIME), asked(NET_TO_MEDIA)]));
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (0, 0), &[up_time])));
}

#[test]
fn what_is_missing_is_told_as_each_version_has_it() {
    let request = |version, pdu, names: &[&str]| {
        let bindings: Vec<_> = names.iter().copied().map(asked).collect();
        message(version, pdu, 9, (0, 0), &bindings)
    };
    let (there, object) = ("1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.99.1.0");
    let instance = format!("{NET_TO_MEDIA}.2.7");
    // Version 2 says of each what it is.
    let answer = ask(addresses(), &request(1, GET, &[there, object, &instance, SYS_UP_TIME]));
    let wanted = [
        binding(there, number(TICKS, 123_456)),
        binding(object, tlv(NO_SUCH_OBJECT, &[])),
        binding(&instance, tlv(NO_SUCH_INSTANCE, &[])),
        binding(SYS_UP_TIME, tlv(NO_SUCH_INSTANCE, &[])),
    ];
    assert_eq!(answer, Some(message(1, RESPONSE, 9, (0, 0), &wanted)));
    // Version 1 names the first that is missing, and repeats the request.
    for missing in [object, &instance] {
        let bindings = [asked(there), asked(missing), asked(there)];
        let answer = ask(addresses(), &message(0, GET, 9, (0, 0), &bindings));
        assert_eq!(answer, Some(message(0, RESPONSE, 9, (2, 2), &bindings)));
    }
    // The end, of both.
    let bindings = [asked(object)];
    let answer = ask(addresses(), &message(0, NEXT, 9, (0, 0), &bindings));
    assert_eq!(answer, Some(message(0, RESPONSE, 9, (2, 1), &bindings)));
    let answer = ask(addresses(), &message(1, NEXT, 9, (0, 0), &bindings));
    let wanted = [binding(object, tlv(END_OF_VIEW, &[]))];
    assert_eq!(answer, Some(message(1, RESPONSE, 9, (0, 0), &wanted)));
    // Nothing was asked for.
    for (version, pdu) in [(0, GET), (0, NEXT), (0, SET), (1, GET), (1, NEXT), (1, BULK), (1, SET)] {
        assert_eq!(
            ask(addresses(), &request(version, pdu, &[])),
            Some(message(version, RESPONSE, 9, (0, 0), &[]))
        );
    }
}

#[test]
fn nothing_can_be_set() {
    let bindings =
        [binding("1.3.6.1.2.1.1.3.0", number(TICKS, 1)), binding("1.3.6.1.2.1.1.5.0", tlv(OCTETS, b"name"))];
    let view = Arc::new(addresses());
    let agent = Agent::new("public");
    // noSuchName, notWritable.
    for (version, error) in [(0, 2), (1, 17)] {
        let answer = agent.answer(&message(version, SET, -5, (0, 0), &bindings), &|| Some(Arc::clone(&view)));
        assert_eq!(answer, Some(message(version, RESPONSE, -5, (error, 1), &bindings)));
    }
    // snmpInSetRequests, snmpInBadCommunityUses.
    assert_eq!([17, 5].map(|number| agent.statistics().get(number)), [2, 2]);
}

#[test]
fn an_agent_that_cannot_ask_says_so() {
    let agent = Agent::new("public");
    let bindings = [asked("1.3.6.1.2.1.1.3.0")];
    let answer = agent.answer(&message(0, GET, 1, (0, 0), &bindings), &|| None);
    assert_eq!(answer, Some(message(0, RESPONSE, 1, (5, 1), &bindings)));
    let answer = agent.answer(&message(1, NEXT, 1, (0, 0), &bindings), &|| None);
    assert_eq!(answer, Some(message(1, RESPONSE, 1, (5, 1), &bindings)));
    assert_eq!(agent.statistics().get(24), 2);
}

/// A column of so many long texts.
fn long_texts(count: u32) -> View {
    let mut builder = Builder::default();
    let rows: Vec<[u32; 1]> = (0..count).map(|row| [row]).collect();
    let rows = Rows::new(rows.iter().map(|row| &row[..]));
    let text: &dyn Fn(usize) -> Option<Cell> = &|_| Some(Value::text(&"x".repeat(255)).into());
    builder.table(&parts("1.3.6.1.4"), rows, [(1, text)]);
    builder.view()
}

#[test]
fn an_answer_has_a_largest_size() {
    let names: Vec<String> = (0..6).map(|row| format!("1.3.6.1.4.1.{row}")).collect();
    let bindings: Vec<_> = names.iter().map(|name| asked(name)).collect();
    // Each value has 258 bytes with its length: 5 fit, 6 do not.
    let fits = ask(long_texts(9), &message(1, GET, 1, (0, 0), &bindings[..5])).unwrap();
    assert!(fits.len() > 5 * 258 && fits.len() <= MAX_RESPONSE, "{}", fits.len());
    assert_eq!(
        ask(long_texts(9), &message(0, GET, 1, (0, 0), &bindings)),
        Some(message(0, RESPONSE, 1, (1, 0), &bindings))
    );
    assert_eq!(
        ask(long_texts(9), &message(1, GET, 1, (0, 0), &bindings)),
        Some(message(1, RESPONSE, 1, (1, 0), &[]))
    );
    // In bulk as many as fit.
    let bulk =
        ask(long_texts(9), &message(1, BULK, 1, (0, i128::from(i32::MAX)), &[asked("1.3.6.1.4")])).unwrap();
    let wanted: Vec<_> = names[..5].iter().map(|name| binding(name, tlv(OCTETS, &[b'x'; 255]))).collect();
    assert_eq!(bulk, message(1, RESPONSE, 1, (0, 0), &wanted));
    // Short ones up to the last byte that there is: another binding would not fit.
    let mut builder = Builder::default();
    let rows: Vec<[u32; 1]> = (0..1000).map(|row| [row]).collect();
    let one: &dyn Fn(usize) -> Option<Cell> = &|_| Some(Value::Integer(1).into());
    builder.table(&parts("1.3.6.1.4"), Rows::new(rows.iter().map(|row| &row[..])), [(1, one)]);
    let bulk = ask(builder.view(), &message(1, BULK, 1, (0, 1000), &[asked("1.3.6.1.4")])).unwrap();
    assert!((MAX_RESPONSE - 15 - 6..=MAX_RESPONSE).contains(&bulk.len()), "{}", bulk.len());
    // And there are only so many bindings.
    let many = vec![asked("1.3.6.1.4.1.0"); MAX_BINDINGS + 1];
    assert_eq!(
        ask(long_texts(1), &message(1, GET, 1, (0, 0), &many)),
        Some(message(1, RESPONSE, 1, (1, 0), &[]))
    );
    assert_eq!(
        ask(long_texts(1), &message(0, GET, 1, (0, 0), &many)),
        Some(message(0, RESPONSE, 1, (1, 0), &many))
    );
}

#[test]
fn counters_of_64_bits_are_for_version_2() {
    let view = || {
        let mut builder = Builder::default();
        scalar(&mut builder, "1.3.6.1.4.1", Value::Counter64(u64::MAX));
        scalar(&mut builder, "1.3.6.1.4.2", Value::Counter32(u32::MAX));
        builder.view()
    };
    let wide = binding("1.3.6.1.4.1.0", number(COUNTER64, u64::MAX.into()));
    let narrow = binding("1.3.6.1.4.2.0", number(COUNTER32, u32::MAX.into()));
    let next = |version| message(version, NEXT, 3, (0, 0), &[asked("1.3.6.1.4")]);
    assert_eq!(ask(view(), &next(1)), Some(message(1, RESPONSE, 3, (0, 0), &[wide])));
    assert_eq!(ask(view(), &next(0)), Some(message(0, RESPONSE, 3, (0, 0), &[narrow])));
    let get = [asked("1.3.6.1.4.1.0")];
    assert_eq!(ask(view(), &message(0, GET, 3, (0, 0), &get)), Some(message(0, RESPONSE, 3, (2, 1), &get)));
}

#[test]
fn what_is_not_to_be_answered_is_counted() {
    let view = Arc::new(addresses());
    let agent = Agent::new("public");
    let says_nothing = |request: &[u8]| {
        assert_eq!(agent.answer(request, &|| Some(Arc::clone(&view))), None);
    };
    let bindings = [asked("1.3.6.1.2.1.1.3.0")];
    let get = message(1, GET, 1, (0, 0), &bindings);
    // Version 3 is 3, and 2 was another one.
    says_nothing(&message(3, GET, 1, (0, 0), &bindings));
    says_nothing(&message(2, GET, 1, (0, 0), &bindings));
    for community in ["", "publi", "publics", "Public", "private"] {
        says_nothing(&with_community(1, community, GET, 1, (0, 0), &bindings));
    }
    // No message; a byte too few, one too many; requests that version 1 has not; names that are too long; numbers of 33 bits.
    let names = vec!["1"; 129].join(".");
    for wrong in [
        &[][..],
        &[0x30],
        b"GET / HTTP/1.1",
        &get[..get.len() - 1],
        &[&get[..], &[0]].concat(),
        &message(0, BULK, 1, (0, 1), &bindings),
        &message(0, 0xa7, 1, (0, 1), &bindings),
        &message(1, GET, 1, (0, 0), &[asked(&names)]),
        &message(1, GET, 1 << 33, (0, 0), &bindings),
        &message(1, BULK, 1 << 33, (0, 1), &bindings),
        &vec![0x30; 9000],
    ] {
        says_nothing(wrong);
    }
    // What agents say: a response, a trap.
    says_nothing(&message(1, RESPONSE, 1, (0, 0), &bindings));
    says_nothing(&message(1, 0xa7, 1, (0, 0), &bindings));
    assert!(agent.answer(&get, &|| Some(Arc::clone(&view))).is_some());
    // snmpInPkts, snmpOutPkts, snmpInBadVersions, snmpInBadCommunityNames, snmpInASNParseErrs, snmpInGetResponses, snmpInTraps.
    let counts = [1, 2, 3, 4, 6, 18, 19].map(|number| agent.statistics().get(number));
    assert_eq!(counts, [21, 1, 2, 5, 11, 1, 1]);
}
