//! P4Info as protobuf text, field by field in the order of the schema.

use super::*;
use std::fmt::{self, Display, Formatter, Write};

impl Display for P4Info {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n")?;
        let mut out = Text::default();
        if let Some(info) = &self.pkg_info {
            out.message("pkg_info", |out| out.pkg_info(info));
        }
        self.tables.iter().for_each(|table| out.message("tables", |out| out.table(table)));
        for action in &self.actions {
            out.message("actions", |out| {
                out.preamble(&action.preamble);
                action.params.iter().for_each(|param| out.message("params", |out| out.field_of(param)));
            });
        }
        self.action_profiles
            .iter()
            .for_each(|profile| out.message("action_profiles", |out| out.profile(profile)));
        self.counters.iter().for_each(|counter| out.message("counters", |out| out.counter(counter)));
        self.direct_counters
            .iter()
            .for_each(|counter| out.message("direct_counters", |out| out.direct(counter)));
        self.meters.iter().for_each(|meter| out.message("meters", |out| out.counter(meter)));
        self.direct_meters.iter().for_each(|meter| out.message("direct_meters", |out| out.direct(meter)));
        for header in &self.controller_packet_metadata {
            out.message("controller_packet_metadata", |out| {
                out.preamble(&header.preamble);
                header.metadata.iter().for_each(|field| out.message("metadata", |out| out.field_of(field)));
            });
        }
        for set in &self.value_sets {
            out.message("value_sets", |out| {
                out.preamble(&set.preamble);
                set.matches.iter().for_each(|field| out.message("match", |out| out.field_of(field)));
                out.number("size", set.size);
            });
        }
        for register in &self.registers {
            out.message("registers", |out| {
                out.preamble(&register.preamble);
                out.message("type_spec", |out| out.type_spec(&register.type_spec));
                out.number("size", register.size);
                out.type_name("index_type_name", &register.index_type);
            });
        }
        for digest in &self.digests {
            out.message("digests", |out| {
                out.preamble(&digest.preamble);
                out.message("type_spec", |out| out.type_spec(&digest.type_spec));
            });
        }
        if let Some(types) = &self.type_info {
            out.message("type_info", |out| out.types(types));
        }
        f.write_str(&out.text)
    }
}

/// Text under construction.
#[derive(Default)]
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
    }

    fn message(&mut self, name: &str, body: impl FnOnce(&mut Text)) {
        self.indent();
        self.text.push_str(name);
        self.text.push_str(" {\n");
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.indent();
        self.text.push_str("}\n");
    }

    fn word(&mut self, name: &str, value: impl Display) {
        self.indent();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name}: {value}");
    }

    /// A number; 0 is the default and is left out.
    fn number(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.word(name, value);
        }
    }

    fn bytes(&mut self, name: &str, value: &[u8]) {
        self.indent();
        self.text.push_str(name);
        self.text.push_str(": \"");
        for &byte in value {
            match byte {
                b'\n' => self.text.push_str("\\n"),
                b'\r' => self.text.push_str("\\r"),
                b'\t' => self.text.push_str("\\t"),
                b'"' => self.text.push_str("\\\""),
                b'\'' => self.text.push_str("\\'"),
                b'\\' => self.text.push_str("\\\\"),
                0x20..0x7f => self.text.push(char::from(byte)),
                _ => {
                    let _ = write!(self.text, "\\{byte:03o}");
                }
            }
        }
        self.text.push_str("\"\n");
    }

    fn string(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.bytes(name, value.as_bytes());
        }
    }

    fn preamble(&mut self, preamble: &Preamble) {
        self.message("preamble", |out| {
            out.number("id", preamble.id.into());
            out.string("name", &preamble.name);
            out.string("alias", &preamble.alias);
            out.notes(&preamble.notes, true);
        });
    }

    fn notes(&mut self, notes: &Notes, with_doc: bool) {
        notes.annotations.iter().for_each(|annotation| self.string("annotations", annotation));
        if with_doc && (notes.brief.is_some() || notes.description.is_some()) {
            self.message("doc", |out| {
                notes.brief.iter().for_each(|text| out.string("brief", text));
                notes.description.iter().for_each(|text| out.string("description", text));
            });
        }
        for annotation in &notes.structured {
            self.message("structured_annotations", |out| {
                out.string("name", &annotation.name);
                match &annotation.body {
                    StructuredBody::Empty => {}
                    StructuredBody::List(list) => out.message("expression_list", |out| {
                        list.iter().for_each(|item| out.message("expressions", |out| out.literal(item)));
                    }),
                    StructuredBody::Pairs(pairs) => out.message("kv_pair_list", |out| {
                        for (key, value) in pairs {
                            out.message("kv_pairs", |out| {
                                out.string("key", key);
                                out.message("value", |out| out.literal(value));
                            });
                        }
                    }),
                }
            });
        }
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::String(value) => self.bytes("string_value", value.as_bytes()),
            Literal::Int(value) => self.word("int64_value", value),
            Literal::Bool(value) => self.word("bool_value", value),
        }
    }

    fn pkg_info(&mut self, info: &PkgInfo) {
        let field = |out: &mut Text, wanted: &str| {
            info.fields
                .iter()
                .filter(|(name, _)| *name == wanted)
                .for_each(|(name, value)| out.string(name, value));
        };
        field(self, "name");
        field(self, "version");
        info.notes.annotations.iter().for_each(|annotation| self.string("annotations", annotation));
        self.string("arch", &info.arch);
        field(self, "organization");
        field(self, "contact");
        field(self, "url");
        self.notes(&Notes { annotations: Vec::new(), ..info.notes.clone() }, true);
        if !info.platform_properties.is_empty() {
            self.message("platform_properties", |out| {
                info.platform_properties.iter().for_each(|(name, value)| out.word(name, value));
            });
        }
    }

    fn table(&mut self, table: &Table) {
        self.preamble(&table.preamble);
        table.match_fields.iter().for_each(|field| self.message("match_fields", |out| out.field_of(field)));
        for reference in &table.action_refs {
            self.message("action_refs", |out| {
                out.number("id", reference.id.into());
                out.notes(&Notes { structured: Vec::new(), ..reference.notes.clone() }, false);
                reference.scope.iter().for_each(|scope| out.word("scope", scope));
                out.notes(&Notes { annotations: Vec::new(), ..reference.notes.clone() }, false);
            });
        }
        table.const_default_action.iter().for_each(|&id| self.number("const_default_action_id", id.into()));
        if let Some(default) = &table.initial_default {
            self.message("initial_default_action", |out| {
                out.number("action_id", default.id.into());
                for (param, value) in &default.arguments {
                    out.message("arguments", |out| {
                        out.number("param_id", (*param).into());
                        out.bytes("value", value);
                    });
                }
            });
        }
        table.implementation.iter().for_each(|&id| self.number("implementation_id", id.into()));
        table.direct_resources.iter().for_each(|&id| self.number("direct_resource_ids", id.into()));
        self.number("size", table.size);
        if table.idle_timeout {
            self.word("idle_timeout_behavior", "NOTIFY_CONTROL");
        }
        if table.is_const {
            self.word("is_const_table", true);
        }
        if table.has_initial_entries {
            self.word("has_initial_entries", true);
        }
    }

    /// A match field, parameter or metadata field.
    fn field_of(&mut self, field: &MatchField) {
        self.number("id", field.id.into());
        self.string("name", &field.name);
        self.notes(&Notes { structured: Vec::new(), ..field.notes.clone() }, false);
        field.bitwidth.iter().for_each(|&width| self.number("bitwidth", width.into()));
        match &field.match_type {
            Some(MatchType::Known(kind)) => self.word("match_type", kind),
            Some(MatchType::Other(kind)) => self.string("other_match_type", kind),
            None => {}
        }
        self.notes(&Notes { annotations: Vec::new(), ..field.notes.clone() }, true);
        self.type_name("type_name", &field.type_name);
    }

    fn type_name(&mut self, field: &str, name: &Option<String>) {
        if let Some(name) = name {
            self.message(field, |out| out.string("name", name));
        }
    }

    fn profile(&mut self, profile: &ActionProfile) {
        self.preamble(&profile.preamble);
        profile.table_ids.iter().for_each(|&id| self.number("table_ids", id.into()));
        if profile.with_selector {
            self.word("with_selector", true);
        }
        self.number("size", profile.size);
        profile.max_group_size.iter().for_each(|&size| self.number("max_group_size", size.into()));
        match &profile.semantics {
            Some(SizeSemantics::SumOfWeights) => self.message("sum_of_weights", |_| {}),
            Some(SizeSemantics::SumOfMembers(weight)) => self.message("sum_of_members", |out| {
                weight.iter().for_each(|&weight| out.number("max_member_weight", weight.into()));
            }),
            None => {}
        }
    }

    fn counter(&mut self, counter: &Counter) {
        self.preamble(&counter.preamble);
        self.message("spec", |out| out.word("unit", counter.unit));
        self.number("size", counter.size);
        self.type_name("index_type_name", &counter.index_type);
    }

    fn direct(&mut self, direct: &DirectCounter) {
        self.preamble(&direct.preamble);
        self.message("spec", |out| out.word("unit", direct.unit));
        self.number("direct_table_id", direct.table.into());
    }

    fn type_spec(&mut self, spec: &TypeSpec) {
        match spec {
            TypeSpec::Bit(_) | TypeSpec::Int(_) | TypeSpec::Varbit(_) => {
                self.message("bitstring", |out| out.bitstring(spec));
            }
            TypeSpec::Bool => self.message("bool", |_| {}),
            TypeSpec::Error => self.message("error", |_| {}),
            TypeSpec::Tuple(members) => self.message("tuple", |out| {
                members.iter().for_each(|member| out.message("members", |out| out.type_spec(member)));
            }),
            TypeSpec::Named(field, name) => self.message(field, |out| out.string("name", name)),
            TypeSpec::Stack(field, element, name, size) => self.message(field, |out| {
                out.message(element, |out| out.string("name", name));
                out.number("size", (*size).into());
            }),
        }
    }

    fn bitstring(&mut self, spec: &TypeSpec) {
        match spec {
            TypeSpec::Int(width) => self.message("int", |out| out.number("bitwidth", (*width).into())),
            TypeSpec::Varbit(width) => {
                self.message("varbit", |out| out.number("max_bitwidth", (*width).into()))
            }
            TypeSpec::Bit(width) => self.message("bit", |out| out.number("bitwidth", (*width).into())),
            _ => {}
        }
    }

    /// An entry of a map: protobuf orders them by key.
    fn entry(&mut self, field: &str, key: &str, body: impl FnOnce(&mut Text)) {
        self.message(field, |out| {
            out.string("key", key);
            out.message("value", body);
        });
    }

    fn types(&mut self, types: &TypeInfo) {
        for (name, members) in sorted(&types.structs) {
            self.entry("structs", name, |out| {
                for (member, spec) in members {
                    out.message("members", |out| {
                        out.string("name", member);
                        out.message("type_spec", |out| out.type_spec(spec));
                    });
                }
            });
        }
        for (name, members) in sorted(&types.headers) {
            self.entry("headers", name, |out| {
                for (member, spec) in members {
                    out.message("members", |out| {
                        out.string("name", member);
                        out.message("type_spec", |out| out.bitstring(spec));
                    });
                }
            });
        }
        for (name, members) in sorted(&types.header_unions) {
            self.entry("header_unions", name, |out| {
                for (member, header) in members {
                    out.message("members", |out| {
                        out.string("name", member);
                        out.message("header", |out| out.string("name", header));
                    });
                }
            });
        }
        for (name, members) in sorted(&types.enums) {
            self.entry("enums", name, |out| {
                members.iter().for_each(|member| out.message("members", |out| out.string("name", member)));
            });
        }
        if let Some(members) = &types.error {
            self.message("error", |out| members.iter().for_each(|member| out.string("members", member)));
        }
        for (name, declared) in sorted(&types.serializable_enums) {
            self.entry("serializable_enums", name, |out| {
                out.message("underlying_type", |out| out.number("bitwidth", declared.width.into()));
                for (member, value) in &declared.members {
                    out.message("members", |out| {
                        out.string("name", member);
                        out.bytes("value", value);
                    });
                }
            });
        }
        for (name, new_type) in sorted(&types.new_types) {
            self.entry("new_types", name, |out| {
                match &new_type.representation {
                    Representation::Original(spec) => out.message("original_type", |out| out.type_spec(spec)),
                    Representation::TranslatedBits(uri, width) => out.message("translated_type", |out| {
                        out.string("uri", uri);
                        out.number("sdn_bitwidth", (*width).into());
                    }),
                    Representation::TranslatedString(uri) => out.message("translated_type", |out| {
                        out.string("uri", uri);
                        out.message("sdn_string", |_| {});
                    }),
                }
                out.notes(&new_type.notes, false);
            });
        }
    }
}

fn sorted<T>(list: &[(String, T)]) -> Vec<&(String, T)> {
    let mut list: Vec<_> = list.iter().collect();
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}
