//! Makes the structures and the tables of the messages from the interface definitions, without an installed `protoc`.

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::fmt::Write;
use std::io::Error;
use std::path::PathBuf;

/// The messages that have a text form and a JSON form of their own, and their structures.
const DESCRIBED: [(&str, &str); 2] = [
    ("p4.config.v1.P4Info", "crate::p4::config::v1::P4Info"),
    ("p4.v1.WriteRequest", "crate::p4::v1::WriteRequest"),
];

fn main() -> Result<(), Error> {
    println!("cargo:rerun-if-changed=proto");
    let definitions = protox::compile(["p4/v1/p4runtime.proto", "stratum/p4_role_config.proto"], ["proto"])
        .map_err(Error::other)?;
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(Error::other("no OUT_DIR"))?);
    std::fs::write(folder.join("definitions.bin"), definitions.encode_to_vec())?;
    std::fs::write(folder.join("tables.rs"), tables(&definitions)?)?;
    // The order of maps is that of their keys: the same message has the same bytes each time.
    let structures = tonic_prost_build::configure().build_client(false).build_server(false);
    structures.bytes(".").btree_map(".").compile_fds(definitions)
}

/// A static for each message; they refer to each other.
fn tables(definitions: &FileDescriptorSet) -> Result<String, Error> {
    let (mut messages, mut enums) = (Vec::new(), Vec::new());
    for file in &definitions.file {
        let scope = file.package();
        file.message_type.iter().for_each(|message| collect(scope, message, &mut messages, &mut enums));
        enums.extend(file.enum_type.iter().map(|one| (format!("{scope}.{}", one.name()), one)));
    }
    let mut text = String::new();
    let message_number = |name: &str| messages.iter().position(|(known, _)| known == name);
    for (number, (name, message)) in messages.iter().enumerate() {
        let is_entry = message.options.as_ref().is_some_and(|options| options.map_entry());
        writeln!(
            text,
            "static M{number}: Message = Message {{ name: {name:?}, is_entry: {is_entry}, fields: &["
        )
        .map_err(Error::other)?;
        for field in &message.field {
            let kind = kind(field, &message_number, &enums)
                .ok_or_else(|| Error::other(format!("{name}.{}: no table has such a field", field.name())))?;
            let is_list = field.label() == Label::Repeated;
            let oneof = field.oneof_index.map(|index| message.oneof_decl[index as usize].name());
            writeln!(
                text,
                "    Field {{ name: {:?}, json_name: {:?}, number: {}, kind: Kind::{kind}, is_list: {is_list}, oneof: {oneof:?} }},",
                field.name(),
                field.json_name(),
                field.number()
            )
            .map_err(Error::other)?;
        }
        text.push_str("] };\n");
    }
    let all: Vec<String> = (0..messages.len()).map(|number| format!("&M{number}")).collect();
    writeln!(text, "static MESSAGES: &[&Message] = &[{}];", all.join(", ")).map_err(Error::other)?;
    for (name, structure) in DESCRIBED {
        let number = message_number(name).ok_or_else(|| Error::other(format!("{name} is not defined")))?;
        writeln!(
            text,
            "impl Described for {structure} {{\n    const MESSAGE: &'static Message = &M{number};\n}}"
        )
        .map_err(Error::other)?;
    }
    Ok(text)
}

/// All messages and enumerations that are declared in a message, and itself.
fn collect<'a>(
    scope: &str,
    message: &'a DescriptorProto,
    messages: &mut Vec<(String, &'a DescriptorProto)>,
    enums: &mut Vec<(String, &'a EnumDescriptorProto)>,
) {
    let name = format!("{scope}.{}", message.name());
    message.nested_type.iter().for_each(|inner| collect(&name, inner, messages, enums));
    enums.extend(message.enum_type.iter().map(|one| (format!("{name}.{}", one.name()), one)));
    messages.push((name, message));
}

/// The kind of a field as Rust text. None for the kinds that no message of P4Runtime has.
fn kind(
    field: &FieldDescriptorProto,
    message_number: &dyn Fn(&str) -> Option<usize>,
    enums: &[(String, &EnumDescriptorProto)],
) -> Option<String> {
    let type_name = field.type_name().trim_start_matches('.');
    Some(match field.r#type() {
        Type::Int32 => "Int32".into(),
        Type::Int64 => "Int64".into(),
        Type::Uint32 => "Uint32".into(),
        Type::Uint64 => "Uint64".into(),
        Type::Bool => "Bool".into(),
        Type::String => "String".into(),
        Type::Bytes => "Bytes".into(),
        Type::Enum => {
            let (_, declared) = enums.iter().find(|(name, _)| name == type_name)?;
            let values: Vec<(&str, i32)> =
                declared.value.iter().map(|value| (value.name(), value.number())).collect();
            format!("Enum(&{values:?})")
        }
        Type::Message => format!("Message(&M{})", message_number(type_name)?),
        _ => return None,
    })
}
