//! A register map as JSON, written with a design.

use millrace_rtl::map::{Field, RegisterMap};
use serde_json::{Value, json};

/// The register map as JSON.
pub(crate) fn as_json(map: &RegisterMap) -> Value {
    let registers: Vec<_> = (Field::ALL.iter())
        .map(|field| {
            json!({ "name": field.name(), "offset": field.offset(), "writable": field.is_written(), "about": field.about() })
        })
        .collect();
    let ports: Vec<_> = (map.ports.iter().zip(map.c_names()).enumerate())
        .map(|(number, (port, c_name))| {
            json!({ "number": number, "object": port.object, "c_name": c_name, "kind": port.kind.to_string(), "words": port.words,
                    "bits": port.width, "readable": port.readable, "writable": port.writable })
        })
        .collect();
    let tables: Vec<_> = (map.tables.iter())
        .map(|table| {
            let memories: Vec<_> = (table.areas.iter())
                .map(|area| json!({ "name": area.name, "base": area.base, "words": area.words, "bits": area.width }))
                .collect();
            json!({ "port": table.port, "unit": table.kind, "memories": memories })
        })
        .collect();
    let words: Vec<_> = (map.names.iter())
        .map(|word| json!({ "name": word.name, "port": word.port, "address": word.address }))
        .collect();
    json!({ "program": map.program, "cookie": format!("{:#018x}", map.cookie), "ident": RegisterMap::IDENT,
            "version": RegisterMap::VERSION, "bytes": map.size(), "data_offset": RegisterMap::DATA, "data_registers": map.words(),
            "command": { "write": RegisterMap::WRITE, "read": RegisterMap::READ, "next": RegisterMap::NEXT },
            "registers": registers, "ports": ports, "tables": tables, "words": words })
}
