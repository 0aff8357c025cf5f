//! What a controller may name: the ids of P4Info with the objects of the running program behind them.

use crate::data::Shape;
use crate::refusal::Refusal;
use crate::translation::{Codec, Texts};
use millrace_control::p4info::{self, P4Info, SizeSemantics};
use millrace_pipeline::{
    ActionScope, CounterId, DigestId, MatchKind, MeterId, ProfileId, Program, RegisterId, TableId, ValueSetId,
};
use millrace_state::State;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One program's objects by id.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) program: Arc<Program>,
    pub(crate) tables: Objects<TableInfo>,
    pub(crate) actions: HashMap<u32, ActionInfo>,
    pub(crate) profiles: Objects<ProfileInfo>,
    pub(crate) counters: Objects<Cells<CounterId>>,
    pub(crate) meters: Objects<Cells<MeterId>>,
    pub(crate) registers: Objects<RegisterInfo>,
    pub(crate) value_sets: Objects<ValueSetInfo>,
    pub(crate) digests: Objects<DigestInfo>,
    pub(crate) packet_in: Option<Vec<HeaderField>>,
    pub(crate) packet_out: Option<Vec<HeaderField>>,
    texts: Mutex<Texts>,
}

/// Objects of one kind, in the order of P4Info.
#[derive(Debug)]
pub(crate) struct Objects<T> {
    what: &'static str,
    list: Vec<(u32, T)>,
    places: HashMap<u32, usize>,
}

impl<T> Objects<T> {
    fn new(what: &'static str, list: Vec<(u32, T)>) -> Objects<T> {
        let places = list.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        Objects { what, list, places }
    }

    /// The object with an id; 0 and unknown ones are refused.
    pub(crate) fn get(&self, id: u32) -> Result<&T, Refusal> {
        let found = self.places.get(&id).and_then(|at| self.list.get(*at));
        let what = self.what;
        found.map(|(_, object)| object).ok_or_else(|| match id {
            0 => Refusal::invalid(format!("the id of the {what} is missing")),
            _ => Refusal::not_found(format!("no {what} with id {id:#010x}")),
        })
    }

    /// The objects that a read with this id means: all for 0.
    pub(crate) fn select(&self, id: u32) -> Result<Vec<(u32, &T)>, Refusal> {
        match id {
            0 => Ok(self.iter().collect()),
            _ => Ok(vec![(id, self.get(id)?)]),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.list.iter().map(|(id, object)| (*id, object))
    }
}

#[derive(Debug)]
pub(crate) struct TableInfo {
    pub(crate) table: TableId,
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) fields: Vec<FieldInfo>,
    pub(crate) needs_priority: bool,
    /// Index in the table's list of actions, scope.
    pub(crate) actions: HashMap<u32, (usize, ActionScope)>,
    /// The id of each action of the table's list.
    pub(crate) action_ids: Vec<u32>,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) has_counter: bool,
    pub(crate) has_meter: bool,
    pub(crate) idle_timeout: bool,
    pub(crate) is_const: bool,
    /// The role that it belongs to (`@p4runtime_role`); none: every role's.
    pub(crate) role: Option<String>,
}

/// A field of a key or of a value set.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) kind: MatchKind,
    pub(crate) codec: Codec,
}

#[derive(Debug)]
pub(crate) struct ActionInfo {
    pub(crate) name: String,
    pub(crate) params: Vec<ParamInfo>,
}

#[derive(Debug)]
pub(crate) struct ParamInfo {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) codec: Codec,
}

#[derive(Debug)]
pub(crate) struct ProfileInfo {
    pub(crate) profile: ProfileId,
    pub(crate) name: String,
    pub(crate) with_selector: bool,
    pub(crate) max_group_size: u32,
    pub(crate) semantics: Option<SizeSemantics>,
    /// Ids of the actions that members may have, with those of the program.
    pub(crate) actions: HashMap<u32, millrace_pipeline::ActionId>,
}

#[derive(Debug)]
pub(crate) struct Cells<T> {
    pub(crate) object: T,
    pub(crate) size: u64,
}

#[derive(Debug)]
pub(crate) struct RegisterInfo {
    /// One array for each scalar of the type.
    pub(crate) registers: Vec<RegisterId>,
    pub(crate) widths: Vec<u32>,
    pub(crate) shape: Shape,
    pub(crate) size: u64,
}

#[derive(Debug)]
pub(crate) struct ValueSetInfo {
    pub(crate) set: ValueSetId,
    pub(crate) fields: Vec<FieldInfo>,
}

#[derive(Debug)]
pub(crate) struct DigestInfo {
    pub(crate) digest: DigestId,
    pub(crate) shape: Shape,
}

/// A field of a controller header.
#[derive(Debug)]
pub(crate) struct HeaderField {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) codec: Codec,
}

impl Catalog {
    /// The catalog of a program from its description.
    pub(crate) fn new(info: &P4Info, program: &Arc<Program>, state: &State) -> Catalog {
        let types = info.type_info.as_ref();
        let codec = |data: u32, field: &p4info::MatchField| {
            Codec::new(data, field.bitwidth, field.type_name.as_deref(), types)
        };
        let ids: HashMap<&str, u32> =
            info.actions.iter().map(|action| (action.preamble.name.as_str(), action.preamble.id)).collect();
        let id_of = |action: millrace_pipeline::ActionId| {
            ids.get(program.actions[action].name.as_str()).copied().unwrap_or(0)
        };
        let actions = info.actions.iter().filter_map(|action| {
            let (id, _) = program.actions.iter().find(|(_, known)| known.name == action.preamble.name)?;
            let widths = state.param_widths(id);
            let params = action.params.iter().zip(widths).map(|(param, width)| ParamInfo {
                id: param.id,
                name: param.name.clone(),
                codec: codec(*width, param),
            });
            let known = ActionInfo { name: action.preamble.name.clone(), params: params.collect() };
            Some((action.preamble.id, known))
        });
        let tables = info.tables.iter().filter_map(|table| {
            let (id, made) = program.tables.iter().find(|(_, made)| made.name == table.preamble.name)?;
            let keys = table.match_fields.iter().zip(&made.keys).zip(state.key_widths(id));
            let fields = keys.map(|((field, key), width)| FieldInfo {
                id: field.id,
                name: field.name.clone(),
                kind: key.kind,
                codec: codec(*width, field),
            });
            let listed = made.actions.iter().enumerate();
            Some((
                table.preamble.id,
                TableInfo {
                    table: id,
                    id: table.preamble.id,
                    name: table.preamble.name.clone(),
                    fields: fields.collect(),
                    needs_priority: state.needs_priority(id),
                    actions: listed.map(|(at, listed)| (id_of(listed.action), (at, listed.scope))).collect(),
                    action_ids: made.actions.iter().map(|listed| id_of(listed.action)).collect(),
                    profile: made.profile,
                    has_counter: made.direct_counter.is_some(),
                    has_meter: made.direct_meter.is_some(),
                    idle_timeout: made.idle_timeout,
                    is_const: made.const_entries,
                    role: role_of(&table.preamble.notes.annotations),
                },
            ))
        });
        let profiles = info.action_profiles.iter().filter_map(|profile| {
            let mut known = program.profiles.iter();
            let (id, _) = known.find(|(_, made)| made.name == profile.preamble.name)?;
            let users = program.tables.values().filter(|table| table.profile == Some(id));
            let actions =
                users.flat_map(|table| &table.actions).map(|listed| (id_of(listed.action), listed.action));
            Some((
                profile.preamble.id,
                ProfileInfo {
                    profile: id,
                    name: profile.preamble.name.clone(),
                    with_selector: profile.with_selector,
                    max_group_size: profile.max_group_size.unwrap_or(0),
                    semantics: profile.semantics.clone(),
                    actions: actions.collect(),
                },
            ))
        });
        let counters = info.counters.iter().filter_map(|counter| {
            let mut known = program.counters.iter();
            let (object, made) = known.find(|(_, made)| made.name == counter.preamble.name)?;
            Some((counter.preamble.id, Cells { object, size: made.size }))
        });
        let meters = info.meters.iter().filter_map(|meter| {
            let mut known = program.meters.iter();
            let (object, made) = known.find(|(_, made)| made.name == meter.preamble.name)?;
            Some((meter.preamble.id, Cells { object, size: made.size }))
        });
        let registers = info.registers.iter().filter_map(|register| {
            let name = register.preamble.name.as_str();
            let own = |full: &str| {
                full.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let arrays: Vec<_> = program.registers.iter().filter(|(_, made)| own(&made.name)).collect();
            let shape = Shape::new(&register.type_spec, types);
            let size = arrays.first()?.1.size;
            (arrays.len() == shape.scalars()).then(|| {
                let info = RegisterInfo {
                    registers: arrays.iter().map(|(id, _)| *id).collect(),
                    widths: arrays.iter().map(|(_, made)| made.width).collect(),
                    shape,
                    size,
                };
                (register.preamble.id, info)
            })
        });
        let value_sets =
            info.value_sets.iter().filter_map(|set| {
                let (id, made) =
                    program.value_sets.iter().find(|(_, made)| made.name == set.preamble.name)?;
                let fields = set.matches.iter().zip(&made.fields).map(|(field, (name, width, kind))| {
                    FieldInfo { id: field.id, name: name.clone(), kind: *kind, codec: codec(*width, field) }
                });
                Some((set.preamble.id, ValueSetInfo { set: id, fields: fields.collect() }))
            });
        let digests = info.digests.iter().filter_map(|digest| {
            let mut known = program.digests.iter();
            let (id, _) = known.find(|(_, made)| made.name == digest.preamble.name)?;
            let shape = Shape::new(&digest.type_spec, types);
            Some((digest.preamble.id, DigestInfo { digest: id, shape }))
        });
        let header = |name: &str| {
            let mut headers = info.controller_packet_metadata.iter();
            let found = headers.find(|header| header.preamble.name == name)?;
            let fields = found.metadata.iter().map(|field| {
                let data = field.data_width.or(field.bitwidth).unwrap_or(1);
                HeaderField { id: field.id, name: field.name.clone(), codec: codec(data, field) }
            });
            Some(fields.collect())
        };
        Catalog {
            program: Arc::clone(program),
            tables: Objects::new("table", tables.collect()),
            actions: actions.collect(),
            profiles: Objects::new("action profile", profiles.collect()),
            counters: Objects::new("counter", counters.collect()),
            meters: Objects::new("meter", meters.collect()),
            registers: Objects::new("register", registers.collect()),
            value_sets: Objects::new("value set", value_sets.collect()),
            digests: Objects::new("digest", digests.collect()),
            packet_in: header("packet_in"),
            packet_out: header("packet_out"),
            texts: Mutex::default(),
        }
    }

    /// A value as the controller writes it.
    pub(crate) fn read(&self, codec: &Codec, bytes: &[u8]) -> Result<millrace_pipeline::Bits, Refusal> {
        codec.read(bytes, &self.texts)
    }

    /// A value as the controller reads it.
    pub(crate) fn write(&self, codec: &Codec, value: &millrace_pipeline::Bits) -> Bytes {
        codec.write(value, &self.texts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The id of a table of the program.
    pub(crate) fn table(&self, table: TableId) -> Option<&TableInfo> {
        self.tables.iter().map(|(_, info)| info).find(|info| info.table == table)
    }

    /// The profile of a table.
    pub(crate) fn profile(&self, profile: ProfileId) -> Option<&ProfileInfo> {
        self.profiles.iter().map(|(_, info)| info).find(|info| info.profile == profile)
    }
}

/// The name in `@p4runtime_role("name")`.
fn role_of(annotations: &[String]) -> Option<String> {
    let own = annotations.iter().find_map(|text| text.strip_prefix("@p4runtime_role"))?;
    let name = own.trim().trim_start_matches('(').trim_end_matches(')').trim().trim_matches('"');
    Some(name.to_owned())
}
