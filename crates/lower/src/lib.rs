//! From the typed program to the pipeline IR, and the architecture models.
//!
//! [`lower`] elaborates a program from its `main`: it instantiates every parser, control and extern, inlines every call
//! into the block of the architecture that runs it, flattens every structure into scalars and headers, and gives every
//! extern its meaning. What comes out passes [`millrace_pipeline::verify()`].
//!
//! # What it promises
//! - Evaluation order, copy-in and copy-out are those of the specification; where it leaves something open, the IR's
//!   rules apply (a fresh variable is 0, a field of an invalid header reads 0, ...).
//! - Every growth (inlining, flattening, unrolling) has a written limit ([`limits`]) and ends in a diagnostic, never in
//!   a panic.
//!
//! # What it never does
//! - It never looks at source text, and never at types again that the checker found right.
//! - Nothing but the modules of `arch` knows an architecture.

mod action;
mod arch;
mod chains;
mod code;
mod context;
mod entries;
mod fail;
mod homes;
pub mod limits;
mod names;
mod objects;
mod packet;
mod parser;
mod plugins;
mod several;
mod show;
mod sites;
mod storage;
mod survey;
mod table;
mod types;
mod value;

use millrace_pipeline as pipeline;
use millrace_sema::hir;
use millrace_syntax::{Diagnostic, Diagnostics, SourceMap, Span};

pub use arch::{check_port, set_drop_port};
pub use chains::{AskedChain, chains};

use arch::Architecture;
use context::Lowering;
use fail::{Lower, fail, internal};
use objects::Object;

/// Lowers a program that the checker found right. `name` is the name of the result, by custom the stem of the file.
///
/// # Errors
/// What this program asks for and the architecture or the limits do not give; a program without `main`, or with one of
/// a package that is not known.
pub fn lower(program: &hir::Program, name: &str) -> Result<pipeline::Program, Vec<Diagnostic>> {
    lower_from(program, name, None)
}

/// As [`lower`]; with the texts that the program comes from, the result says where it asks for packets to be dropped
/// ([`pipeline::Program::drop_sites`]).
///
/// # Errors
/// Those of [`lower`].
pub fn lower_from(
    program: &hir::Program,
    name: &str,
    sources: Option<&SourceMap>,
) -> Result<pipeline::Program, Vec<Diagnostic>> {
    // Inlining nests as deep as calls do in the source; the thread has the stack for the written limits.
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lower".into()).stack_size(limits::STACK_BYTES);
        match thread.spawn_scoped(scope, || lower_program(program, name, sources)) {
            Ok(handle) => match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Err(e) => fail(
                fail::code::LIMIT,
                Span::default(),
                format!("no thread with {} bytes of stack: {e}", limits::STACK_BYTES),
            ),
        }
    });
    result.map_err(|diagnostic| vec![*diagnostic])
}

/// Warnings of what a program that the checker found right may mean otherwise than its author thinks, by its architecture.
pub fn advice(program: &hir::Program) -> Diagnostics {
    let package = program.main.and_then(|main| match program.types.kind(program.instances[main].ty) {
        hir::TyKind::Package(package, _) => Some(&program.packages[*package].name),
        _ => None,
    });
    let mut found = chains::advice(program);
    if let Some(Architecture::V1Model(_)) = package.and_then(|name| Architecture::of_package(name)) {
        found.extend(arch::v1model_advice(program));
    }
    found
}

/// Warnings of what several workers of one switch mean for a program that the checker found right.
pub fn advice_for_workers(program: &hir::Program) -> Diagnostics {
    several::advice(program)
}

/// Whether a finding of [`lower`] says that the program is not for a switch of ours (no `main`, a package or an extern of
/// another architecture), not that it is wrong. A library of parsers and controls has no `main` either.
pub fn is_foreign(finding: &Diagnostic) -> bool {
    matches!(finding.code, fail::code::FOREIGN | fail::code::NO_MAIN)
}

fn lower_program(hir: &hir::Program, name: &str, sources: Option<&SourceMap>) -> Lower<pipeline::Program> {
    let Some(main) = hir.main else {
        let diagnostic = Diagnostic::error(fail::code::NO_MAIN, Span::default(), "the program has no `main`")
            .with_help("instantiate the package of the architecture: `V1Switch(...) main;`");
        return Err(Box::new(diagnostic));
    };
    let declared = &hir.instances[main];
    let hir::TyKind::Package(package, _) = hir.types.kind(declared.ty) else {
        return fail(fail::code::FOREIGN, declared.span, "`main` must be a package");
    };
    let package = &hir.packages[*package];
    let Some(arch) = Architecture::of_package(&package.name) else {
        let message = format!("the package `{}` is not one of an architecture that is known", package.name);
        let diagnostic = Diagnostic::error(fail::code::FOREIGN, declared.span, message)
            .with_help(format!("known are {}", Architecture::PACKAGES));
        return Err(Box::new(diagnostic));
    };
    let mut cx = Lowering::new(hir, name, arch, sources);
    cx.elaborate_globals()?;
    let object = cx.instance(main, None)?;
    let arguments = match cx.objects.get(object) {
        Object::Package(arguments) => arguments.clone(),
        _ => return internal(declared.span, "`main` is no package"),
    };
    cx.assemble(declared, &arguments)?;
    let asked = chains::chains(hir)?;
    let mut program = cx.ir.finish();
    program.chains = asked.into_iter().map(|asked| asked.chain).collect();
    homes::settle(&mut program);
    pipeline::passes::make_atomic(&mut program);
    cx.sites.finish(&mut program);
    Ok(program)
}
