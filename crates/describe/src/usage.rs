//! What of the switch a program uses, and what of the program nothing uses.
//!
//! Whoever certifies a device asks that nothing in it is surplus: each function that it has is there for a requirement. A switch has a
//! fixed list of functions ([`FEATURES`]); the code of a program says which of them its packets can reach. So this walks over all code that a
//! packet can meet: the blocks that the entry of a body reaches, and the actions of the tables that are applied there. What is not
//! found has no code in the compiled program, and the data path never does it.
//!
//! A request counts where its value can be something else than zero: v1model's code after ingress copies `standard_metadata.mcast_grp` to the
//! switch in every program, but only programs that set it can have packets replicated. So there is a set of slots that can be other than
//! zero, the smallest that all assignments agree with.

use millrace_pipeline::{
    ActionId, BinaryOp, Block, Body, BodyId, DataItem, Expr, HashAlgorithm, Home, Inst, Intrinsic, MatchKind,
    Matcher, Program, SlotId, Table, TableId, Terminator, Unit,
};
use std::collections::{BTreeMap, BTreeSet};

/// The functions of a switch: a short name, and what it is.
pub const FEATURES: &[(&str, &str)] = &[
    ("extract", "headers are extracted"),
    ("extract-varbit", "headers of varying length are extracted"),
    ("lookahead", "bits are looked at before they are extracted"),
    ("advance", "the parser skips bits"),
    ("parser-loop", "parser states come again"),
    ("value-sets", "parser value sets that control fills"),
    ("parser-error", "the error of the parser is read"),
    ("payload", "bytes after the headers are read"),
    ("exact", "tables with exact keys"),
    ("lpm", "tables with longest prefix keys"),
    ("ternary", "tables with ternary keys"),
    ("range", "tables with range keys"),
    ("optional", "tables with optional keys"),
    ("action-profiles", "tables whose entries name members of a profile"),
    ("selectors", "members are selected by a hash"),
    ("idle-timeouts", "entries time out"),
    ("counters", "indexed counters"),
    ("direct-counters", "counters of entries"),
    ("meters", "indexed meters"),
    ("direct-meters", "meters of entries"),
    ("accounts", "credit accounts (policing of ARINC 664)"),
    ("registers", "registers"),
    ("atomic", "sections that one worker runs at a time"),
    ("hash", "hashes"),
    ("checksum", "checksums (RFC 1071)"),
    ("hash-parameters", "hashes whose parameters control sets"),
    ("random", "random numbers"),
    ("multiplication", "multiplication"),
    ("division", "division or remainder"),
    ("wide", "numbers of more than 64 bits in operations"),
    ("drop", "packets are dropped by request"),
    ("unicast", "packets are sent to one port"),
    ("multicast", "packets are replicated to groups"),
    ("port-bitmap", "packets are copied to the ports of a bitmap"),
    ("clone", "packets are cloned"),
    ("truncate", "packets are cut"),
    ("resubmit", "packets start again as they came"),
    ("recirculate", "packets start again as they leave"),
    ("priority", "packets choose a class of service"),
    ("queue", "packets choose a queue"),
    ("send-time", "packets wait for a time"),
    ("egress", "code between the traffic manager and the port"),
    ("arrival-time", "the time of arrival is read"),
    ("egress-time", "the time of departure is read"),
    ("queue-telemetry", "depths, delays or numbers of queues are read"),
    ("packet-path", "how a copy came to be is read"),
    ("packet-length", "the length of the packet is read"),
    ("digests", "messages to control"),
    ("plugins", "plugins are called"),
    ("log", "lines of the log"),
    ("assert", "assertions"),
];

/// What a program uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Where each of [`FEATURES`] is used, in their order: bodies and tables by name; none: it is not.
    pub features: Vec<(&'static str, BTreeSet<String>)>,
    /// What the program declares and no packet meets: its kind and its name.
    pub surplus: Vec<(&'static str, String)>,
}

impl Usage {
    /// Walks over a program.
    pub fn of(program: &Program) -> Usage {
        let mut survey = Survey {
            program,
            reached: BTreeSet::new(),
            tables: BTreeSet::new(),
            actions: BTreeSet::new(),
            headers: BTreeSet::new(),
            objects: BTreeSet::new(),
            found: BTreeMap::new(),
        };
        survey.reach();
        survey.look();
        survey.requests();
        let found = &mut survey.found;
        let features =
            FEATURES.iter().map(|(key, _)| (*key, found.remove(key).unwrap_or_default())).collect();
        debug_assert!(found.is_empty(), "functions that the list lacks: {found:?}");
        Usage { features, surplus: survey.surplus() }
    }

    /// Where a function is used.
    pub fn places(&self, key: &str) -> impl Iterator<Item = &str> {
        let feature = self.features.iter().find(|(name, _)| *name == key);
        feature.into_iter().flat_map(|(_, places)| places.iter().map(String::as_str))
    }
}

struct Survey<'a> {
    program: &'a Program,
    reached: BTreeSet<BodyId>,
    tables: BTreeSet<TableId>,
    actions: BTreeSet<ActionId>,
    headers: BTreeSet<millrace_pipeline::HeaderId>,
    /// Kind and name of what code names.
    objects: BTreeSet<(&'static str, String)>,
    found: BTreeMap<&'static str, BTreeSet<String>>,
}

/// The blocks that the entry of a body reaches.
fn blocks(body: &Body) -> impl Iterator<Item = &Block> {
    body.postorder().into_iter().filter_map(|id| body.blocks.get(id))
}

impl<'a> Survey<'a> {
    /// Finds the bodies that packets meet, and the tables and actions on the way.
    fn reach(&mut self) {
        let mut next: Vec<BodyId> =
            self.program.ingress.iter().chain(&self.program.egress).copied().collect();
        while let Some(id) = next.pop() {
            if !self.reached.insert(id) {
                continue;
            }
            for block in blocks(&self.program.bodies[id]) {
                if let Terminator::Apply { table, .. } = block.term
                    && self.tables.insert(table)
                {
                    for action in &self.program.tables[table].actions {
                        self.actions.insert(action.action);
                        next.push(self.program.actions[action.action].body);
                    }
                }
            }
        }
    }

    fn find(&mut self, key: &'static str, place: &str) {
        self.found.entry(key).or_default().insert(place.to_owned());
    }

    fn names(&mut self, kind: &'static str, name: &str) {
        self.objects.insert((kind, name.to_owned()));
    }

    fn look(&mut self) {
        let program = self.program;
        for id in self.reached.clone() {
            let body = &program.bodies[id];
            if body.has_loop() {
                self.find("parser-loop", &body.name);
            }
            let is_egress = program.egress.contains(&id);
            for block in blocks(body) {
                for inst in &block.insts {
                    self.inst(inst, &body.name);
                    let does = !matches!(inst, Inst::Emit(_) | Inst::Extract(_) | Inst::Assign { .. });
                    if is_egress && does {
                        self.find("egress", &body.name);
                    }
                }
                block.for_each_expr(&mut |expr| self.expr(expr, &body.name));
                match &block.term {
                    Terminator::Select { cases, .. } => {
                        for matcher in cases.iter().flat_map(|case| &case.matchers) {
                            if let Matcher::ValueSet(set) = matcher {
                                self.find("value-sets", &body.name);
                                self.names("value set", &program.value_sets[*set].name);
                            }
                        }
                    }
                    Terminator::Apply { .. } if is_egress => self.find("egress", &body.name),
                    _ => {}
                }
            }
        }
        for id in self.tables.clone() {
            self.table(&program.tables[id]);
        }
    }

    fn table(&mut self, table: &'a Table) {
        for key in &table.keys {
            let kind = match key.kind {
                MatchKind::Exact => "exact",
                MatchKind::Lpm => "lpm",
                MatchKind::Ternary => "ternary",
                MatchKind::Range => "range",
                MatchKind::Optional => "optional",
            };
            self.find(kind, &table.name);
        }
        table.exprs().for_each(|expr| self.expr(expr, &table.name));
        if let Some(profile) = table.profile {
            let profile = &self.program.profiles[profile];
            self.find("action-profiles", &table.name);
            self.names("action profile", &profile.name);
            if profile.selector.is_some() {
                self.find("selectors", &table.name);
            }
        }
        let has =
            [("idle-timeouts", table.idle_timeout), ("direct-counters", table.direct_counter.is_some())];
        if let Some(meter) = &table.direct_meter {
            self.find(meter_kind(meter.unit, "direct-meters"), &table.name);
        }
        has.into_iter().filter(|(_, has)| *has).for_each(|(key, _)| self.find(key, &table.name));
    }

    fn inst(&mut self, inst: &'a Inst, place: &str) {
        let program = self.program;
        match inst {
            // What they ask the switch for is looked at when it is known what can be other than zero.
            Inst::Assign { .. } | Inst::SetInvalid(_) | Inst::AtomicEnd | Inst::CallResult { .. } => {}
            Inst::SetValid(header) | Inst::Emit(header) => _ = self.headers.insert(*header),
            Inst::Extract(header) => {
                self.headers.insert(*header);
                self.find("extract", place);
            }
            Inst::ExtractVar { header, .. } => {
                self.headers.insert(*header);
                self.find("extract-varbit", place);
            }
            Inst::Advance { .. } => self.find("advance", place),
            Inst::Lookahead { .. } => self.find("lookahead", place),
            Inst::Count { counter, .. } => {
                self.find("counters", place);
                self.names("counter", &program.counters[*counter].name);
            }
            Inst::CountDirect(_) => self.find("direct-counters", place),
            Inst::Meter { meter, .. } => {
                self.find(meter_kind(program.meters[*meter].unit, "meters"), place);
                self.names("meter", &program.meters[*meter].name);
            }
            Inst::MeterDirect { table, .. } => {
                if let Some(meter) = &program.tables[*table].direct_meter {
                    self.find(meter_kind(meter.unit, "direct-meters"), place);
                }
            }
            Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. } => {
                self.find("registers", place);
                self.names("register", &program.registers[*register].name);
            }
            Inst::AtomicBegin { .. } => self.find("atomic", place),
            Inst::Hash { algorithm, own, data, .. } => self.hash((*algorithm, *own), data, place),
            Inst::Random { .. } => self.find("random", place),
            Inst::Digest { digest, .. } => {
                self.find("digests", place);
                self.names("digest", &program.digests[*digest].name);
            }
            Inst::Call { plugin, .. } => {
                self.find("plugins", place);
                self.find("payload", place);
                self.names("plugin", &program.plugins[*plugin].name);
            }
            Inst::Stop { .. } => self.find("drop", place),
            Inst::Log { .. } => self.find("log", place),
            Inst::Assert { .. } => self.find("assert", place),
        }
    }

    fn hash(
        &mut self,
        (algorithm, own): (HashAlgorithm, Option<millrace_pipeline::HashId>),
        data: &[DataItem],
        place: &str,
    ) {
        let is_checksum = matches!(algorithm, HashAlgorithm::Csum16 | HashAlgorithm::OnesComplementSum);
        self.find(if is_checksum { "checksum" } else { "hash" }, place);
        if let Some(own) = own {
            self.find("hash-parameters", place);
            self.names("hash", &self.program.hashes[own].name);
        }
        for item in data {
            match item {
                DataItem::Payload => self.find("payload", place),
                DataItem::Header(header) => _ = self.headers.insert(*header),
                DataItem::Value(_) => {}
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr, place: &str) {
        let program = self.program;
        expr.walk(&mut |part| match part {
            Expr::Binary(op, left, _) => {
                match op {
                    BinaryOp::Mul => self.find("multiplication", place),
                    BinaryOp::Div | BinaryOp::Mod => self.find("division", place),
                    _ => {}
                }
                if left.ty(program).bits().is_some_and(|width| width > 64) {
                    self.find("wide", place);
                }
            }
            Expr::PacketLength => self.find("packet-length", place),
            Expr::IsValid(header) => _ = self.headers.insert(*header),
            Expr::Read(slot) => {
                if let Home::Header { header, .. } = program.slots[*slot].home {
                    self.headers.insert(header);
                }
                self.reads(*slot, place);
            }
            _ => {}
        });
    }

    /// What the switch tells, if it is read at all. What is only copied to where nothing reads it was removed before.
    fn reads(&mut self, slot: SlotId, place: &str) {
        let told = |role: &&Intrinsic| self.program.intrinsics.get(**role) == Some(slot);
        let key = match Intrinsic::ALL.iter().find(told) {
            Some(Intrinsic::IngressTimestamp) => "arrival-time",
            Some(Intrinsic::EgressTimestamp) => "egress-time",
            Some(
                Intrinsic::EnqueueTimestamp
                | Intrinsic::EnqueueDepth
                | Intrinsic::QueueDelay
                | Intrinsic::DequeueDepth
                | Intrinsic::QueueId,
            ) => "queue-telemetry",
            Some(Intrinsic::PacketPath) => "packet-path",
            Some(Intrinsic::PacketLength) => "packet-length",
            Some(Intrinsic::ParserError) => "parser-error",
            _ => return,
        };
        self.find(key, place);
    }

    /// What is asked of the switch.
    fn requests(&mut self) {
        const ASKED: [(Intrinsic, &str); 11] = [
            (Intrinsic::Drop, "drop"),
            (Intrinsic::EgressSpec, "unicast"),
            (Intrinsic::MulticastGroup, "multicast"),
            (Intrinsic::EgressPorts, "port-bitmap"),
            (Intrinsic::Clone, "clone"),
            (Intrinsic::Truncate, "truncate"),
            (Intrinsic::Resubmit, "resubmit"),
            (Intrinsic::Recirculate, "recirculate"),
            (Intrinsic::Priority, "priority"),
            (Intrinsic::Queue, "queue"),
            (Intrinsic::SendTime, "send-time"),
        ];
        let program = self.program;
        let not_zero = self.not_zero();
        for (role, key) in ASKED {
            let Some(slot) = program.intrinsics.get(role) else { continue };
            for id in self.reached.clone() {
                let body = &program.bodies[id];
                let sets = |inst: &Inst| match inst {
                    Inst::Assign { dst, value } => *dst == slot && can_be_other(value, &not_zero),
                    other => other.dst() == Some(slot),
                };
                if blocks(body).flat_map(|block| &block.insts).any(sets) {
                    self.find(key, &body.name);
                }
            }
        }
    }

    /// The slots that can be other than zero in code that packets meet.
    fn not_zero(&self) -> BTreeSet<SlotId> {
        let program = self.program;
        let insts =
            || self.reached.iter().flat_map(|id| blocks(&program.bodies[*id])).flat_map(|block| &block.insts);
        // What comes from packets, from control, from the switch, or from an instruction that calculates.
        let in_header = program.slots.iter().filter(|(_, slot)| matches!(slot.home, Home::Header { .. }));
        let params = self.actions.iter().flat_map(|id| program.actions[*id].params.iter().copied());
        let told = Intrinsic::ALL
            .iter()
            .filter(|role| is_told(**role))
            .filter_map(|role| program.intrinsics.get(*role));
        let mut found: BTreeSet<SlotId> = in_header.map(|(id, _)| id).chain(params).chain(told).collect();
        found.extend(insts().filter(|inst| !matches!(inst, Inst::Assign { .. })).filter_map(Inst::dst));
        found.extend(self.tables.iter().filter_map(|id| program.tables[*id].direct_meter.as_ref()?.at_hit));
        for body in &self.reached {
            for block in blocks(&program.bodies[*body]) {
                if let Terminator::Apply { hit, action, .. } = block.term {
                    found.extend(hit.into_iter().chain(action));
                }
            }
        }
        // Each round adds one at least, and there are as many as slots.
        loop {
            let before = found.len();
            for inst in insts() {
                if let Inst::Assign { dst, value } = inst
                    && can_be_other(value, &found)
                {
                    found.insert(*dst);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// What is declared and not met.
    fn surplus(&self) -> Vec<(&'static str, String)> {
        let program = self.program;
        let mut declared: Vec<(&'static str, String)> = Vec::new();
        let tables = program.tables.iter().filter(|(id, _)| !self.tables.contains(id));
        declared.extend(tables.map(|(_, table)| ("table", table.name.clone())));
        let actions = program.actions.iter().filter(|(id, _)| !self.actions.contains(id));
        declared.extend(actions.map(|(_, action)| ("action", action.name.clone())));
        let headers = program.headers.iter().filter(|(id, _)| !self.headers.contains(id));
        declared.extend(headers.map(|(_, header)| ("header", header.name.clone())));
        let named: [(&'static str, Vec<&String>); 8] = [
            ("action profile", program.profiles.values().map(|object| &object.name).collect()),
            ("counter", program.counters.values().map(|object| &object.name).collect()),
            ("meter", program.meters.values().map(|object| &object.name).collect()),
            ("register", program.registers.values().map(|object| &object.name).collect()),
            ("value set", program.value_sets.values().map(|object| &object.name).collect()),
            ("hash", program.hashes.values().map(|object| &object.name).collect()),
            ("digest", program.digests.values().map(|object| &object.name).collect()),
            ("plugin", program.plugins.values().map(|object| &object.name).collect()),
        ];
        for (kind, names) in named {
            let unused = names.into_iter().filter(|name| !self.objects.contains(&(kind, (*name).clone())));
            declared.extend(unused.map(|name| (kind, name.clone())));
        }
        declared.sort();
        declared.dedup();
        declared
    }
}

/// Accounts are meters of another unit.
fn meter_kind(unit: Unit, meter: &'static str) -> &'static str {
    if unit == Unit::Account { "accounts" } else { meter }
}

/// Whether the switch writes a slot with this role: it is other than zero without an assignment.
fn is_told(role: Intrinsic) -> bool {
    matches!(
        role,
        Intrinsic::IngressPort
            | Intrinsic::IngressTimestamp
            | Intrinsic::PacketLength
            | Intrinsic::PacketPath
            | Intrinsic::ParserError
            | Intrinsic::EgressPort
            | Intrinsic::EgressRid
            | Intrinsic::EnqueueTimestamp
            | Intrinsic::EnqueueDepth
            | Intrinsic::QueueDelay
            | Intrinsic::DequeueDepth
            | Intrinsic::QueueId
            | Intrinsic::EgressTimestamp
    )
}

/// Whether an expression can be other than zero or false, if these slots can; true where that is not seen at once.
fn can_be_other(expr: &Expr, slots: &BTreeSet<SlotId>) -> bool {
    match expr {
        Expr::Const(bits) => !bits.is_zero(),
        Expr::Bool(value) => *value,
        Expr::Read(slot) => slots.contains(slot),
        Expr::Slice(of, _, _) | Expr::ZeroExtend(of, _) | Expr::SignExtend(of, _) | Expr::BoolToBits(of) => {
            can_be_other(of, slots)
        }
        Expr::Mux(_, one, other) | Expr::Concat(one, other) => {
            can_be_other(one, slots) || can_be_other(other, slots)
        }
        Expr::Binary(BinaryOp::BoolAnd | BinaryOp::And | BinaryOp::Mul, one, other) => {
            can_be_other(one, slots) && can_be_other(other, slots)
        }
        Expr::Binary(
            BinaryOp::BoolOr | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add | BinaryOp::AddSat,
            one,
            other,
        ) => can_be_other(one, slots) || can_be_other(other, slots),
        Expr::Binary(BinaryOp::Ne, one, other) => {
            // Two numbers of which neither can be other than zero are equal.
            can_be_other(one, slots) || can_be_other(other, slots)
        }
        Expr::IsValid(_) | Expr::PacketLength | Expr::Cursor | Expr::Unary(..) | Expr::Binary(..) => true,
    }
}
