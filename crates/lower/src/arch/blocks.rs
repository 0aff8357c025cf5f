//! Putting the blocks of a package together: storage that they share, and a body for each.

use millrace_pipeline::{BodyId, BodyKind, Home, Intrinsic, SlotId};
use millrace_sema::hir::{self, Ty, VarId};

use crate::code::Code;
use crate::context::Lowering;
use crate::fail::{Lower, code, fail, internal};
use crate::objects::{Binding, BlockType, CtorValue, Object, ObjectId};
use crate::storage::Storage;
use crate::types;

/// Storage with its type, so that its fields have names.
#[derive(Clone)]
pub(super) struct Typed {
    pub(super) storage: Storage,
    pub(super) ty: Ty,
}

impl Typed {
    /// The field with that name, if the type has it.
    pub(super) fn field(&self, cx: &Lowering<'_>, name: &str) -> Option<Storage> {
        let at = types::members(&cx.hir.types, self.ty).iter().position(|(n, _)| n == name)?;
        self.storage.member(at).cloned()
    }

    /// The slot of a field that is a scalar.
    pub(super) fn slot(&self, cx: &Lowering<'_>, name: &str) -> Option<SlotId> {
        match self.field(cx, name)? {
            Storage::Scalar(slot) => Some(slot),
            _ => None,
        }
    }

    /// What a parameter with this storage means.
    pub(super) fn binding(&self) -> Binding {
        Binding::Storage(self.storage.clone())
    }
}

/// The parsers and controls given to `main`, also those in packages within it; the rest of its arguments are externs
/// that stand for parts of the switch.
pub(super) fn blocks_of(
    cx: &Lowering<'_>,
    arguments: &[CtorValue],
    main: &hir::Instance,
) -> Lower<Vec<ObjectId>> {
    let mut blocks = Vec::new();
    for argument in arguments {
        let CtorValue::Object(object) = argument else {
            return fail(code::FOREIGN, main.span, "a package takes parsers, controls and packages");
        };
        match cx.objects.get(*object) {
            Object::Block(_) => blocks.push(*object),
            Object::Package(arguments) => blocks.extend(blocks_of(cx, arguments, main)?),
            Object::Extern(..) | Object::ValueSet(..) => {}
        }
    }
    Ok(blocks)
}

/// Names the errors that parsers signal by themselves.
pub(super) fn declare_errors(cx: &mut Lowering<'_>) {
    for error in [
        "PacketTooShort",
        "NoMatch",
        "StackOutOfBounds",
        "HeaderTooShort",
        "ParserTimeout",
        "ParserInvalidArgument",
    ] {
        cx.ir.error(error);
    }
}

/// The parameters of a parser or control.
pub(super) fn params<'a>(cx: &Lowering<'a>, object: ObjectId) -> &'a [VarId] {
    match cx.objects.block(object).map(|b| b.ty) {
        Some(BlockType::Parser(id)) => &cx.hir.parsers[id].params,
        Some(BlockType::Control(id)) => &cx.hir.controls[id].params,
        None => &[],
    }
}

/// New storage of metadata for a parameter of a block, by its own name after a prefix.
pub(super) fn storage(
    cx: &mut Lowering<'_>,
    object: ObjectId,
    index: usize,
    prefix: &str,
    main: &hir::Instance,
) -> Lower<Typed> {
    let Some(&var) = params(cx, object).get(index) else {
        return wrong_parameters(cx, object, main);
    };
    let declared = &cx.hir.vars[var];
    let name = format!("{prefix}{}", declared.name);
    let storage = cx.allocate(declared.ty, &name, Home::Metadata, declared.span)?;
    Ok(Typed { storage, ty: declared.ty })
}

/// A block of the package with what its parameters are bound to.
pub(super) struct BoundBlock {
    pub(super) object: ObjectId,
    pub(super) kind: BodyKind,
    pub(super) arguments: Vec<Binding>,
}

impl BoundBlock {
    /// A parser.
    pub(super) fn parser(object: ObjectId, arguments: Vec<Binding>) -> BoundBlock {
        BoundBlock { object, kind: BodyKind::Parser, arguments }
    }

    /// A control.
    pub(super) fn control(object: ObjectId, arguments: Vec<Binding>) -> BoundBlock {
        BoundBlock { object, kind: BodyKind::Control, arguments }
    }

    /// A deparser.
    pub(super) fn deparser(object: ObjectId, arguments: Vec<Binding>) -> BoundBlock {
        BoundBlock { object, kind: BodyKind::Deparser, arguments }
    }

    /// The body of the block.
    pub(super) fn lower(self, cx: &mut Lowering<'_>, main: &hir::Instance) -> Lower<BodyId> {
        self.lower_between(cx, main, |_| Ok(()), |_| Ok(()))
    }

    /// The body of the block between code of the architecture. `exit` in a control goes to the code after it, what a
    /// parser rejects does not.
    pub(super) fn lower_between<'a>(
        self,
        cx: &mut Lowering<'a>,
        main: &hir::Instance,
        before: impl FnOnce(&mut Code<'_, 'a>) -> Lower<()>,
        after: impl FnOnce(&mut Code<'_, 'a>) -> Lower<()>,
    ) -> Lower<BodyId> {
        let BoundBlock { object, kind, arguments } = self;
        if kind == BodyKind::Parser {
            // Any parser can fail, and says why in this slot.
            cx.ir.intrinsic(Intrinsic::ParserError);
        }
        let Some(block) = cx.objects.block(object) else {
            return internal(main.span, "a block of the package is no parser or control");
        };
        let (ty, path) = (block.ty, block.path.clone());
        let params = params(cx, object);
        if params.len() != arguments.len() {
            return wrong_parameters(cx, object, main);
        }
        let bound = params.iter().copied().zip(arguments).collect();
        let span = span(cx, object, main);
        let (mut code, end) = Code::new(cx, &path, kind, Some(object), span);
        before(&mut code)?;
        code.run_block(object, ty, bound)?;
        code.body.goto(end);
        code.body.switch_to(end);
        code.note_state(None);
        after(&mut code)?;
        code.body.end();
        code.finish()
    }
}

/// Packets that nothing asked to be dropped were not sent by that block.
pub(super) fn drop_by_default(cx: &mut Lowering<'_>, block: ObjectId, request: &str) {
    if let Some(found) = cx.objects.block(block) {
        let (ty, path) = (found.ty, found.path.clone());
        let span = match ty {
            BlockType::Parser(id) => cx.hir.parsers[id].span,
            BlockType::Control(id) => cx.hir.controls[id].span,
        };
        cx.sites.by_default(span, &path, request);
    }
}

/// Fails: the block does not fit its place in the package.
fn wrong_parameters<T>(cx: &Lowering<'_>, object: ObjectId, main: &hir::Instance) -> Lower<T> {
    let package = match cx.hir.types.kind(main.ty) {
        hir::TyKind::Package(id, _) => cx.hir.packages[*id].name.as_str(),
        _ => "",
    };
    let message = format!("the parameters of this block are not those of its role in `{package}`");
    fail(code::FOREIGN, span(cx, object, main), message)
}

fn span(cx: &Lowering<'_>, object: ObjectId, main: &hir::Instance) -> millrace_syntax::Span {
    match cx.objects.block(object).map(|b| b.ty) {
        Some(BlockType::Parser(id)) => cx.hir.parsers[id].span,
        Some(BlockType::Control(id)) => cx.hir.controls[id].span,
        None => main.span,
    }
}
