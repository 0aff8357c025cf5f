//! What a controller may name: the ids of P4Info with the objects of the running program that they stand for.

use crate::data::Shape;
use crate::refusal::Refusal;
use crate::translation::{Codec, NewText, Numbers, Texts};
use millrace_chassis::Pipeline;
use millrace_p4runtime_api::config::action_profile::SelectorSizeSemantics;
use millrace_p4runtime_api::config::meter_spec::Type as MeterType;
use millrace_p4runtime_api::config::{MeterSpec, P4Info, P4NamedType, Preamble};
use millrace_pipeline::{
    ActionScope, CounterId, DigestId, MatchKind, MeterId, ProfileId, Program, RegisterId, TableId, Unit,
    ValueSetId,
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
    pub(crate) meters: Objects<MeterInfo>,
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

    fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.list.get_mut(*self.places.get(&id)?).map(|(_, object)| object)
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
    /// What its direct meter is, if it has one.
    pub(crate) meter: Option<MeterType>,
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
    pub(crate) semantics: Option<SelectorSizeSemantics>,
    /// Whether members have no weights: all are chosen alike.
    pub(crate) weights_disallowed: bool,
    /// Ids of the actions that members may have, with those of the program.
    pub(crate) actions: HashMap<u32, millrace_pipeline::ActionId>,
}

#[derive(Debug)]
pub(crate) struct Cells<T> {
    pub(crate) object: T,
    pub(crate) size: u64,
}

#[derive(Debug)]
pub(crate) struct MeterInfo {
    pub(crate) object: MeterId,
    pub(crate) size: u64,
    pub(crate) of_type: MeterType,
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
    pub(crate) fn new(pipeline: &Pipeline, state: &State) -> Catalog {
        let Pipeline { program, p4info: info, .. } = pipeline;
        let types = info.type_info.as_ref();
        let codec =
            |data: u32, bits: i32, named: &Option<P4NamedType>| Codec::new(data, bits, named.as_ref(), types);
        let ids: HashMap<&str, u32> =
            info.actions.iter().map(|action| named(&action.preamble)).map(|(id, name)| (name, id)).collect();
        let id_of = |action: millrace_pipeline::ActionId| {
            ids.get(program.actions[action].name.as_str()).copied().unwrap_or(0)
        };
        let actions = info.actions.iter().filter_map(|action| {
            let (id, name) = named(&action.preamble);
            let (known, _) = program.actions.iter().find(|(_, known)| known.name == name)?;
            let params =
                action.params.iter().zip(state.param_widths(known)).map(|(param, width)| ParamInfo {
                    id: param.id,
                    name: param.name.clone(),
                    codec: codec(*width, param.bitwidth, &param.type_name),
                });
            Some((id, ActionInfo { name: name.to_owned(), params: params.collect() }))
        });
        let tables = info.tables.iter().filter_map(|table| {
            let (id, name) = named(&table.preamble);
            let (known, made) = program.tables.iter().find(|(_, made)| made.name == name)?;
            let keys = table.match_fields.iter().zip(&made.keys).zip(state.key_widths(known));
            let fields = keys.map(|((field, key), width)| FieldInfo {
                id: field.id,
                name: field.name.clone(),
                kind: key.kind,
                codec: codec(*width, field.bitwidth, &field.type_name),
            });
            let listed = made.actions.iter().enumerate();
            Some((
                id,
                TableInfo {
                    table: known,
                    id,
                    name: name.to_owned(),
                    fields: fields.collect(),
                    needs_priority: state.needs_priority(known),
                    actions: listed.map(|(at, listed)| (id_of(listed.action), (at, listed.scope))).collect(),
                    action_ids: made.actions.iter().map(|listed| id_of(listed.action)).collect(),
                    profile: made.profile,
                    has_counter: made.direct_counter.is_some(),
                    meter: made
                        .direct_meter
                        .as_ref()
                        .filter(|meter| meter.unit != Unit::Account)
                        .map(|_| direct_meter_type(info, id)),
                    idle_timeout: made.idle_timeout,
                    is_const: made.const_entries,
                    role: table.preamble.as_ref().and_then(|preamble| role_of(&preamble.annotations)),
                },
            ))
        });
        let profiles = info.action_profiles.iter().filter_map(|profile| {
            let (id, name) = named(&profile.preamble);
            let (known, _) = program.profiles.iter().find(|(_, made)| made.name == name)?;
            let users = program.tables.values().filter(|table| table.profile == Some(known));
            let actions =
                users.flat_map(|table| &table.actions).map(|listed| (id_of(listed.action), listed.action));
            Some((
                id,
                ProfileInfo {
                    profile: known,
                    name: name.to_owned(),
                    with_selector: profile.with_selector,
                    max_group_size: u32::try_from(profile.max_group_size).unwrap_or(0),
                    semantics: profile.selector_size_semantics,
                    weights_disallowed: profile.weights_disallowed,
                    actions: actions.collect(),
                },
            ))
        });
        let counters = info.counters.iter().filter_map(|counter| {
            let (id, name) = named(&counter.preamble);
            let (object, made) = program.counters.iter().find(|(_, made)| made.name == name)?;
            Some((id, Cells { object, size: made.size }))
        });
        let meters = info.meters.iter().filter_map(|meter| {
            let (id, name) = named(&meter.preamble);
            let (object, made) = program.meters.iter().find(|(_, made)| made.name == name)?;
            Some((id, MeterInfo { object, size: made.size, of_type: meter_type(meter.spec.as_ref()) }))
        });
        let registers = info.registers.iter().filter_map(|register| {
            let (id, name) = named(&register.preamble);
            let own = |full: &str| {
                full.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let arrays: Vec<_> = program.registers.iter().filter(|(_, made)| own(&made.name)).collect();
            let shape = Shape::new(register.type_spec.as_ref(), types);
            let size = arrays.first()?.1.size;
            (arrays.len() == shape.scalars()).then(|| {
                let info = RegisterInfo {
                    registers: arrays.iter().map(|(id, _)| *id).collect(),
                    widths: arrays.iter().map(|(_, made)| made.width).collect(),
                    shape,
                    size,
                };
                (id, info)
            })
        });
        let value_sets = info.value_sets.iter().filter_map(|set| {
            let (id, name) = named(&set.preamble);
            let (known, made) = program.value_sets.iter().find(|(_, made)| made.name == name)?;
            let fields = set.r#match.iter().zip(&made.fields).map(|(field, (name, width, kind))| FieldInfo {
                id: field.id,
                name: name.clone(),
                kind: *kind,
                codec: codec(*width, field.bitwidth, &field.type_name),
            });
            Some((id, ValueSetInfo { set: known, fields: fields.collect() }))
        });
        let digests = info.digests.iter().filter_map(|digest| {
            let (id, name) = named(&digest.preamble);
            let (known, _) = program.digests.iter().find(|(_, made)| made.name == name)?;
            let shape = Shape::new(digest.type_spec.as_ref(), types);
            Some((id, DigestInfo { digest: known, shape }))
        });
        let header = |name: &str| {
            let mut headers = info.controller_packet_metadata.iter();
            let found = headers.find(|header| named(&header.preamble).1 == name)?;
            let widths = pipeline.controller_headers.get(name).map(Vec::as_slice).unwrap_or_default();
            let fields = found.metadata.iter().enumerate().map(|(at, field)| {
                let shown = u32::try_from(field.bitwidth).ok().filter(|bits| *bits > 0);
                let data = widths.get(at).copied().or(shown).unwrap_or(1);
                let codec = codec(data, field.bitwidth, &field.type_name);
                HeaderField { id: field.id, name: field.name.clone(), codec }
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

    /// Goes by the description of a controller, where it may say otherwise: whether members have weights, and what meters
    /// are.
    pub(crate) fn go_by(&mut self, given: &P4Info) {
        for meter in &given.meters {
            if let Some(own) = self.meters.get_mut(named(&meter.preamble).0) {
                own.of_type = meter_type(meter.spec.as_ref());
            }
        }
        for meter in &given.direct_meters {
            if let Some(own) =
                self.tables.get_mut(meter.direct_table_id).and_then(|table| table.meter.as_mut())
            {
                *own = meter_type(meter.spec.as_ref());
            }
        }
        for profile in &given.action_profiles {
            if let Some(own) = self.profiles.get_mut(named(&profile.preamble).0) {
                own.weights_disallowed = profile.weights_disallowed;
            }
        }
    }

    /// A value as the controller writes it.
    pub(crate) fn read(
        &self,
        codec: &Codec,
        bytes: &[u8],
        new_text: NewText,
    ) -> Result<millrace_pipeline::Bits, Refusal> {
        codec.read(bytes, &self.texts, new_text)
    }

    /// Goes on with the texts of the program before, whose entries go on too.
    pub(crate) fn take_texts(&self, before: &Catalog) {
        let before = before.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        for codec in self.codecs() {
            if let Some(name) = codec.text_of() {
                texts.take(name, codec.width, &before);
            }
        }
    }

    /// How many texts have found no number until now; none where no value is a text.
    pub(crate) fn refused_texts(&self) -> Option<u64> {
        self.codecs()
            .any(Codec::is_text)
            .then(|| self.texts.lock().unwrap_or_else(PoisonError::into_inner).refused())
    }

    /// Forgets the texts of numbers that nothing has.
    pub(crate) fn keep_texts(&self, held: &Numbers) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).keep(held);
    }

    /// How all values look that a controller may write.
    fn codecs(&self) -> impl Iterator<Item = &Codec> {
        let fields = self.tables.iter().flat_map(|(_, table)| &table.fields);
        let fields = fields.chain(self.value_sets.iter().flat_map(|(_, set)| &set.fields));
        let params = self.actions.values().flat_map(|action| &action.params);
        fields.map(|field| &field.codec).chain(params.map(|param| &param.codec))
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

/// The id and the name of an object; 0 and nothing for one that has none.
fn named(preamble: &Option<Preamble>) -> (u32, &str) {
    preamble.as_ref().map_or((0, ""), |preamble| (preamble.id, &preamble.name))
}

fn meter_type(spec: Option<&MeterSpec>) -> MeterType {
    spec.map_or(MeterType::TwoRateThreeColor, MeterSpec::r#type)
}

/// What the direct meter of a table is.
fn direct_meter_type(info: &P4Info, table: u32) -> MeterType {
    let meter = info.direct_meters.iter().find(|meter| meter.direct_table_id == table);
    meter_type(meter.and_then(|meter| meter.spec.as_ref()))
}

/// The name in `@p4runtime_role("name")`.
fn role_of(annotations: &[String]) -> Option<String> {
    let own = annotations.iter().find_map(|text| text.strip_prefix("@p4runtime_role"))?;
    let name = own.trim().trim_start_matches('(').trim_end_matches(')').trim().trim_matches('"');
    Some(name.to_owned())
}
