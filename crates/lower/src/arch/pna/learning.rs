//! Tables that the data plane changes: `add_on_miss = true`, `add_entry`, and the times after which entries expire.
//!
//! What such a table learns lies in register arrays of the program next to the table, found by a hash of the key. An
//! application looks there first: an entry that was learned runs its action in place, else the table is applied, whose
//! default action may add an entry. Two keys that fall on the same cell replace each other.

use millrace_pipeline::{
    BinaryOp, Bits, DataItem, Expr, HashAlgorithm, Inst, Intrinsic, Register, RegisterId, SlotId, Type,
};
use millrace_sema::Constant;
use millrace_sema::hir::{self, ActionRef, Call, Direction, VarId, VarKind};
use std::rc::Rc;

use crate::arch::{Architecture, hashing};
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code as kind, fail, internal};
use crate::types::{self, Shape};
use crate::value::Value;

/// The most cells of one table; a larger table shares them.
const MAX_CELLS: u64 = 1 << 16;
/// Profiles of times, as many as their type has numbers.
const PROFILES: u64 = 256;
const ACTION_BITS: u32 = 16;
const TIME_BITS: u32 = 64;
const PROFILE_BITS: u32 = 8;

/// What a table learns.
#[derive(Debug)]
pub(crate) struct Learned {
    /// Names and parameters of the actions that it lists, in order.
    actions: Vec<(String, Vec<VarId>)>,
    /// The slots that have the key while the table is applied.
    key: Vec<SlotId>,
    /// The cell of that key, and whether it holds an entry with it.
    index: SlotId,
    hit: SlotId,
    cells: u64,
    keys: RegisterId,
    /// The place of the action in the list and 1, or 0 when the cell is empty.
    chosen: RegisterId,
    data: RegisterId,
    data_bits: u32,
    /// When the time of the entry began, and its profile.
    since: RegisterId,
    profile: RegisterId,
}

/// Whether a table learns.
pub(crate) fn learns(code: &Code<'_, '_>, table: &hir::Table) -> Lower<bool> {
    match table.properties.iter().find(|p| p.name == "add_on_miss") {
        Some(property) => {
            let value = code.cx.must_be_constant(&property.value, code.scope())?;
            Ok(value == Constant::Bool(true))
        }
        None => Ok(false),
    }
}

/// Makes room for what a table learns.
pub(crate) fn create(
    code: &mut Code<'_, '_>,
    table: &hir::Table,
    name: &str,
    size: u64,
    key: Vec<SlotId>,
) -> Lower<Rc<Learned>> {
    let hir = code.cx.hir;
    let mut actions = Vec::new();
    let mut data_bits = 1;
    for reference in &table.actions {
        let action = &hir.actions[reference.action];
        let own =
            action.params.iter().copied().filter(|p| hir.vars[*p].kind == VarKind::Param(Direction::None));
        let own: Vec<VarId> = own.collect();
        let mut bits = 0;
        for param in &own {
            bits += data_width(code.cx, hir.vars[*param].ty, table)?;
        }
        data_bits = data_bits.max(bits);
        actions.push((action.name.clone(), own));
    }
    let program = code.cx.ir.program();
    let key_bits: u32 = key.iter().filter_map(|slot| program.slots[*slot].ty.bits()).sum();
    let limit = millrace_pipeline::limits::MAX_WIDTH;
    if key_bits > limit || data_bits > limit {
        return fail(kind::LIMIT, table.span, format!("what a table learns has at most {limit} bits"));
    }
    let cells = size.clamp(1, MAX_CELLS);
    let mut register = |part: &str, width| {
        let name = code.cx.object_name("register", &format!("{name}.learned.{part}"));
        code.cx.ir.program_mut().registers.push(Register { name, width, size: cells, initial: None })
    };
    let keys = register("key", key_bits.max(1));
    let chosen = register("action", ACTION_BITS);
    let data = register("data", data_bits);
    let since = register("since", TIME_BITS);
    let profile = register("profile", PROFILE_BITS);
    let index = code.cx.ir.metadata(&format!("{name}.learned.cell"), Type::Bits(32));
    let hit = code.cx.ir.metadata(&format!("{name}.learned.hit"), Type::Bool);
    Ok(Rc::new(Learned { actions, key, index, hit, cells, keys, chosen, data, data_bits, since, profile }))
}

fn data_width(cx: &Lowering<'_>, ty: hir::Ty, table: &hir::Table) -> Lower<u32> {
    match cx.shape(ty) {
        Shape::Struct => {
            let members = types::members(&cx.hir.types, ty);
            members.into_iter().map(|(_, ty)| data_width(cx, ty, table)).sum()
        }
        _ => match types::bit_width(&cx.hir.types, ty) {
            Some(width) => Ok(width),
            None => fail(kind::ARCHITECTURE, table.span, "a table cannot learn data of this type"),
        },
    }
}

/// The table whose actions are lowered now.
fn current(code: &Code<'_, '_>) -> Option<Rc<Learned>> {
    match &code.cx.arch {
        Architecture::Pna(model) => model.learning.clone(),
        _ => None,
    }
}

/// Says which table's actions are lowered from now on; gives the one before.
pub(crate) fn enter(code: &mut Code<'_, '_>, learned: Option<Rc<Learned>>) -> Option<Rc<Learned>> {
    match &mut code.cx.arch {
        Architecture::Pna(model) => std::mem::replace(&mut model.learning, learned),
        _ => None,
    }
}

fn read(code: &mut Code<'_, '_>, register: RegisterId, index: &Expr) -> Expr {
    let dst = code.temp(Type::Bits(code.cx.ir.program().registers[register].width));
    code.push(Inst::RegisterRead { dst, register, index: index.clone() });
    Expr::Read(dst)
}

fn now(code: &mut Code<'_, '_>) -> Expr {
    Expr::Read(code.cx.ir.intrinsic(Intrinsic::IngressTimestamp))
}

/// How long entries of each profile live without being restarted, in nanoseconds, for the control plane to set; 0:
/// for ever.
fn lifetimes(code: &mut Code<'_, '_>) -> RegisterId {
    if let Architecture::Pna(model) = &code.cx.arch
        && let Some(known) = model.lifetimes
    {
        return known;
    }
    let name = code.cx.object_name("register", "expire_times");
    let made = Register { name, width: TIME_BITS, size: PROFILES, initial: None };
    let made = code.cx.ir.program_mut().registers.push(made);
    if let Architecture::Pna(model) = &mut code.cx.arch {
        model.lifetimes = Some(made);
    }
    made
}

fn key(learned: &Learned) -> Expr {
    learned.key.iter().copied().map(Expr::Read).reduce(Expr::concat).unwrap_or(Expr::bits(1, 0))
}

impl Learned {
    /// Looks the key up in what was learned: the action's place and 1, which is 0 when there is nothing, and its data.
    pub(crate) fn look_up(&self, code: &mut Code<'_, '_>) -> (Expr, Expr) {
        let key = code.in_temp(key(self));
        let hash = hashing::hash(code, HashAlgorithm::Crc32, vec![DataItem::Value(key.clone())], 32);
        let index = Expr::binary(BinaryOp::Mod, hash, Expr::bits(32, u128::from(self.cells)));
        code.assign(self.index, index);
        let index = Expr::Read(self.index);
        let chosen = read(code, self.chosen, &index);
        let found = read(code, self.keys, &index);
        let since = read(code, self.since, &index);
        let profile = read(code, self.profile, &index);
        let lifetimes = lifetimes(code);
        let lifetime = read(code, lifetimes, &profile);
        let age = now(code).sub(since);
        let lives = lifetime.clone().eq(Expr::bits(TIME_BITS, 0)).or(age.lt(lifetime));
        let used = chosen.clone().ne(Expr::bits(ACTION_BITS, 0));
        code.assign(self.hit, Expr::all([used, found.eq(key), lives]));
        let data = read(code, self.data, &index);
        (Expr::mux(Expr::Read(self.hit), chosen, Expr::bits(ACTION_BITS, 0)), data)
    }

    /// The values of an action's parameters out of its data, in the types that they have.
    pub(crate) fn values(&self, code: &Code<'_, '_>, data: &Expr, shapes: Vec<Value>) -> Vec<Value> {
        let program = code.cx.ir.program();
        let mut at = self.data_bits;
        let mut next = |e: Expr| match e.ty(program) {
            Type::Bits(width) => {
                at -= width;
                data.clone().slice(at + width - 1, at, program)
            }
            _ => {
                at -= 1;
                data.clone().slice(at, at, program).eq(Expr::bits(1, 1))
            }
        };
        shapes.into_iter().map(|shape| shape.map(&mut next)).collect()
    }

    /// The matcher of an action's place.
    pub(crate) fn number(place: usize) -> Bits {
        Bits::new(ACTION_BITS, place as u128 + 1)
    }

    fn write(&self, code: &mut Code<'_, '_>, register: RegisterId, value: Expr) {
        let width = code.cx.ir.program().registers[register].width;
        let value = value.zext_to(width, code.cx.ir.program());
        code.push(Inst::RegisterWrite { register, index: Expr::Read(self.index), value });
    }

    /// Adds an entry for the key at hand.
    fn add<'a>(
        &self,
        code: &mut Code<'_, 'a>,
        [name, params, profile]: [&'a hir::Expr; 3],
        call: &Call,
    ) -> Lower<()> {
        let mut values = code.eval_all([name, params, profile])?.into_iter();
        let (Some(Value::Text(name)), Some(given), Some(profile_value)) =
            (values.next(), values.next(), values.next())
        else {
            return fail(kind::CONSTANT, call.span, "the name of the action must be known at compile time");
        };
        let profile = code.as_scalar(profile_value, profile)?;
        let Some(place) = self.actions.iter().position(|(action, _)| *action == name) else {
            return fail(kind::ARCHITECTURE, call.span, format!("the table has no action `{name}`"));
        };
        let data = self.pack(code, &self.actions[place].1, &given, call)?;
        let writes = [
            (self.keys, key(self)),
            (self.chosen, Expr::bits(ACTION_BITS, place as u128 + 1)),
            (self.data, data),
            (self.since, now(code)),
            (self.profile, profile),
        ];
        for (register, value) in writes {
            self.write(code, register, value);
        }
        Ok(())
    }

    /// The data of an action out of the values given for its parameters: the first in the highest bits.
    fn pack(&self, code: &Code<'_, '_>, params: &[VarId], given: &Value, call: &Call) -> Lower<Expr> {
        let mut widths = Vec::new();
        for param in params {
            scalar_widths(code.cx, code.cx.hir.vars[*param].ty, &mut widths);
        }
        let scalars = given.scalars();
        if scalars.len() != widths.len() {
            let message =
                format!("the action takes {} values, and {} are given", widths.len(), scalars.len());
            return fail(kind::ARCHITECTURE, call.span, message);
        }
        let program = code.cx.ir.program();
        let used: u32 = widths.iter().sum();
        let values = scalars.into_iter().zip(widths).map(|(value, width)| match code.type_of(&value) {
            Type::Bool => value.bool_to_bits(),
            _ => value.zext_to(width, program),
        });
        let values: Vec<Expr> = values.collect();
        let rest = self.data_bits - used;
        let rest = (rest > 0).then(|| Expr::bits(rest, 0));
        match values.into_iter().chain(rest).reduce(Expr::concat) {
            Some(data) => Ok(data),
            None => internal(call.span, "an entry without room for data"),
        }
    }
}

fn scalar_widths(cx: &Lowering<'_>, ty: hir::Ty, list: &mut Vec<u32>) {
    match cx.shape(ty) {
        Shape::Struct => {
            types::members(&cx.hir.types, ty).into_iter().for_each(|(_, ty)| scalar_widths(cx, ty, list));
        }
        Shape::Unit => {}
        _ => list.extend(types::bit_width(&cx.hir.types, ty)),
    }
}

/// The extern functions for tables that learn; none when it is another.
pub(super) fn call<'a>(
    code: &mut Code<'_, 'a>,
    name: &str,
    args: &[Option<&'a hir::Expr>],
    call: &'a Call,
) -> Lower<Option<Value>> {
    match (name, args) {
        ("add_entry", [Some(action), Some(params), Some(profile)]) => {
            let learned = table_of(code, name, call)?;
            learned.add(code, [action, params, profile], call)?;
            Ok(Some(success(code, call)))
        }
        ("add_entry_if", [Some(condition), Some(action), Some(params), Some(profile)]) => {
            let learned = table_of(code, name, call)?;
            let condition = code.scalar(condition)?;
            let (_, join) = code.branch(condition);
            learned.add(code, [action, params, profile], call)?;
            code.continue_at(join);
            Ok(Some(success(code, call)))
        }
        ("allocate_flow_id", []) => {
            let register = flow_ids(code);
            let next = read(code, register, &Expr::bits(1, 0));
            let value = next.clone().add(Expr::bits(32, 1));
            code.push(Inst::RegisterWrite { register, index: Expr::bits(1, 0), value });
            Ok(Some(Value::Scalar(next)))
        }
        ("restart_expire_timer", []) => {
            let learned = table_of(code, name, call)?;
            renew(code, &learned, Expr::Bool(true), None);
            Ok(Some(Value::Unit))
        }
        ("set_entry_expire_time", [Some(profile)]) => {
            let learned = table_of(code, name, call)?;
            let profile = code.scalar(profile)?;
            renew(code, &learned, Expr::Bool(true), Some((Expr::Bool(true), profile)));
            Ok(Some(Value::Unit))
        }
        ("set_entry_expire_time_if", [Some(condition), Some(profile)]) => {
            let learned = table_of(code, name, call)?;
            let (condition_value, profile_value) = code.two(condition, profile)?;
            let condition = code.as_scalar(condition_value, condition)?;
            let profile = code.as_scalar(profile_value, profile)?;
            renew(code, &learned, condition.clone(), Some((condition, profile)));
            Ok(Some(Value::Unit))
        }
        ("update_expire_info", [Some(restart), Some(change), Some(profile)]) => {
            let learned = table_of(code, name, call)?;
            let mut values = code.eval_all([*restart, *change, *profile])?.into_iter();
            let mut next = |code: &mut Code<'_, 'a>, expr: &'a hir::Expr| {
                let value = values.next().unwrap_or(Value::Unit);
                code.as_scalar(value, expr)
            };
            let (restart, change) = (next(code, restart)?, next(code, change)?);
            let profile = next(code, profile)?;
            renew(code, &learned, restart, Some((change, profile)));
            Ok(Some(Value::Unit))
        }
        _ => Ok(None),
    }
}

fn table_of(code: &Code<'_, '_>, name: &str, call: &Call) -> Lower<Rc<Learned>> {
    match current(code) {
        Some(learned) => Ok(learned),
        None => {
            let message = format!("`{name}` is for actions of a table with `add_on_miss = true`");
            fail(kind::ARCHITECTURE, call.span, message)
        }
    }
}

/// `true`, or `ADD_ENTRY_SUCCESS` in the later editions.
fn success(code: &Code<'_, '_>, call: &Call) -> Value {
    match code.cx.shape(call.ty) {
        Shape::Scalar(Type::Bits(width)) => Value::Scalar(Expr::bits(width, 0)),
        _ => Value::Scalar(Expr::Bool(true)),
    }
}

/// Restarts the time of the entry that was hit, and changes its profile, each when it is asked for. Entries of the
/// control plane have no such time.
fn renew(code: &mut Code<'_, '_>, learned: &Learned, restart: Expr, profile: Option<(Expr, Expr)>) {
    let (_, join) = code.branch(Expr::Read(learned.hit));
    let since = read(code, learned.since, &Expr::Read(learned.index));
    let since = Expr::mux(restart, now(code), since);
    learned.write(code, learned.since, since);
    if let Some((change, profile)) = profile {
        let before = read(code, learned.profile, &Expr::Read(learned.index));
        let profile = profile.zext_to(PROFILE_BITS, code.cx.ir.program());
        learned.write(code, learned.profile, Expr::mux(change, profile, before));
    }
    code.continue_at(join);
}

fn flow_ids(code: &mut Code<'_, '_>) -> RegisterId {
    if let Architecture::Pna(model) = &code.cx.arch
        && let Some(known) = model.flow_ids
    {
        return known;
    }
    let name = code.cx.object_name("register", "flow_ids");
    let made = Register { name, width: 32, size: 1, initial: None };
    let made = code.cx.ir.program_mut().registers.push(made);
    if let Architecture::Pna(model) = &mut code.cx.arch {
        model.flow_ids = Some(made);
    }
    made
}

impl<'a> Code<'_, 'a> {
    /// Applies a table that learns. Slots get whether it hit and the number of the action that ran, if wanted.
    pub(crate) fn apply_learning(
        &mut self,
        learned: &Rc<Learned>,
        table: &'a hir::Table,
        numbers: &[hir::ActionId],
        apply: impl FnOnce(&mut Self),
        (hit, action): (Option<SlotId>, Option<SlotId>),
    ) -> Lower<()> {
        let (chosen, data) = learned.look_up(self);
        let (otherwise, join) = (self.block(), self.block());
        let mut cases = Vec::new();
        let mut blocks = Vec::new();
        for place in 0..table.actions.len() {
            let block = self.block();
            let matchers = vec![millrace_pipeline::Matcher::Value(Learned::number(place))];
            cases.push(millrace_pipeline::Case { matchers, target: block });
            blocks.push(block);
        }
        self.body.select(vec![chosen], cases, otherwise);
        let before = enter(self, Some(learned.clone()));
        for (block, reference) in blocks.into_iter().zip(&table.actions) {
            self.body.switch_to(block);
            if let Some(hit) = hit {
                self.assign(hit, Expr::Bool(true));
            }
            if let Some(action) = action {
                let number = numbers.iter().position(|a| *a == reference.action).unwrap_or(0);
                self.assign(action, Expr::bits(16, number as u128));
            }
            self.run_learned(learned, reference, &data)?;
            self.body.goto(join);
        }
        enter(self, before);
        self.body.switch_to(otherwise);
        apply(self);
        self.continue_at(join);
        Ok(())
    }

    fn run_learned(&mut self, learned: &Learned, reference: &'a ActionRef, data: &Expr) -> Lower<()> {
        let hir = self.cx.hir;
        let action = &hir.actions[reference.action];
        let own =
            action.params.iter().copied().filter(|p| hir.vars[*p].kind == VarKind::Param(Direction::None));
        let own: Vec<VarId> = own.collect();
        let mut shapes = Vec::with_capacity(own.len());
        for param in &own {
            shapes.push(self.cx.zero(hir.vars[*param].ty, hir.vars[*param].span)?);
        }
        let values = learned.values(self, data, shapes);
        self.run_action(reference, own.into_iter().zip(values).collect())
    }
}
