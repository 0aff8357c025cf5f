//! The text and JSON forms against `prost-reflect`, which knows nothing of the tables and of the code here.

use millrace_messages::config::P4Info;
use millrace_messages::text::{MAX_DEPTH, Style, read, write};
use millrace_messages::v1::WriteRequest;
use millrace_messages::{DEFINITIONS, Described, json};
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use std::sync::LazyLock;

const INFO: &str = r#"
pkg_info { name: "a" arch: "v1model" doc { brief: "b" } platform_properties { multicast_group_table_size: -7 } }
tables {
  preamble { id: 33554433 name: "t" annotations: "@x" annotations: "@y" doc {} }
  match_fields { id: 1 name: "f" bitwidth: 8 other_match_type: "mine" doc { brief: "d" } type_name { name: "N" }
                 structured_annotations { name: "s" kv_pair_list { kv_pairs { key: "k" value { int64_value: 0 } } } } }
  match_fields { id: 2 match_type: LPM }
  action_refs { id: 5 scope: DEFAULT_ONLY annotations: "@defaultonly" }
  initial_default_action { action_id: 5 arguments { param_id: 1 value: "\000\377\"'\n\\" } }
  direct_resource_ids: [1, 300] size: 1024 idle_timeout_behavior: NOTIFY_CONTROL is_const_table: true
}
action_profiles { preamble { id: 3 } sum_of_members { max_member_weight: 3 } weights_disallowed: true }
meters { preamble { id: 4 } spec { unit: BYTES type: SINGLE_RATE_TWO_COLOR } }
type_info {
  structs { key: "empty" value {} }
  structs { key: "a" value { members { name: "m" type_spec { tuple { members { bool {} } members { error {} } } } } } }
  serializable_enums { key: "E" value { underlying_type { bitwidth: 8 } members { name: "A" value: "\001" } } }
  error { members: "NoError" }
}
"#;

const ENTRIES: &str = r#"
updates { type: INSERT entity { table_entry { table_id: 1 priority: 3 match { field_id: 1 lpm { value: "\n\001" prefix_len: 9 } }
  action { action { action_id: 2 params { param_id: 1 value: "A" } } } meter_config { cir: -1 cburst: 5 } } } }
updates { type: INSERT entity { table_entry {} } }
device_id: 18446744073709551615
"#;

fn definition<M: Described>() -> MessageDescriptor {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::decode(DEFINITIONS).unwrap());
    POOL.get_message_by_name(M::MESSAGE.name).unwrap()
}

/// By the other reader.
fn parsed<M: Described>(text: &str) -> Option<DynamicMessage> {
    DynamicMessage::parse_text_format(definition::<M>(), text).ok()
}

fn check<M: Described + PartialEq + std::fmt::Debug>(text: &str) {
    let message: M = read(text).unwrap();
    let other = parsed::<M>(text).unwrap();
    assert_eq!(other.transcode_to::<M>().unwrap(), message);
    for style in [Style::Lines, Style::Brackets] {
        let written = write(&message, style);
        assert_eq!(read::<M>(&written).as_ref(), Ok(&message), "{written}");
        assert!(parsed::<M>(&written).unwrap() == other, "{written}");
    }
    let json = json::write(&message).unwrap();
    let parsed =
        DynamicMessage::deserialize(definition::<M>(), &mut serde_json::Deserializer::from_str(&json));
    assert!(parsed.unwrap() == other, "{json}");
    // Its maps have no order.
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value, serde_json::to_value(&other).unwrap());
}

#[test]
fn both_forms_are_those_of_another_library() {
    check::<P4Info>(INFO);
    check::<WriteRequest>(ENTRIES);
}

#[test]
fn brackets_and_json_are_written_as_the_other_library_writes_them() {
    let message: WriteRequest = read(ENTRIES).unwrap();
    let other = parsed::<WriteRequest>(ENTRIES).unwrap();
    let text = other.to_text_format_with_options(&FormatOptions::new().pretty(true));
    assert_eq!(write(&message, Style::Brackets), text + "\n");
    assert_eq!(json::write(&message).unwrap(), serde_json::to_string_pretty(&other).unwrap());
}

/// In all the forms that protobuf's text form has.
#[test]
fn what_is_read_and_what_is_refused() {
    for text in [
        "",
        "# nothing\n",
        "tables < size: 0x10 >; tables: { size: 010, }",
        "tables: [{ size: -0 }, { size: 7 direct_resource_ids: [] }]",
        "tables { is_const_table: t } tables { is_const_table: 1 } tables { is_const_table: False }",
        "pkg_info { arch: \"a\" 'b\\x41\\101\\u00e9\\U0001F600\\a\\?' }",
        "tables { match_fields { match_type: 3 } match_fields { match_type: 77 } }",
        "tables { other_properties { type_url: \"x/y\" value: \"\\377\" } }",
        "tables { other_properties { [type.googleapis.com/p4.v1.Update] { type: DELETE } } }",
        "pkg_info{name:\"\"version:\"1\"}",
    ] {
        let message: P4Info = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let other = parsed::<P4Info>(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(other.transcode_to::<P4Info>().unwrap(), message, "{text}");
    }
    for (text, place, reason) in [
        ("tables: 1", "1:9", "`{` is expected there"),
        ("tables {\n", "2:1", "the text ends in the middle"),
        ("tables {\n}\n}\n", "3:1", "the name of a field is expected there"),
        ("nonsense: 1", "1:1", "p4.config.v1.P4Info has no field `nonsense`"),
        ("tables { size: 1\n size: 2 }", "2:2", "`size` may be there once"),
        ("tables { size \"a\" }", "1:15", "`:` is expected after `size`"),
        (
            "tables { size: 09 }",
            "1:16",
            "a whole number from -9223372036854775808 to 9223372036854775807 is expected there",
        ),
        (
            "tables { const_default_action_id: -1 }",
            "1:35",
            "a whole number from 0 to 4294967295 is expected there",
        ),
        ("tables { is_const_table: 2 }", "1:26", "a whole number from 0 to 1 is expected there"),
        ("tables { idle_timeout_behavior: MAYBE }", "1:33", "`idle_timeout_behavior` cannot be `MAYBE`"),
        ("tables { direct_resource_ids: [1, ] }", "1:35", "a value is expected after `,`"),
        ("tables { direct_resource_ids: [1 2] }", "1:34", "`,` or `]` is expected there"),
        ("pkg_info { arch: a }", "1:18", "a text in quotes is expected there"),
        ("pkg_info { arch: \"a\n\" }", "1:18", "the text has no quote at its end"),
        ("pkg_info { arch: \"\\q\" }", "1:19", "no such escape"),
        ("pkg_info { arch: \"\\400\" }", "1:19", "no such escape"),
        ("pkg_info { arch: \"\\377\" }", "1:18", "`arch` is not UTF-8"),
        ("tables { other_properties { [x/none] {} } }", "1:29", "no message of type `x/none` is known"),
        ("é", "1:1", "a character that has no meaning there"),
    ] {
        assert_eq!(read::<P4Info>(text), Err(format!("{place}: {reason}")), "{text}");
        assert!(parsed::<P4Info>(text).is_none(), "{text}");
    }
    let both = "tables { match_fields { match_type: EXACT other_match_type: \"a\" } }";
    let refused = read::<P4Info>(both).unwrap_err();
    assert!(refused.ends_with("`other_match_type` cannot be there together with `match_type`"), "{refused}");
    assert!(parsed::<P4Info>(both).is_none());
}

/// Every text with one character more or less, or cut off there.
#[test]
fn damaged_texts_are_read_or_refused_as_by_the_other_library() {
    let mut refused = 0;
    let mut agree = |text: &str| {
        let (own, other) = (read::<P4Info>(text), parsed::<P4Info>(text));
        let other = other.map(|other| other.transcode_to::<P4Info>().unwrap());
        assert_eq!(own.as_ref().ok(), other.as_ref(), "{text}: {own:?}");
        refused += usize::from(own.is_err());
    };
    for at in 0..INFO.len() {
        let (before, after) = INFO.split_at(at);
        agree(before);
        agree(&format!("{before}{}", &after[1..]));
        for character in "\"{}[:,-\\0".chars() {
            agree(&format!("{before}{character}{after}"));
        }
    }
    assert!(refused > 5_000, "{refused}");
}

#[test]
fn nesting_has_a_bound() {
    let nested = |depth: usize| {
        let inner = "tuple { members { ".repeat(depth);
        format!("digests {{ type_spec {{ {inner} {} }} }}", "} } ".repeat(depth))
    };
    let text = nested((MAX_DEPTH - 2) / 2 - 2);
    let message: P4Info = read(&text).unwrap();
    assert_eq!(read::<P4Info>(&write(&message, Style::Lines)), Ok(message));
    assert!(read::<P4Info>(&nested(MAX_DEPTH)).unwrap_err().contains("more than 100 messages"));
    assert!(read::<P4Info>(&"tables { ".repeat(1 << 20)).is_err());
}

/// A message of an unknown type has no JSON form; in text it is its two fields.
#[test]
fn any() {
    let known = "tables { other_properties { [type.googleapis.com/p4.v1.Update] { type: DELETE } } }";
    check::<P4Info>(known);
    assert!(
        write(&read::<P4Info>(known).unwrap(), Style::Lines)
            .contains("[type.googleapis.com/p4.v1.Update] {\n")
    );
    let unknown: P4Info = read("tables { other_properties { type_url: \"x/y\" value: \"a\" } }").unwrap();
    assert!(json::write(&unknown).unwrap_err().contains("unknown type"));
    assert_eq!(read::<P4Info>(&write(&unknown, Style::Lines)), Ok(unknown));
}
