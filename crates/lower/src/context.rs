//! What the whole of a lowering shares: the typed program, the IR under construction, and the elaborated objects.

use foldhash::{HashMap, HashMapExt};
use millrace_pipeline::{self as ir, Bits, HeaderId, Home, ProgramBuilder, SlotId, Type};
use millrace_sema::hir::{self, Ty};
use millrace_sema::{Constant, NotConstant, evaluate};
use millrace_syntax::{SourceMap, Span};
use num_bigint::BigInt;
use std::rc::Rc;

use crate::arch::Architecture;
use crate::fail::{Lower, code, fail, internal};
use crate::limits::{self, Budget};
use crate::objects::{ObjectId, Objects};
use crate::sites::Sites;
use crate::storage::{HeaderStorage, StackStorage, Storage};
use crate::survey::Surveyed;
use crate::types::{self, ENUM_BITS, ERROR_BITS, Shape, shape};
use crate::value::{Value, zero_scalar};

/// A lowering.
pub(crate) struct Lowering<'a> {
    /// The typed program.
    pub(crate) hir: &'a hir::Program,
    /// The IR so far.
    pub(crate) ir: ProgramBuilder,
    /// Instances of blocks and externs.
    pub(crate) objects: Objects,
    /// What gives externs and metadata their meaning.
    pub(crate) arch: Architecture,
    /// What all of it has cost so far, bodies under construction included.
    pub(crate) budget: Budget,
    /// What walks over the code found.
    pub(crate) surveyed: Surveyed,
    /// Actions of the top level that a table uses.
    pub(crate) global_actions: HashMap<hir::ActionId, ir::ActionId>,
    /// Where it asks for packets to be dropped.
    pub(crate) sites: Sites<'a>,
    /// The tables whose entries have accounts, by these.
    pub(crate) account_owners: HashMap<ObjectId, ir::TableId>,
    error_codes: Vec<u32>,
    empty_varbits: HashMap<u32, SlotId>,
}

impl<'a> Lowering<'a> {
    /// Nothing lowered yet.
    pub(crate) fn new(
        hir: &'a hir::Program,
        name: &str,
        arch: Architecture,
        sources: Option<&'a SourceMap>,
    ) -> Lowering<'a> {
        let mut ir = ProgramBuilder::new(name, arch.name());
        let error_codes = hir.errors.iter().map(|e| ir.error(e)).collect();
        Lowering {
            hir,
            ir,
            objects: Objects::default(),
            arch,
            budget: Budget::default(),
            surveyed: Surveyed::default(),
            global_actions: HashMap::new(),
            sites: Sites::new(sources),
            account_owners: HashMap::new(),
            error_codes,
            empty_varbits: HashMap::new(),
        }
    }

    /// The shape of a type.
    pub(crate) fn shape(&self, ty: Ty) -> Shape {
        shape(&self.hir.types, ty)
    }

    /// The code of an error of the typed program.
    pub(crate) fn error_code(&self, member: usize) -> u32 {
        self.error_codes.get(member).copied().unwrap_or(0)
    }

    /// A slot that never is written, for the empty varbit.
    pub(crate) fn empty_varbit(&mut self, width: u32) -> SlotId {
        let ir = &mut self.ir;
        *self
            .empty_varbits
            .entry(width)
            .or_insert_with(|| ir.metadata(&format!("empty.varbit{width}"), Type::Varbit(width)))
    }

    /// A control-plane name that no other object of that kind has.
    pub(crate) fn object_name(&mut self, kind: &str, name: &str) -> String {
        let unique = self.ir.object_name(&format!("{kind} {name}"));
        unique.get(kind.len() + 1..).unwrap_or(name).to_owned()
    }

    // ---- Storage ----

    /// New storage for a value of that type. Scalars outside headers get that home.
    pub(crate) fn allocate(&mut self, ty: Ty, name: &str, home: Home, span: Span) -> Lower<Storage> {
        self.check_storage(name, span)?;
        match self.shape(ty) {
            Shape::Unit => Ok(Storage::Unit),
            Shape::Scalar(scalar) => {
                check_width(scalar, span)?;
                Ok(Storage::Scalar(match home {
                    Home::Local => self.ir.local(name, scalar),
                    _ => self.ir.metadata(name, scalar),
                }))
            }
            Shape::Struct => {
                let members = types::members(&self.hir.types, ty);
                let mut parts = Vec::with_capacity(members.len());
                for (member, ty) in members {
                    parts.push(self.allocate(ty, &format!("{name}.{member}"), home, span)?);
                }
                Ok(Storage::Struct(parts.into()))
            }
            Shape::Header(_) => {
                Ok(Storage::Header(Rc::new(self.allocate_header(ty, name, Vec::new(), span)?)))
            }
            Shape::Union(_) => {
                let members = types::members(&self.hir.types, ty);
                let first = self.ir.program().headers.len();
                let ids: Vec<HeaderId> =
                    (first..first + members.len()).map(|i| HeaderId::from_u32(i as u32)).collect();
                let mut parts = Vec::with_capacity(members.len());
                for (i, (member, ty)) in members.into_iter().enumerate() {
                    self.budget.visits += ids.len();
                    let siblings = ids.iter().copied().filter(|id| *id != ids[i]).collect();
                    let header = self.allocate_header(ty, &format!("{name}.{member}"), siblings, span)?;
                    parts.push(Storage::Header(Rc::new(header)));
                }
                Ok(Storage::Union(parts.into()))
            }
            Shape::Stack(element, n) => {
                let mut elements = Vec::new();
                for i in 0..n {
                    elements.push(self.allocate(element, &format!("{name}[{i}]"), home, span)?);
                }
                let next = match self.shape(element) {
                    Shape::Header(_) => {
                        let headers = elements.iter().filter_map(|p| match p {
                            Storage::Header(h) => Some(h.id),
                            _ => None,
                        });
                        let stack = self.ir.stack(name, headers.collect());
                        Some(self.ir.program().stacks[stack].next)
                    }
                    Shape::Union(_) => Some(self.ir.metadata(&format!("{name}.nextIndex"), Type::Bits(32))),
                    _ => None,
                };
                Ok(Storage::Stack(Rc::new(StackStorage { elements, next })))
            }
            Shape::List | Shape::CompileTime | Shape::Object => {
                fail(code::PLACE, span, "a value of this type has no storage at run time")
            }
        }
    }

    /// Fails where there is no room for more storage.
    fn check_storage(&mut self, name: &str, span: Span) -> Lower<()> {
        self.budget.name_bytes += name.len();
        self.budget.visits += 1;
        self.budget.check(span)?;
        let program = self.ir.program();
        if program.slots.len() + program.headers.len() > limits::MAX_SLOTS {
            return fail(
                code::LIMIT,
                span,
                format!("the program needs more than {} scalars of storage", limits::MAX_SLOTS),
            );
        }
        Ok(())
    }

    fn allocate_header(
        &mut self,
        ty: Ty,
        name: &str,
        siblings: Vec<HeaderId>,
        span: Span,
    ) -> Lower<HeaderStorage> {
        let mut fields = Vec::new();
        self.header_fields(ty, "", &mut fields, span)?;
        let type_name = match self.shape(ty) {
            Shape::Header(id) => self.hir.types.structs[id].name.clone(),
            _ => return internal(span, "a header without a header type"),
        };
        self.budget.name_bytes += fields.iter().map(|(field, _)| name.len() + field.len()).sum::<usize>();
        self.check_storage("", span)?;
        let list: Vec<(&str, Type)> = fields.iter().map(|(name, ty)| (name.as_str(), *ty)).collect();
        let id = self.ir.header(name, &type_name, &list);
        let mut slots = self.ir.program().headers[id].fields.clone().into_iter();
        let fields = types::members(&self.hir.types, ty)
            .into_iter()
            .map(|(_, ty)| self.header_storage(ty, &mut slots))
            .collect();
        Ok(HeaderStorage { id, fields, siblings })
    }

    fn header_fields(&self, ty: Ty, prefix: &str, list: &mut Vec<(String, Type)>, span: Span) -> Lower<()> {
        for (name, ty) in types::members(&self.hir.types, ty) {
            let name = format!("{prefix}{name}");
            let arrays = match self.shape(ty) {
                Shape::Stack(_, n) => n as usize,
                _ => 1,
            };
            if list.len().saturating_add(arrays) > limits::MAX_SLOTS {
                let limit = limits::MAX_SLOTS;
                return fail(code::LIMIT, span, format!("the header has more than {limit} fields"));
            }
            match self.shape(ty) {
                Shape::Unit => {}
                Shape::Scalar(scalar) => {
                    check_width(scalar, span)?;
                    list.push((name, scalar));
                }
                Shape::Struct => self.header_fields(ty, &format!("{name}."), list, span)?,
                Shape::Stack(element, n) => {
                    for i in 0..n {
                        match self.shape(element) {
                            Shape::Scalar(scalar) => list.push((format!("{name}[{i}]"), scalar)),
                            _ => self.header_fields(element, &format!("{name}[{i}]."), list, span)?,
                        }
                    }
                }
                _ => return fail(code::PLACE, span, format!("`{name}` cannot be a field of a header")),
            }
        }
        Ok(())
    }

    fn header_storage(&self, ty: Ty, slots: &mut impl Iterator<Item = SlotId>) -> Storage {
        match self.shape(ty) {
            Shape::Scalar(_) => slots.next().map_or(Storage::Unit, Storage::Scalar),
            Shape::Struct => {
                let members = types::members(&self.hir.types, ty);
                Storage::Struct(members.into_iter().map(|(_, ty)| self.header_storage(ty, slots)).collect())
            }
            Shape::Stack(element, n) => {
                let elements = (0..n).map(|_| self.header_storage(element, slots)).collect();
                Storage::Stack(Rc::new(StackStorage { elements, next: None }))
            }
            _ => Storage::Unit,
        }
    }

    // ---- Constants ----

    /// The value of an expression if it is the same whenever it is evaluated, in a block (whose constructor parameters
    /// count).
    pub(crate) fn constant(
        &self,
        expr: &hir::Expr,
        block: Option<ObjectId>,
    ) -> Result<Constant, NotConstant> {
        evaluate(self.hir, expr, &|var| self.objects.constant(block?, var).cloned())
    }

    /// The value of an expression that the checker found to be known at compile time.
    pub(crate) fn known_value(
        &self,
        expr: &hir::Expr,
        block: Option<ObjectId>,
    ) -> Result<Constant, NotConstant> {
        evaluate(self.hir, expr, &|var| self.objects.constant_or_initial(block?, var).cloned())
    }

    /// As [`Lowering::known_value`], failing with a diagnostic.
    pub(crate) fn must_be_constant(&self, expr: &hir::Expr, block: Option<ObjectId>) -> Lower<Constant> {
        self.known_value(expr, block).or_else(|e| fail(code::CONSTANT, e.span, e.message))
    }

    /// A number that must be known at compile time.
    pub(crate) fn constant_number(&self, expr: &hir::Expr, block: Option<ObjectId>) -> Lower<BigInt> {
        match self.must_be_constant(expr, block)? {
            Constant::Int(number) => Ok(number),
            Constant::Bool(b) => Ok(BigInt::from(u8::from(b))),
            Constant::EnumMember(i) => Ok(BigInt::from(i)),
            _ => internal(expr.span, "a number was expected here"),
        }
    }

    /// The bits of a compile-time value of a scalar type; none for `bit<0>`.
    pub(crate) fn constant_bits(&self, value: &Constant, ty: Ty) -> Option<Bits> {
        let width = types::bit_width(&self.hir.types, ty)?;
        if width == 0 {
            return None;
        }
        let number = match value {
            Constant::Int(number) => number.clone(),
            Constant::Bool(b) => BigInt::from(u8::from(*b)),
            Constant::Error(member) => BigInt::from(self.error_code(*member)),
            Constant::EnumMember(member) => return Some(self.enum_bits(ty, *member)),
            _ => return None,
        };
        Some(Bits::from_bigint(width, &number))
    }

    /// The bits of the scalars of a compile-time value in order.
    pub(crate) fn constant_scalars(&self, value: &Constant, ty: Ty, list: &mut Vec<Bits>) {
        match value {
            Constant::Aggregate(members) => {
                for (member, (_, ty)) in members.iter().zip(types::members(&self.hir.types, ty)) {
                    self.constant_scalars(member, ty, list);
                }
            }
            _ => list.extend(self.constant_bits(value, ty)),
        }
    }

    /// The representation of a member of an enumeration.
    pub(crate) fn enum_bits(&self, ty: Ty, member: usize) -> Bits {
        let plain = Bits::new(ENUM_BITS, member as u128);
        let hir::TyKind::Enum(id) = self.hir.types.kind(ty) else { return plain };
        let declared = &self.hir.types.enums[*id];
        match (declared.repr, declared.members.get(member).and_then(|m| m.value.as_ref())) {
            (Some(repr), Some(value)) => {
                let width = types::bit_width(&self.hir.types, repr).unwrap_or(ENUM_BITS);
                Bits::from_bigint(width.max(1), value)
            }
            _ => plain,
        }
    }

    /// A compile-time value as a value.
    pub(crate) fn constant_value(&mut self, value: &Constant, ty: Ty, span: Span) -> Lower<Value> {
        self.budget.visits += 1;
        self.budget.check(span)?;
        Ok(match value {
            Constant::Int(number) => match self.shape(ty) {
                Shape::Scalar(Type::Bits(w)) => Value::Scalar(ir::Expr::Const(Bits::from_bigint(w, number))),
                Shape::Unit => Value::Unit,
                _ => Value::Int(number.clone()),
            },
            Constant::Bool(b) => Value::Scalar(ir::Expr::Bool(*b)),
            Constant::String(text) => Value::Text(text.clone()),
            Constant::Error(member) => {
                Value::Scalar(ir::Expr::bits(ERROR_BITS, u128::from(self.error_code(*member))))
            }
            Constant::MatchKind(_) => Value::Unit,
            Constant::EnumMember(member) => Value::Scalar(ir::Expr::Const(self.enum_bits(ty, *member))),
            Constant::Aggregate(members) => {
                let types: Vec<Ty> = match self.hir.types.kind(ty) {
                    hir::TyKind::List(element) | hir::TyKind::Stack(element, _) => {
                        vec![*element; members.len()]
                    }
                    _ => types::members(&self.hir.types, ty).into_iter().map(|(_, ty)| ty).collect(),
                };
                let mut values = Vec::with_capacity(members.len());
                for (member, ty) in members.iter().zip(types) {
                    values.push(self.constant_value(member, ty, span)?);
                }
                match self.shape(ty) {
                    Shape::Header(_) => Value::header(ir::Expr::Bool(true), values),
                    Shape::Stack(..) => Value::Stack(values, None),
                    _ => Value::Tuple(values),
                }
            }
            Constant::InvalidHeader => self.zero(ty, span)?,
            Constant::Instance(_) => return internal(span, "an instance is not a value"),
        })
    }

    /// The value that an uninitialised variable has: 0, false, empty; headers are invalid.
    pub(crate) fn zero(&mut self, ty: Ty, span: Span) -> Lower<Value> {
        self.budget.visits += 1;
        self.budget.check(span)?;
        let members = types::members(&self.hir.types, ty);
        Ok(match self.shape(ty) {
            Shape::Unit => Value::Unit,
            Shape::Scalar(ty) => Value::Scalar(zero_scalar(ty, |w| self.empty_varbit(w))),
            Shape::Struct | Shape::Header(_) | Shape::Union(_) => {
                let mut values = Vec::with_capacity(members.len());
                for (_, ty) in members {
                    values.push(self.zero(ty, span)?);
                }
                match self.shape(ty) {
                    Shape::Struct => Value::Tuple(values),
                    Shape::Header(_) => Value::header(ir::Expr::Bool(false), values),
                    _ => Value::Union(values),
                }
            }
            Shape::Stack(element, n) => {
                let mut values = Vec::new();
                for _ in 0..n {
                    values.push(self.zero(element, span)?);
                }
                let next = match self.shape(element) {
                    Shape::Header(_) | Shape::Union(_) => Some(ir::Expr::bits(32, 0)),
                    _ => None,
                };
                Value::Stack(values, next)
            }
            Shape::List => Value::Tuple(Vec::new()),
            Shape::CompileTime => Value::Int(BigInt::ZERO),
            Shape::Object => return internal(span, "an object has no initial value"),
        })
    }
}

fn check_width(ty: Type, span: Span) -> Lower<()> {
    let (width, limit) = match ty {
        Type::Bool => return Ok(()),
        Type::Bits(w) => (w, ir::limits::MAX_WIDTH),
        Type::Varbit(w) => (w, ir::limits::MAX_VARBIT),
    };
    if width > limit {
        return fail(code::LIMIT, span, format!("{width} bits are more than the {limit} that are possible"));
    }
    Ok(())
}
