//! Actions of tables (specification section 9.2). An action that another calls is put where it is called: its parameters
//! stand for what is given, which may be a field to write, a header, or a field list.

use indexmap::IndexMap;
use millrace_syntax::ast::{self as p16, Declaration, Direction, Name, Stmt};
use millrace_syntax::p4_14::ast::{self as p14, ExprKind};
use std::collections::{HashMap, HashSet};

use crate::codes;
use crate::expr::{Argument, Scope};
use crate::model;
use crate::primitive;
use crate::translate::{Pipeline, Translator};
use crate::tree;
use crate::value::Number;

/// The type of a parameter that nothing uses.
const UNUSED: Number = Number::unsigned(8);

/// The most actions that call each other.
const MAX_CALLS: usize = 64;

/// An action in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its name there.
    pub(crate) name: String,
    /// The types of its parameters.
    pub(crate) params: Vec<Number>,
}

impl<'a> Translator<'a> {
    /// The action of a table, made at its first use. In a table with a direct meter it begins with reading the colour.
    pub(crate) fn table_action(&mut self, name: &'a Name, meter: Option<&'a p14::Meter>) -> Option<Known> {
        let key = (self.pipeline, name.to_string(), meter.map(|m| m.name.to_string()));
        if let Some(known) = self.actions.get(&key) {
            return Some(known.clone());
        }
        let (known, declaration) = match self.model.actions.get(name.as_str()).copied() {
            Some(action) => self.compound(action, meter),
            None => self.primitive_as_action(name, meter)?,
        };
        self.locals.push(declaration);
        self.actions.insert(key, known.clone());
        Some(known)
    }

    fn compound(&mut self, action: &'a p14::Action, meter: Option<&'a p14::Meter>) -> (Known, Declaration) {
        // The types of parameters follow from the body, so it is looked at twice.
        let scope = Scope::Action(data(action, |_| None));
        let outer = self.inferred.replace(HashMap::new());
        self.muted += 1;
        self.body(action, &scope, &mut Vec::new());
        self.muted -= 1;
        let inferred = std::mem::replace(&mut self.inferred, outer).unwrap_or_default();
        let ty = |name: &Name| inferred.get(&*name.text).copied().unwrap_or(UNUSED);
        let scope = Scope::Action(data(action, |name| Some(ty(name))));
        let mut body = self.colour(meter);
        self.body(action, &scope, &mut body);
        let params: Vec<(Name, Number)> = action.params.iter().map(|p| (p.clone(), ty(p))).collect();
        let mut seen: HashMap<&str, &Name> = HashMap::new();
        for (param, _) in &params {
            if let Some(earlier) = seen.insert(param.as_str(), param) {
                let message = format!("parameter `{param}` is there twice");
                let found = millrace_syntax::Diagnostic::error(codes::DUPLICATE, param.span, message);
                self.report(found.with_secondary(earlier.span, "first declared here"));
            }
        }
        self.declared(&action.name, &params, body, action.span)
    }

    /// A primitive action in the list of a table.
    fn primitive_as_action(
        &mut self,
        name: &'a Name,
        meter: Option<&'a p14::Meter>,
    ) -> Option<(Known, Declaration)> {
        let call = p14::ActionCall { name: name.clone(), args: Vec::new(), span: name.span };
        if !primitive::WITHOUT_ARGUMENTS.contains(&name.as_str()) {
            if primitive::PRIMITIVES.contains(&name.as_str()) {
                let message =
                    format!("primitive action `{name}` takes arguments that a table entry cannot give");
                self.error(codes::TABLE, name.span, message);
            } else {
                let known = self.model.actions.keys().copied().chain(primitive::WITHOUT_ARGUMENTS);
                model::unknown(&mut self.found, name, "action", known);
            }
            return None;
        }
        let mut body = self.colour(meter);
        self.simple_primitive(&call, &mut body);
        // It is one action, however often it is made: its place is where it is used first.
        let first = self.first_uses.entry(name.as_str()).or_insert(name);
        let (name, span) = (*first, first.span);
        Some(self.declared(name, &[], body, span))
    }

    /// Reads the colour of a direct meter into its result.
    fn colour(&mut self, meter: Option<&'a p14::Meter>) -> Vec<Stmt> {
        let mut body = Vec::new();
        let Some(meter) = meter else { return body };
        let Some(result) = &meter.result else { return body };
        let Some(reference) = self.field_ref(result, &Scope::Outside) else { return body };
        let Some(object) = self.meters.get(meter.name.as_str()).cloned() else { return body };
        let span = meter.span;
        let ty = self.tree.ty(reference.field.width, false, span);
        let colour = self.names.fresh("tmp");
        body.push(tree::variable(ty, &colour, None, span));
        let object = self.tree.var(object, span);
        let into = self.tree.var(colour.as_str(), span);
        body.push(self.tree.method(object, "read", vec![into], span));
        let value = self.tree.var(colour.as_str(), span);
        let value = crate::value::Value::Num { expr: value, width: reference.field.width, signed: false };
        self.set(&reference, value, &mut body);
        body
    }

    fn declared(
        &mut self,
        original: &Name,
        params: &[(Name, Number)],
        body: Vec<Stmt>,
        span: millrace_syntax::Span,
    ) -> (Known, Declaration) {
        let name = self.names.fresh(original.as_str());
        let parameters = params.iter().map(|(param, ty)| p16::Parameter {
            annotations: Vec::new(),
            direction: Direction::None,
            ty: self.tree.ty(ty.width, ty.signed, param.span),
            name: param.clone(),
            default: None,
            span: param.span,
        });
        let declaration = Declaration::Action(p16::Action {
            annotations: vec![tree::control_plane(original.as_str(), original.span)],
            params: parameters.collect(),
            name: tree::name(name.as_str(), original.span),
            body: tree::block(body, span),
            span,
        });
        (Known { name, params: params.iter().map(|(_, ty)| *ty).collect() }, declaration)
    }

    /// The statements of a compound action.
    fn body(&mut self, action: &'a p14::Action, scope: &Scope<'a, '_>, out: &mut Vec<Stmt>) {
        if self.stack.contains(&action.name.as_str()) || self.stack.len() > MAX_CALLS {
            let message = format!("action `{}` calls itself", action.name);
            self.error(codes::RECURSION, action.name.span, message);
            return;
        }
        self.stack.push(&action.name.text);
        for call in &action.body {
            if !self.count_statement(call.span) {
                break;
            }
            match self.model.actions.get(call.name.as_str()).copied() {
                Some(called) => {
                    if call.args.len() != called.params.len() {
                        let message = format!(
                            "action `{}` takes {} arguments, {} are given",
                            called.name,
                            called.params.len(),
                            call.args.len()
                        );
                        let found = millrace_syntax::Diagnostic::error(codes::ARGUMENTS, call.span, message);
                        self.report(found.with_secondary(called.name.span, "declared here"));
                        continue;
                    }
                    let given = called.params.iter().zip(&call.args);
                    let given = given.map(|(p, e)| (p.as_str(), Argument::Given(e, scope))).collect();
                    self.body(called, &Scope::Action(given), out);
                }
                None => self.primitive(call, scope, out),
            }
        }
        self.stack.pop();
    }

    /// What a parameter stands for in the end, with the scope that its names belong to.
    pub(crate) fn resolve<'s>(
        &self,
        e: &'a p14::Expr,
        scope: &'s Scope<'a, 's>,
    ) -> (&'a p14::Expr, &'s Scope<'a, 's>) {
        let (mut e, mut scope) = (e, scope);
        while let (ExprKind::Reference(reference), Scope::Action(params)) = (&e.kind, scope)
            && let Some(name) = reference.plain()
            && let Some(Argument::Given(given, outer)) = params.get(name.as_str())
        {
            (e, scope) = (given, outer);
        }
        (e, scope)
    }

    /// Translates the actions that no table uses, so that what is wrong in them is found.
    pub(crate) fn unused_actions(&mut self) {
        let applied = self.actions.keys().map(|(_, name, _)| name.as_str());
        let calls = self.model.actions.values().flat_map(|action| &action.body);
        let used: HashSet<&str> = applied.chain(calls.map(|call| call.name.as_str())).collect();
        let all = self.model.actions.values().copied();
        let unused: Vec<_> = all.filter(|action| !used.contains(action.name.as_str())).collect();
        self.checks_pipeline = false;
        for action in unused {
            self.table_action(&action.name, None);
        }
        self.checks_pipeline = true;
    }
}

/// Parameters as data of a table entry.
fn data<'a, 's>(
    action: &'a p14::Action,
    ty: impl Fn(&Name) -> Option<Number>,
) -> IndexMap<&'a str, Argument<'a, 's>> {
    action.params.iter().map(|p| (p.as_str(), Argument::Data(p.text.clone(), ty(p)))).collect()
}

impl Pipeline {
    /// The control's name.
    pub(crate) fn block(self) -> &'static str {
        match self {
            Pipeline::Ingress => "ingress",
            Pipeline::Egress => "egress",
        }
    }
}
