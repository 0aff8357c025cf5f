//! What a table takes in memory, all of its structures together.

use millrace_tables::engines::Domain;
use millrace_tables::{
    ActionCall, EntrySpec, FieldMatch, KeyField, KeySchema, MatchKind, RecordLayout, Table, TableSpec,
};

fn table(width: u32, kind: MatchKind, size: u32) -> Table {
    let schema = KeySchema::new(vec![KeyField { width, kind }]).unwrap();
    let records = RecordLayout::new(&[vec![32]]);
    let spec = TableSpec { records, ..TableSpec::new(schema, size, ActionCall::new(0, [0; 4])) };
    Table::new(spec, &Domain::new()).unwrap()
}

/// Different numbers in no order.
fn scattered(at: u32) -> u64 {
    u64::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn an_exact_entry_of_48_bits_takes_at_most_100_bytes() {
    const ENTRIES: u32 = 50_000;
    let mut table = table(48, MatchKind::Exact, ENTRIES);
    for at in 0..ENTRIES {
        let key = FieldMatch::Exact(scattered(at).to_be_bytes()[..6].to_vec());
        let call = ActionCall::new(0, (at % 4).to_be_bytes());
        table.insert(EntrySpec::new(vec![key], call)).unwrap();
    }
    let bytes = table.memory_bytes() / ENTRIES as usize;
    assert!(bytes <= 100, "{bytes} bytes an entry");
}

#[test]
fn an_ipv4_prefix_takes_at_most_32_bytes_beside_the_first_array() {
    const ENTRIES: u32 = 50_000;
    const FIRST_ARRAY: usize = 40 << 20;
    let mut table = table(32, MatchKind::Lpm, ENTRIES);
    for at in 0..ENTRIES {
        let value = (scattered(at) >> 32) as u32 & 0xffff_ff00;
        let prefix = FieldMatch::Lpm { value: value.to_be_bytes().to_vec(), prefix_len: 24 };
        // Some prefixes come twice.
        let _ = table.insert(EntrySpec::new(vec![prefix], ActionCall::new(0, (at % 4).to_be_bytes())));
    }
    let bytes = table.memory_bytes();
    assert!(bytes <= FIRST_ARRAY + 32 * ENTRIES as usize, "{bytes} bytes");
}
