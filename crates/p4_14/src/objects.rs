//! Counters, meters, registers, action profiles and selectors (specification sections 7 and 11). Those that tables share
//! are declared at the top level, so that ingress and egress use the same ones.

use millrace_syntax::Span;
use millrace_syntax::ast::{self as p16, Declaration, Expr, Type, TypeKind};
use millrace_syntax::p4_14::ast::{self as p14, Binding, Unit};

use crate::codes;
use crate::constant;
use crate::model;
use crate::translate::Translator;
use crate::tree;
use crate::value::Number;

/// The most cells of an object.
const MAX_CELLS: u32 = 1 << 24;

/// The members of a profile that does not say how many.
const DEFAULT_MEMBERS: u32 = 1024;

impl<'a> Translator<'a> {
    /// A number that must be known, between bounds.
    pub(crate) fn bounded(&mut self, e: &p14::Expr, least: u32, most: u32) -> Option<u32> {
        let mut found = std::mem::take(&mut self.found);
        let muted = self.muted > 0;
        let mut scrap = millrace_syntax::Diagnostics::new();
        let number = constant::number(e, least, most, if muted { &mut scrap } else { &mut found });
        self.found = found;
        number
    }

    /// Declares the objects that are no part of a table.
    pub(crate) fn declare_objects(&mut self) {
        for (name, counter) in self.model.counters.clone() {
            self.counter(name, counter);
        }
        for (name, meter) in self.model.meters.clone() {
            self.meter(name, meter);
        }
        for (name, register) in self.model.registers.clone() {
            self.register(name, register);
        }
        for (name, profile) in self.model.profiles.clone() {
            self.profile(name, profile);
        }
    }

    /// `ty(args) name;` for the control plane under its own name.
    fn instantiate(
        &mut self,
        ty: Type,
        args: Vec<Expr>,
        original: &str,
        span: Span,
    ) -> (String, Declaration) {
        let name = self.names.fresh(original);
        let declaration = Declaration::Instantiation(p16::Instantiation {
            annotations: vec![tree::control_plane(original, span)],
            ty,
            args: args.into_iter().map(tree::argument).collect(),
            name: tree::name(name.as_str(), span),
            initializer: None,
            span,
        });
        (name, declaration)
    }

    /// The number of cells of an object that has some of its own.
    fn cells(&mut self, instances: Option<&p14::Expr>, name: &p16::Name) -> Expr {
        let cells = match instances {
            Some(e) => self.bounded(e, 1, MAX_CELLS).unwrap_or(1),
            None => {
                let message = format!("`{name}` needs an `instance_count`, or a table with `direct`");
                self.error(codes::OBJECT, name.span, message);
                1
            }
        };
        self.tree.int(cells, name.span)
    }

    /// Whether the object is part of a table; reports a table that is not there.
    fn is_direct(
        &mut self,
        binding: Option<&Binding>,
        instances: Option<&p14::Expr>,
        name: &p16::Name,
    ) -> bool {
        let Some(Binding::Direct(table) | Binding::Static(table)) = binding else { return false };
        if !self.model.tables.contains_key(table.as_str()) {
            model::unknown(&mut self.found, table, "table", self.model.tables.keys().copied());
        }
        let direct = matches!(binding, Some(Binding::Direct(_)));
        if direct && let Some(instances) = instances {
            let message = format!("`{name}` is direct: it has as many cells as its table has entries");
            self.error(codes::OBJECT, instances.span, message);
        }
        direct
    }

    fn unit(&mut self, enumeration: &str, unit: Option<Unit>, name: &p16::Name) -> Expr {
        let member = match unit {
            Some(Unit::Packets) => "packets",
            Some(Unit::Bytes) => "bytes",
            Some(Unit::Both) => "packets_and_bytes",
            None => {
                self.error(codes::OBJECT, name.span, format!("`{name}` needs a `type`"));
                "packets"
            }
        };
        if enumeration == "MeterType" && member == "packets_and_bytes" {
            self.error(codes::OBJECT, name.span, "a meter measures packets or bytes, not both");
            return self.tree.constant(enumeration, "packets", name.span);
        }
        self.tree.constant(enumeration, member, name.span)
    }

    fn counter(&mut self, original: &'a str, counter: &'a p14::Counter) {
        if let Some(width) = &counter.min_width {
            self.bounded(width, 0, 64);
        }
        let direct = self.is_direct(counter.binding.as_ref(), counter.instances.as_ref(), &counter.name);
        let unit = self.unit("CounterType", counter.unit, &counter.name);
        if direct {
            return;
        }
        let cells = self.cells(counter.instances.as_ref(), &counter.name);
        let ty = tree::named_type("counter", counter.span);
        let (name, declaration) = self.instantiate(ty, vec![cells, unit], original, counter.span);
        self.top.push(declaration);
        self.counters.insert(original, name);
    }

    fn meter(&mut self, original: &'a str, meter: &'a p14::Meter) {
        let direct = self.is_direct(meter.binding.as_ref(), meter.instances.as_ref(), &meter.name);
        let unit = self.unit("MeterType", meter.unit, &meter.name);
        if direct {
            if meter.result.is_none() {
                let message = format!("`{}` is direct: it needs a `result` for the colour", meter.name);
                self.error(codes::OBJECT, meter.name.span, message);
            }
            return;
        }
        let cells = self.cells(meter.instances.as_ref(), &meter.name);
        let ty = tree::named_type("meter", meter.span);
        let (name, declaration) = self.instantiate(ty, vec![cells, unit], original, meter.span);
        self.top.push(declaration);
        self.meters.insert(original, name);
    }

    fn register(&mut self, original: &'a str, register: &'a p14::Register) {
        if self.is_direct(register.binding.as_ref(), register.instances.as_ref(), &register.name) {
            let message =
                format!("`{original}` is direct: v1model has no registers that are part of a table");
            self.warn(register.name.span, message);
            return;
        }
        let width = match (&register.width, &register.layout) {
            (Some(width), _) => self.bounded(width, 1, model::MAX_WIDTH).unwrap_or(1),
            (None, Some(layout)) => match self.model.types.get(layout.as_str()) {
                Some((_, layout)) => layout.fixed.max(1),
                None => {
                    model::unknown(&mut self.found, layout, "header type", self.model.types.keys().copied());
                    1
                }
            },
            (None, None) => {
                self.error(codes::OBJECT, register.name.span, format!("`{original}` needs a `width`"));
                1
            }
        };
        let cells = self.cells(register.instances.as_ref(), &register.name);
        let span = register.span;
        let number = Number { width, signed: register.signed };
        let element = self.tree.ty(width, register.signed, span);
        let path = p16::Path { absolute: true, name: tree::name("register", span) };
        let ty = Type { kind: TypeKind::Specialized(path, vec![element]), span };
        let (name, declaration) = self.instantiate(ty, vec![cells], original, span);
        self.top.push(declaration);
        self.registers.insert(original, (name, number));
    }

    fn profile(&mut self, original: &'a str, profile: &'a p14::ActionProfile) {
        let span = profile.span;
        let size = profile.size.as_ref().and_then(|size| self.bounded(size, 1, MAX_CELLS));
        let size = self.tree.int(size.unwrap_or(DEFAULT_MEMBERS), span);
        let (ty, args) = match self.selector(profile) {
            None => ("action_profile", vec![size]),
            Some(calculation) => {
                let algorithm = self.algorithm(calculation);
                let algorithm = self.tree.constant("HashAlgorithm", algorithm, span);
                let width = self.output_width(calculation);
                let width = self.tree.int(width, span);
                ("action_selector", vec![algorithm, size, width])
            }
        };
        let (name, declaration) = self.instantiate(tree::named_type(ty, span), args, original, span);
        self.top.push(declaration);
        self.profiles.insert(original, name);
    }

    /// The calculation by which a profile chooses.
    pub(crate) fn selector(&mut self, profile: &'a p14::ActionProfile) -> Option<&'a p14::Calculation> {
        let wanted = profile.selector.as_ref()?;
        let Some(selector) = self.model.selectors.get(wanted.as_str()).copied() else {
            let known = self.model.selectors.keys().copied();
            model::unknown(&mut self.found, wanted, "action selector", known);
            return None;
        };
        let Some(key) = &selector.key else {
            let message = format!("action selector `{wanted}` needs a `selection_key`");
            self.error(codes::OBJECT, selector.name.span, message);
            return None;
        };
        self.calculation(key)
    }

    /// The counter and the meter that are part of a table, declared before it.
    pub(crate) fn direct_objects(&mut self, table: &'a p14::Table) -> Vec<(&'static str, Expr)> {
        let belongs = |binding: &Option<Binding>| matches!(binding, Some(Binding::Direct(t)) if t.text == table.name.text);
        let counters: Vec<_> =
            self.model.counters.iter().filter(|(_, c)| belongs(&c.binding)).map(|(n, c)| (*n, *c)).collect();
        let meters: Vec<_> =
            self.model.meters.iter().filter(|(_, m)| belongs(&m.binding)).map(|(n, m)| (*n, *m)).collect();
        let mut properties = Vec::new();
        for (i, (original, counter)) in counters.iter().enumerate() {
            if i > 0 {
                let message = format!("table `{}` has a direct counter: v1model gives it one", table.name);
                let help = "one counter of `type : packets_and_bytes` counts both";
                let found =
                    millrace_syntax::Diagnostic::error(codes::ARCHITECTURE, counter.name.span, message);
                self.report(found.with_help(help));
                break;
            }
            let unit = self.unit("CounterType", counter.unit, &counter.name);
            let ty = tree::named_type("direct_counter", counter.span);
            let (name, declaration) = self.instantiate(ty, vec![unit], original, counter.span);
            self.locals.push(declaration);
            properties.push(("counters", self.tree.var(name, counter.span)));
        }
        for (i, (original, meter)) in meters.iter().enumerate() {
            if i > 0 {
                let message = format!("table `{}` has a direct meter: v1model gives it one", table.name);
                self.error(codes::ARCHITECTURE, meter.name.span, message);
                break;
            }
            let Some(width) = self.result_width(meter) else { continue };
            let span = meter.span;
            let unit = self.unit("MeterType", meter.unit, &meter.name);
            let element = self.tree.ty(width, false, span);
            let path = p16::Path { absolute: true, name: tree::name("direct_meter", span) };
            let ty = Type { kind: TypeKind::Specialized(path, vec![element]), span };
            let (name, declaration) = self.instantiate(ty, vec![unit], original, span);
            self.locals.push(declaration);
            properties.push(("meters", self.tree.var(name.clone(), span)));
            self.meters.insert(original, name);
        }
        properties
    }

    /// The bits of the field that a direct meter writes.
    fn result_width(&mut self, meter: &'a p14::Meter) -> Option<u32> {
        let result = meter.result.as_ref()?;
        Some(self.field_ref(result, &crate::expr::Scope::Outside)?.field.width)
    }
}
