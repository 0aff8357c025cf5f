//! Plugins: extern functions that a program declares with `@plugin`, and actions that have one called when they run.
//!
//! `@plugin("NAME")` names it; `@plugin("NAME", rewrites, passes)` lets it change the payload, and has packets go on while it does
//! not answer. A value of more than 64 bits takes several words of a call, the most significant one first.

use millrace_pipeline::{BodyKind, Expr, Inst, Plugin, PluginId, SlotId, Type, limits};
use millrace_sema::hir::{self, Call, Direction, ExternFunctionId, TyKind};
use millrace_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind};

use crate::code::Code;
use crate::fail::{Lower, code, fail};
use crate::names::is_called;
use crate::objects::Binding;
use crate::types::Shape;
use crate::value::Value;

/// The bits of a word.
const WORD: u32 = 64;

/// The annotation that says which plugin is meant.
pub(crate) fn annotation(annotations: &[Annotation]) -> Option<&Annotation> {
    annotations.iter().find(|annotation| is_called(annotation, "plugin"))
}

/// What an annotation says.
fn described(annotation: &Annotation) -> Lower<Plugin> {
    let wrong = || {
        let wanted = "`@plugin(\"NAME\")` is expected, and after the name, with commas, `rewrites` and `passes` if it may change \
                      payloads, and if packets go on while it does not answer";
        fail(code::PLACE, annotation.span, wanted)
    };
    let AnnotationBody::Tokens(tokens) = &annotation.body else { return wrong() };
    let mut parts = tokens.split(|token| &*token.text == ",");
    let name = match parts.next() {
        Some([token]) => match &token.kind {
            AnnotationTokenKind::String(name) => name.to_string(),
            _ => return wrong(),
        },
        _ => return wrong(),
    };
    let mut plugin = Plugin { name, rewrites: false, passes: false };
    for part in parts {
        match part {
            [token] if &*token.text == "rewrites" => plugin.rewrites = true,
            [token] if &*token.text == "passes" => plugin.passes = true,
            _ => return wrong(),
        }
    }
    Ok(plugin)
}

impl<'a> Code<'_, 'a> {
    /// A call of an extern function of the program that stands for a plugin; none when it is another function.
    pub(crate) fn call_plugin(&mut self, function: ExternFunctionId, call: &'a Call) -> Lower<Option<Value>> {
        let hir = self.cx.hir;
        let declared = &hir.extern_functions[function];
        let Some(annotation) = annotation(&declared.annotations) else { return Ok(None) };
        let plugin = self.plugin(annotation)?;
        let params = || declared.params.iter().map(|(_, direction)| *direction).zip(&call.args);
        let goes_in = |direction| !matches!(direction, Direction::Out);
        let given = params().filter(|(direction, _)| goes_in(*direction));
        let given: Vec<&'a hir::Expr> = given.filter_map(|(_, arg)| arg.value.as_ref()).collect();
        let values = self.eval_all(given.iter().copied())?;
        let mut words = Vec::new();
        for (value, expr) in values.into_iter().zip(given) {
            self.check_type(expr.ty, expr.span)?;
            let scalar = self.as_scalar(value, expr)?;
            words.extend(self.words(scalar));
        }
        let comes_out = |direction| matches!(direction, Direction::Out | Direction::InOut);
        let mut targets = Vec::new();
        for (_, arg) in params().filter(|(direction, _)| comes_out(*direction)) {
            if let Some(expr) = &arg.value {
                self.check_type(expr.ty, expr.span)?;
                targets.push((self.access(expr)?, expr.ty));
            }
        }
        let returns = !matches!(hir.types.kind(call.ty), TyKind::Void);
        if returns {
            self.check_type(call.ty, call.span)?;
        }
        let types: Vec<hir::Ty> =
            returns.then_some(call.ty).into_iter().chain(targets.iter().map(|(_, ty)| *ty)).collect();
        let mut results = self.emit_call(plugin, words, &types, call)?.into_iter();
        let result = if returns { results.next().map_or(Value::Unit, Value::Scalar) } else { Value::Unit };
        for ((target, _), result) in targets.into_iter().zip(results) {
            self.store(&target, Value::Scalar(result))?;
        }
        Ok(Some(result))
    }

    /// The call that an annotated action begins with: its parameters are the arguments.
    pub(crate) fn begin_action(&mut self, action: &'a hir::Action) -> Lower<()> {
        let Some(annotation) = annotation(&action.annotations) else { return Ok(()) };
        let plugin = self.plugin(annotation)?;
        let mut words = Vec::new();
        for param in &action.params {
            let value = match self.binding(*param) {
                Some(Binding::Storage(storage)) => Value::read(storage),
                Some(Binding::Value(value)) => value.clone(),
                _ => continue,
            };
            let scalars = value.scalars();
            if scalars.iter().any(|scalar| matches!(self.type_of(scalar), Type::Varbit(_))) {
                return fail(code::PLACE, annotation.span, "a plugin takes numbers and truth values");
            }
            words.extend(scalars.into_iter().flat_map(|scalar| self.words(scalar)));
        }
        self.check_words(words.len(), annotation.span)?;
        self.push_call(plugin, words, 0);
        Ok(())
    }

    /// Whether values of a type can go to a plugin and come from it.
    fn check_type(&self, ty: hir::Ty, span: millrace_syntax::Span) -> Lower<()> {
        match self.cx.shape(ty) {
            Shape::Scalar(Type::Bits(_) | Type::Bool) => Ok(()),
            _ => fail(code::PLACE, span, "a plugin takes and gives numbers and truth values"),
        }
    }

    fn check_words(&self, words: usize, span: millrace_syntax::Span) -> Lower<()> {
        let most = limits::MAX_PLUGIN_WORDS;
        if words > most {
            let message = format!(
                "the call takes {words} words of 64 bits, and a plugin takes and gives {most} at most"
            );
            return fail(code::LIMIT, span, message);
        }
        Ok(())
    }

    /// The plugin of an annotation.
    fn plugin(&mut self, annotation: &Annotation) -> Lower<PluginId> {
        let wanted = described(annotation)?;
        if !matches!(self.body.kind(), BodyKind::Control | BodyKind::Action) {
            return fail(code::PLACE, self.span, "plugins can be called in controls and actions only");
        }
        let plugins = &mut self.cx.ir.program_mut().plugins;
        match plugins.iter().find(|(_, plugin)| plugin.name == wanted.name) {
            Some((id, plugin)) if *plugin == wanted => Ok(id),
            Some(_) => {
                let message = format!("plugin `{}` is annotated in two manners", wanted.name);
                fail(code::PLACE, annotation.span, message)
            }
            None if plugins.len() >= limits::MAX_PLUGINS => {
                let message = format!("a program calls at most {} plugins", limits::MAX_PLUGINS);
                fail(code::LIMIT, annotation.span, message)
            }
            None => Ok(plugins.push(wanted)),
        }
    }

    /// A scalar as words, the most significant one first.
    fn words(&mut self, scalar: Expr) -> Vec<Expr> {
        let width = match self.type_of(&scalar) {
            Type::Bits(width) => width,
            Type::Bool => return vec![Expr::BoolToBits(Box::new(scalar))],
            Type::Varbit(_) => return Vec::new(),
        };
        if width <= WORD {
            return vec![scalar];
        }
        let scalar = self.simple(scalar);
        let lows = (0..width).step_by(WORD as usize).collect::<Vec<_>>().into_iter().rev();
        lows.map(|low| Expr::Slice(Box::new(scalar.clone()), (low + WORD - 1).min(width - 1), low)).collect()
    }

    /// Calls the plugin, drops the packet if it says so, and gives results of these types.
    fn emit_call(
        &mut self,
        plugin: PluginId,
        words: Vec<Expr>,
        types: &[hir::Ty],
        call: &Call,
    ) -> Lower<Vec<Expr>> {
        let scalar = |ty: &hir::Ty| match self.cx.shape(*ty) {
            Shape::Scalar(scalar) => scalar,
            _ => Type::Bits(self.width(*ty)),
        };
        let types: Vec<Type> = types.iter().map(scalar).collect();
        let count = |ty: &Type| ty.fixed_bits().div_ceil(WORD) as usize;
        let results: usize = types.iter().map(count).sum();
        self.check_words(words.len().max(results), call.span)?;
        let mut read = self.push_call(plugin, words, results).into_iter();
        let mut values = Vec::new();
        for ty in types {
            let words = read.by_ref().take(count(&ty)).map(Expr::Read);
            let all = words.reduce(|high, low| Expr::Concat(Box::new(high), Box::new(low)));
            let Some(all) = all else { continue };
            values.push(match ty {
                Type::Bool => all.ne(Expr::bits(WORD, 0)),
                ty => all.zext_to(ty.fixed_bits(), self.cx.ir.program()),
            });
        }
        Ok(values)
    }

    /// Calls the plugin and drops the packet if it says so; gives the slots of the results.
    fn push_call(&mut self, plugin: PluginId, args: Vec<Expr>, results: usize) -> Vec<SlotId> {
        let dst = self.temp(Type::Bits(1));
        self.push(Inst::Call { dst, plugin, args, results: results as u32 });
        let mut slots = Vec::new();
        for index in 0..results as u32 {
            let dst = self.temp(Type::Bits(WORD));
            self.push(Inst::CallResult { dst, index });
            slots.push(dst);
        }
        self.push(Inst::Stop { cond: Expr::Read(dst).ne(Expr::bits(1, 0)) });
        slots
    }
}
