//! What a program declares, by name: the namespaces of P4_14, with the sizes that are known at compile time.

use indexmap::IndexMap;
use millrace_syntax::ast::{self as p16, Name, Text};
use millrace_syntax::p4_14::ast::{self as p14, Declaration, InstanceKind};
use millrace_syntax::{Diagnostic, Diagnostics, MAX_KEPT, Span, nearest};
use std::collections::HashMap;

use crate::{codes, constant};

/// The widest field in bits.
pub(crate) const MAX_WIDTH: u32 = 65_536;

/// The widest field of varying length in bits, when its header gives no `max_length`.
const MAX_VARBIT: u32 = 16_384;

/// The most elements of a header stack.
const MAX_STACK: u32 = 1024;

/// A field of a header type.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Text,
    /// Bits; the most, for one of varying length.
    pub(crate) width: u32,
    /// Its length varies.
    pub(crate) varies: bool,
    pub(crate) signed: bool,
    pub(crate) saturating: bool,
    /// Bits before it.
    pub(crate) offset: u32,
    pub(crate) span: Span,
}

/// The fields of a header type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) fields: Vec<Field>,
    /// Where each is, by its name.
    places: HashMap<Text, usize>,
    /// Bits without the field of varying length.
    pub(crate) fixed: u32,
    /// The greatest length in bytes, for a header of varying length.
    pub(crate) max_bytes: u32,
}

impl Layout {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(*self.places.get(name)?)
    }

    fn push(&mut self, field: Field) {
        self.places.entry(field.name.clone()).or_insert(self.fields.len());
        self.fields.push(field);
    }

    pub(crate) fn varies(&self) -> bool {
        self.fields.iter().any(|f| f.varies)
    }
}

/// What sort of instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Header,
    Metadata,
    /// `standard_metadata`, which is the architecture's.
    Standard,
}

/// An instance of a header type.
#[derive(Clone, Debug)]
pub(crate) struct Instance<'a> {
    pub(crate) kind: Kind,
    pub(crate) ty: &'a str,
    pub(crate) name: Text,
    /// Elements, for a stack.
    pub(crate) size: Option<u32>,
    pub(crate) initial: &'a [(Name, p14::Expr)],
    pub(crate) span: Span,
}

/// A field of the architecture's metadata: its member in `standard_metadata_t` and its width.
#[derive(Clone, Debug)]
pub(crate) struct StandardField {
    pub(crate) member: Text,
    pub(crate) width: u32,
}

/// The declarations of one kind.
pub(crate) type Named<'a, T> = IndexMap<&'a str, &'a T>;

/// All declarations.
#[derive(Debug, Default)]
pub(crate) struct Model<'a> {
    pub(crate) types: IndexMap<&'a str, (&'a p14::HeaderType, Layout)>,
    pub(crate) instances: IndexMap<&'a str, Instance<'a>>,
    pub(crate) field_lists: Named<'a, p14::FieldList>,
    pub(crate) calculations: Named<'a, p14::Calculation>,
    pub(crate) calculated: Vec<&'a p14::CalculatedField>,
    pub(crate) value_sets: Named<'a, p14::ValueSet>,
    pub(crate) states: Named<'a, p14::ParserState>,
    pub(crate) exceptions: Named<'a, p14::ParserException>,
    pub(crate) counters: Named<'a, p14::Counter>,
    pub(crate) meters: Named<'a, p14::Meter>,
    pub(crate) registers: Named<'a, p14::Register>,
    pub(crate) actions: Named<'a, p14::Action>,
    pub(crate) profiles: Named<'a, p14::ActionProfile>,
    pub(crate) selectors: Named<'a, p14::ActionSelector>,
    pub(crate) tables: Named<'a, p14::Table>,
    pub(crate) controls: Named<'a, p14::Control>,
    /// Fields of `standard_metadata` by their names in P4_14.
    pub(crate) standard: Layout,
    /// By P4_14's full names (`standard_metadata.egress_spec`, `intrinsic_metadata.mcast_grp`).
    pub(crate) aliases: HashMap<String, StandardField>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(
        program: &'a p14::Program,
        library: &p16::Program,
        found: &mut Diagnostics,
    ) -> Model<'a> {
        let mut model = Model::default();
        model.standard_metadata(library);
        let mut taken: HashMap<(&'static str, &'a str), Span> = HashMap::new();
        for declaration in &program.declarations {
            if let Some(name) = declaration.name()
                && !reserve(declaration, name, &mut taken, found)
            {
                continue;
            }
            model.declare(declaration, found);
        }
        model.instances(program, found);
        model
    }

    fn declare(&mut self, declaration: &'a Declaration, found: &mut Diagnostics) {
        match declaration {
            Declaration::HeaderType(d) => {
                let layout = layout(d, found);
                self.types.insert(&d.name.text, (d, layout));
            }
            Declaration::Instance(_) => {}
            Declaration::FieldList(d) => drop(self.field_lists.insert(&d.name.text, d)),
            Declaration::Calculation(d) => drop(self.calculations.insert(&d.name.text, d)),
            Declaration::CalculatedField(d) => self.calculated.push(d),
            Declaration::ValueSet(d) => drop(self.value_sets.insert(&d.name.text, d)),
            Declaration::ParserState(d) => drop(self.states.insert(&d.name.text, d)),
            Declaration::ParserException(d) => drop(self.exceptions.insert(&d.name.text, d)),
            Declaration::Counter(d) => drop(self.counters.insert(&d.name.text, d)),
            Declaration::Meter(d) => drop(self.meters.insert(&d.name.text, d)),
            Declaration::Register(d) => drop(self.registers.insert(&d.name.text, d)),
            Declaration::Action(d) => drop(self.actions.insert(&d.name.text, d)),
            Declaration::ActionProfile(d) => drop(self.profiles.insert(&d.name.text, d)),
            Declaration::ActionSelector(d) => drop(self.selectors.insert(&d.name.text, d)),
            Declaration::Table(d) => drop(self.tables.insert(&d.name.text, d)),
            Declaration::Control(d) => drop(self.controls.insert(&d.name.text, d)),
        }
    }

    /// The instances, once all header types are known.
    fn instances(&mut self, program: &'a p14::Program, found: &mut Diagnostics) {
        for declaration in &program.declarations {
            let Declaration::Instance(d) = declaration else { continue };
            if &*d.name.text == STANDARD || self.instances.contains_key(&*d.name.text) {
                // Reported where names are collected.
                continue;
            }
            let Some((_, layout)) = self.types.get(&*d.ty.text) else {
                unknown(found, &d.ty, "header type", self.types.keys().copied());
                continue;
            };
            check_instance(d, layout, found);
            let size = d.size.as_ref().map(|size| constant::number(size, 1, MAX_STACK, found).unwrap_or(1));
            let kind = match d.kind {
                InstanceKind::Header => Kind::Header,
                InstanceKind::Metadata => Kind::Metadata,
            };
            let instance = Instance {
                kind,
                ty: &d.ty.text,
                name: d.name.text.clone(),
                size,
                initial: &d.initial,
                span: d.span,
            };
            self.instances.insert(&d.name.text, instance);
        }
        let standard = Instance {
            kind: Kind::Standard,
            ty: "standard_metadata_t",
            name: STANDARD.into(),
            size: None,
            initial: &[],
            span: Span::default(),
        };
        self.instances.insert(STANDARD, standard);
    }

    /// Reads the architecture's metadata out of its declaration: the members, and the names they have in P4_14.
    fn standard_metadata(&mut self, library: &p16::Program) {
        let fields = library.declarations.iter().find_map(|d| match d {
            p16::Declaration::Struct(s) if s.name.as_str() == "standard_metadata_t" => Some(&s.fields),
            _ => None,
        });
        for field in fields.into_iter().flatten() {
            let p16::TypeKind::Bits(Some(width)) = &field.ty.kind else { continue };
            let p16::ExprKind::Int(width) = &width.kind else { continue };
            let Ok(width) = u32::try_from(&width.value) else { continue };
            let alias =
                field.annotations.iter().find(|a| a.name.as_str() == "alias").and_then(|a| a.string());
            let stored = StandardField { member: field.name.text.clone(), width };
            if let Some(alias) = alias {
                self.aliases.insert(alias, stored.clone());
            }
            self.standard_field(&field.name.text, stored);
        }
        if let Some(stored) = self.aliases.get("intrinsic_metadata.egress_rid").cloned() {
            self.standard_field(&"egress_instance".into(), stored);
        }
        for name in [PARSER_STATUS, "parser_error_location"] {
            self.standard.push(field(name.into(), 8, Span::default()));
        }
    }

    fn standard_field(&mut self, name: &Text, stored: StandardField) {
        self.standard.push(field(name.clone(), stored.width, Span::default()));
        self.aliases.insert(format!("{STANDARD}.{name}"), stored);
    }

    pub(crate) fn layout(&self, instance: &Instance<'_>) -> &Layout {
        match self.types.get(instance.ty) {
            Some((_, layout)) if instance.kind != Kind::Standard => layout,
            _ => &self.standard,
        }
    }
}

/// The instance that every program has.
pub(crate) const STANDARD: &str = "standard_metadata";

/// The field that says which parser exception there was.
pub(crate) const PARSER_STATUS: &str = "parser_status";

fn field(name: Text, width: u32, span: Span) -> Field {
    Field { name, width, varies: false, signed: false, saturating: false, offset: 0, span }
}

/// Takes a name in its namespace, or says why not.
fn reserve<'a>(
    declaration: &Declaration,
    name: &'a Name,
    taken: &mut HashMap<(&'static str, &'a str), Span>,
    found: &mut Diagnostics,
) -> bool {
    let (space, own) = match declaration {
        Declaration::HeaderType(_) => ("type", ""),
        Declaration::Instance(_) | Declaration::FieldList(_) => ("instance", ""),
        Declaration::Calculation(_) => ("calculation", ""),
        Declaration::CalculatedField(_) => return true,
        Declaration::ValueSet(_) => ("value set", ""),
        Declaration::ParserState(_) => ("function", ""),
        Declaration::Control(_) => ("function", "control"),
        Declaration::ParserException(_) => ("exception", ""),
        Declaration::Counter(_) => ("counter", ""),
        Declaration::Meter(_) => ("meter", ""),
        Declaration::Register(_) => ("register", ""),
        Declaration::Action(_) => ("action", ""),
        Declaration::ActionProfile(_) => ("profile", ""),
        Declaration::ActionSelector(_) => ("selector", ""),
        Declaration::Table(_) => ("table", ""),
    };
    let belongs = match name.as_str() {
        "ingress" | "egress" if own != "control" => "control function",
        STANDARD => "metadata that every program has",
        "standard_metadata_t" => "header type of `standard_metadata`",
        _ => "",
    };
    if !belongs.is_empty() {
        let message = format!("`{name}` is reserved: it is the {belongs}");
        found.push(Diagnostic::error(codes::RESERVED, name.span, message));
        // Declared all the same, so that its uses are no errors of their own.
        return true;
    }
    if let Some(earlier) = taken.insert((space, &name.text), name.span) {
        found.push(
            Diagnostic::error(codes::DUPLICATE, name.span, format!("`{name}` is declared twice"))
                .with_label("declared again here")
                .with_secondary(earlier, "first declared here"),
        );
        return false;
    }
    true
}

/// Says that there is no such name, with the nearest that there is.
pub(crate) fn unknown<'n>(
    found: &mut Diagnostics,
    name: &Name,
    wanted: &str,
    known: impl Iterator<Item = &'n str>,
) {
    let message = format!("there is no {wanted} named `{name}`");
    let mut diagnostic =
        Diagnostic::error(codes::UNKNOWN_NAME, name.span, message).with_label("not declared");
    if found.error_count() < MAX_KEPT
        && let Some(near) = nearest(name.as_str(), known)
    {
        diagnostic = diagnostic.with_help(format!("`{near}` has a similar name"));
    }
    found.push(diagnostic);
}

/// The name that differs least, if it differs by at most a third of its letters.
/// The fields of a header type with their places.
fn layout(d: &p14::HeaderType, found: &mut Diagnostics) -> Layout {
    let mut layout = Layout::default();
    let mut varying: Option<Span> = None;
    for f in &d.fields {
        if let Some(earlier) = layout.field(&f.name.text) {
            found.push(
                Diagnostic::error(
                    codes::DUPLICATE,
                    f.name.span,
                    format!("field `{}` is there twice", f.name),
                )
                .with_secondary(earlier.span, "first declared here"),
            );
            continue;
        }
        let (width, varies) = match &f.width {
            Some(width) => (constant::number(width, 1, MAX_WIDTH, found).unwrap_or(1), false),
            None => (0, true),
        };
        if varies && let Some(earlier) = varying.replace(f.span) {
            found.push(
                Diagnostic::error(codes::BAD_SIZE, f.span, "at most one field has the width `*`")
                    .with_secondary(earlier, "the other is here"),
            );
            continue;
        }
        let offset = layout.fixed;
        layout.fixed = layout.fixed.saturating_add(width);
        layout.push(Field {
            name: f.name.text.clone(),
            width,
            varies,
            signed: f.signed,
            saturating: f.saturating,
            offset,
            span: f.span,
        });
    }
    variable_length(d, &mut layout, varying, found);
    layout
}

/// The greatest length of a header with a field of width `*`.
fn variable_length(d: &p14::HeaderType, layout: &mut Layout, varying: Option<Span>, found: &mut Diagnostics) {
    let max = d.max_length.as_ref().map(|max| constant::number(max, 0, MAX_WIDTH / 8, found).unwrap_or(0));
    let Some(span) = varying else {
        for given in [&d.length, &d.max_length].into_iter().flatten() {
            let message = format!("`{}` has a fixed length, so this says nothing", d.name);
            found.push(Diagnostic::warning(codes::SUSPICIOUS, given.span, message));
        }
        return;
    };
    let Some(length) = &d.length else {
        let message = format!("header type `{}` has a field of width `*` and no `length`", d.name);
        found.push(Diagnostic::error(codes::BAD_SIZE, span, message));
        return;
    };
    length_fields(length, layout, span, found);
    if !layout.fixed.is_multiple_of(8) {
        let message = format!("the fixed fields of `{}` do not fill whole bytes", d.name);
        found.push(Diagnostic::error(codes::BAD_SIZE, d.name.span, message));
    }
    let fixed_bytes = layout.fixed / 8;
    let max_bytes = max.unwrap_or(fixed_bytes + MAX_VARBIT / 8);
    layout.max_bytes = max_bytes;
    if max_bytes <= fixed_bytes {
        let message =
            format!("`max_length` leaves nothing: the other fields of `{}` take {fixed_bytes} bytes", d.name);
        let at = d.max_length.as_ref().map_or(span, |e| e.span);
        found.push(Diagnostic::error(codes::BAD_SIZE, at, message));
    }
    let width = max_bytes.saturating_sub(fixed_bytes).max(1) * 8;
    for field in &mut layout.fields {
        if field.varies {
            field.width = width;
        }
    }
}

/// The fields that a length is computed from must have been read before it is needed.
fn length_fields(length: &p14::Expr, layout: &Layout, varying: Span, found: &mut Diagnostics) {
    match &length.kind {
        p14::ExprKind::Reference(reference) => {
            let position = |name: &str| layout.fields.iter().position(|f| *f.name == *name);
            let limit = layout.fields.iter().position(|f| f.varies);
            let at = reference.plain().and_then(|name| position(name.as_str()));
            if at.is_none() {
                let message = "a length is computed from constants and fields of its own header type";
                found.push(Diagnostic::error(codes::UNKNOWN_FIELD, length.span, message));
            } else if at >= limit {
                let message = "a length depends on fields before the one of width `*` only";
                found.push(
                    Diagnostic::error(codes::BAD_SIZE, length.span, message)
                        .with_secondary(varying, "the field whose width it gives"),
                );
            }
        }
        p14::ExprKind::Int { .. } => {}
        p14::ExprKind::Unary(_, e) => length_fields(e, layout, varying, found),
        p14::ExprKind::Binary(_, a, b) => {
            length_fields(a, layout, varying, found);
            length_fields(b, layout, varying, found);
        }
        _ => {
            let message = "a length is computed from constants and fields";
            found.push(Diagnostic::error(codes::TYPE, length.span, message));
        }
    }
}

fn check_instance(d: &p14::Instance, layout: &Layout, found: &mut Diagnostics) {
    match d.kind {
        InstanceKind::Metadata => {
            if layout.varies() {
                let message = format!("metadata has a fixed length, `{}` has not", d.ty);
                found.push(Diagnostic::error(codes::BAD_SIZE, d.ty.span, message));
            }
            if let Some(size) = &d.size {
                let message = "only headers can be stacks, not metadata";
                found.push(Diagnostic::error(codes::WRONG_KIND, size.span, message));
            }
        }
        InstanceKind::Header => {
            if !layout.fixed.is_multiple_of(8) && !layout.varies() {
                let message =
                    format!("header `{}` has {} bits: a header fills whole bytes", d.name, layout.fixed);
                found.push(Diagnostic::error(codes::BAD_SIZE, d.span, message));
            }
        }
    }
}
