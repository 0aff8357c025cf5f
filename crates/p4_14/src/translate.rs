//! The whole of a translation: what is shared while a program is translated, and how the pieces are put together.

use indexmap::{IndexMap, IndexSet};
use millrace_syntax::ast::{
    self as p16, Annotation, Declaration, Expr, Field, Name, Stmt, StructKind, Text, TypeKind,
};
use millrace_syntax::p4_14::ast as p14;
use millrace_syntax::{Diagnostic, Diagnostics, Span};
use std::collections::{HashMap, HashSet};

use crate::Translated;
use crate::actions::Known;
use crate::codes;
use crate::model::{Kind, Model};
use crate::names::{BLOCKS, Names, PACKET};
use crate::tree::{self, Tree};
use crate::value::Number;

/// The most statements that a program may become when actions and control functions are put where they are called.
const MAX_STATEMENTS: usize = 200_000;

/// Half of v1model's pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pipeline {
    Ingress,
    Egress,
}

/// A translation.
pub(crate) struct Translator<'a> {
    pub(crate) model: Model<'a>,
    pub(crate) tree: Tree,
    pub(crate) found: Diagnostics,
    /// Findings are not kept: the same is translated a second time.
    pub(crate) muted: u32,
    pub(crate) names: Names,
    /// The parameters of blocks: headers, metadata, the architecture's metadata.
    pub(crate) headers: Text,
    pub(crate) meta: Text,
    pub(crate) standard: Text,
    /// Metadata that the program does not see: names and widths, and the lists that keep them.
    hidden: IndexMap<Text, (u32, IndexSet<u32>)>,
    hidden_name: Text,
    /// Types of the parameters of the action whose body is looked at for them.
    pub(crate) inferred: Option<HashMap<Text, Number>>,
    /// The numbers of field lists that clones, resubmission and recirculation keep.
    pub(crate) lists: IndexMap<&'a str, u32>,
    /// By the name of an object: its name in the tree.
    pub(crate) counters: HashMap<&'a str, String>,
    pub(crate) meters: HashMap<&'a str, String>,
    pub(crate) registers: HashMap<&'a str, (String, Number)>,
    pub(crate) profiles: HashMap<&'a str, String>,
    /// Primitive actions in the lists of tables, by where each is used first.
    pub(crate) first_uses: HashMap<&'a str, &'a Name>,
    /// Structures of digests by field list.
    pub(crate) digests: HashMap<&'a str, String>,
    /// Actions in the tree.
    pub(crate) actions: HashMap<(Pipeline, String, Option<String>), Known>,
    /// Actions being put where they are called, and control functions.
    pub(crate) stack: Vec<&'a str>,
    /// The half that is being translated.
    pub(crate) pipeline: Pipeline,
    /// What is translated is run in that half.
    pub(crate) checks_pipeline: bool,
    /// Tables in the tree.
    pub(crate) tables: HashMap<&'a str, crate::table::Known>,
    /// Declarations of the top level before the blocks.
    pub(crate) top: Vec<Declaration>,
    /// Declarations before the tables of the half that is being translated.
    pub(crate) locals: Vec<Declaration>,
    /// Errors of parsers that the program raises.
    pub(crate) errors: IndexSet<Text>,
    /// Headers in the order in which they are put together.
    pub(crate) order: Vec<Text>,
    statements: usize,
    /// How many branches of `else if` there are around what is being translated.
    pub(crate) branches: usize,
    /// How many expressions are being translated inside each other.
    pub(crate) height: usize,
    /// The fields of metadata that each numbered list keeps: instance and field.
    pub(crate) kept_fields: Vec<(u32, HashSet<(Text, Text)>)>,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(program: &'a p14::Program, library: &p16::Program) -> Translator<'a> {
        let mut found = Diagnostics::new();
        let model = Model::new(program, library, &mut found);
        let mut names = Names::new(library, program);
        let headers = names.fresh("hdr").into();
        let meta = names.fresh("meta").into();
        let standard = names.fresh("standard_metadata").into();
        let hidden_name = (0u32..)
            .map(|n| if n == 0 { "p4_14".to_owned() } else { format!("p4_14_{n}") })
            .find(|name| !model.instances.contains_key(name.as_str()))
            .unwrap_or_default();
        Translator {
            model,
            tree: Tree { next: library.expr_count },
            found,
            muted: 0,
            names,
            headers,
            meta,
            standard,
            hidden: IndexMap::new(),
            hidden_name: hidden_name.into(),
            inferred: None,
            lists: IndexMap::new(),
            counters: HashMap::new(),
            meters: HashMap::new(),
            registers: HashMap::new(),
            profiles: HashMap::new(),
            first_uses: HashMap::new(),
            digests: HashMap::new(),
            actions: HashMap::new(),
            stack: Vec::new(),
            pipeline: Pipeline::Ingress,
            checks_pipeline: true,
            tables: HashMap::new(),
            top: Vec::new(),
            locals: Vec::new(),
            errors: IndexSet::new(),
            order: Vec::new(),
            statements: 0,
            branches: 0,
            height: 0,
            kept_fields: Vec::new(),
        }
    }

    // ---- Findings ----

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if self.muted == 0 {
            self.found.push(diagnostic);
        }
    }

    pub(crate) fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    pub(crate) fn type_error(&mut self, span: Span, message: &str) {
        self.error(codes::TYPE, span, message);
    }

    pub(crate) fn warn(&mut self, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::warning(codes::SUSPICIOUS, span, message));
    }

    /// Counts a statement made; false when there are too many.
    pub(crate) fn count_statement(&mut self, span: Span) -> bool {
        self.statements += 1;
        if self.statements == MAX_STATEMENTS {
            let message = format!(
                "the program becomes more than {MAX_STATEMENTS} statements when what it calls is put in place"
            );
            // Also where the same is looked at a second time: it is not got to again.
            self.found.push(Diagnostic::error(codes::LIMIT, span, message));
        }
        self.statements < MAX_STATEMENTS
    }

    /// Notes what a parameter of the action at hand is used as: the widest use counts.
    pub(crate) fn infer(&mut self, parameter: &str, ty: Number) {
        let Some(map) = &mut self.inferred else { return };
        match map.get_mut(parameter) {
            Some(known) => {
                known.width = known.width.max(ty.width);
                known.signed &= ty.signed;
            }
            None => drop(map.insert(parameter.into(), ty)),
        }
    }

    /// Metadata that the program does not declare: the path to it.
    pub(crate) fn hidden(&mut self, name: &str, width: u32) -> Vec<Text> {
        self.hidden.entry(name.into()).or_insert((width, IndexSet::new()));
        vec![self.meta.clone(), self.hidden_name.clone(), name.into()]
    }

    /// The same, as an expression.
    pub(crate) fn hidden_expr(&mut self, name: &str, width: u32, span: Span) -> Expr {
        let path = self.hidden(name, width);
        let path: Vec<&str> = path.iter().map(|p| &**p).collect();
        self.tree.path(&path, span)
    }

    // ---- The program ----

    /// Translates everything, and puts it after the library.
    pub(crate) fn finish(mut self, library: p16::Program) -> Translated {
        self.check_field_lists();
        match self.deparser_order() {
            Ok(order) => self.order = order,
            Err(state) => {
                let limit = crate::deparser::MAX_WORK;
                let message = format!("the parse graph has more than {limit} paths between headers");
                self.error(codes::LIMIT, state.name.span, message);
            }
        }
        self.declare_objects();
        self.declare_lists();
        let roots = self.roots();
        let parser = self.parser(&roots);
        let (verify, compute) = self.checksums();
        let ingress = self.control(Pipeline::Ingress, &roots);
        let egress = self.control(Pipeline::Egress, &roots);
        let deparser = self.deparser();
        let types = self.types();
        let mut declarations = library.declarations;
        if !self.errors.is_empty() {
            let names = self.errors.iter().map(|e| tree::name(e.clone(), Span::default())).collect();
            let list = p16::NameList { annotations: Vec::new(), names, span: Span::default() };
            declarations.push(Declaration::Errors(list));
        }
        declarations.extend(types);
        declarations.append(&mut self.top);
        declarations.extend([parser, verify, ingress, egress, compute, deparser]);
        declarations.push(self.main());
        let program = p16::Program {
            declarations,
            expr_count: self.tree.next,
            // What is put where it is called was not measured.
            height: millrace_syntax::MAX_LEVELS,
        };
        // Actions are looked at twice, and some of what they use more often.
        let mut seen = HashSet::new();
        let once = self.found.into_iter().filter(|d| seen.insert((d.code, d.primary, d.message.clone())));
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(once);
        Translated { program, diagnostics }
    }

    /// `V1Switch(...) main;`
    fn main(&mut self) -> Declaration {
        let span = Span::default();
        let args = BLOCKS.map(|block| {
            let callee = self.tree.global(block, span);
            tree::argument(self.tree.call(callee, Vec::new(), Vec::new(), span))
        });
        Declaration::Instantiation(p16::Instantiation {
            annotations: Vec::new(),
            ty: tree::named_type("V1Switch", span),
            args: args.into(),
            name: tree::name("main", span),
            initializer: None,
            span,
        })
    }

    /// A parameter of a block.
    fn parameter(&self, direction: p16::Direction, ty: &str, name: &str) -> p16::Parameter {
        let span = Span::default();
        let ty = tree::named_type(ty, span);
        p16::Parameter {
            annotations: Vec::new(),
            direction,
            ty,
            name: tree::name(name, span),
            default: None,
            span,
        }
    }

    /// A block's name and parameters.
    pub(crate) fn block_header(&self, name: &str, span: Span) -> p16::BlockType {
        use p16::Direction::{In, InOut, None as Plain, Out};
        let headers = |d| self.parameter(d, HEADERS, &self.headers);
        let meta = || self.parameter(InOut, METADATA, &self.meta);
        let standard = || self.parameter(InOut, "standard_metadata_t", &self.standard);
        let params = match name {
            "ParserImpl" => {
                vec![self.parameter(Plain, "packet_in", PACKET), headers(Out), meta(), standard()]
            }
            "DeparserImpl" => vec![self.parameter(Plain, "packet_out", PACKET), headers(In)],
            "verifyChecksum" | "computeChecksum" => vec![headers(InOut), meta()],
            _ => vec![headers(InOut), meta(), standard()],
        };
        p16::BlockType {
            annotations: Vec::new(),
            name: tree::name(name, span),
            type_params: Vec::new(),
            params,
            span,
        }
    }

    /// A control with its declarations and its body.
    pub(crate) fn control_block(
        &self,
        name: &str,
        locals: Vec<Declaration>,
        body: Vec<Stmt>,
        span: Span,
    ) -> Declaration {
        Declaration::Control(p16::Control {
            header: self.block_header(name, span),
            constructor_params: Vec::new(),
            locals,
            apply: tree::block(body, span),
            span,
        })
    }

    // ---- Types ----

    /// The types of headers and metadata, and the two structures of all instances.
    fn types(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        let mut header_types: HashMap<&str, String> = HashMap::new();
        let (mut headers, mut metadata) = (Vec::new(), Vec::new());
        let instances: Vec<_> = self.model.instances.values().cloned().collect();
        for instance in &instances {
            let span = instance.span;
            match instance.kind {
                Kind::Standard => {}
                Kind::Header => {
                    let ty = match header_types.get(instance.ty) {
                        Some(ty) => ty.clone(),
                        None => {
                            let name = self.names.fresh(instance.ty);
                            let declared = self.header_type(instance.ty, &name);
                            declarations.extend(declared);
                            header_types.insert(instance.ty, name.clone());
                            name
                        }
                    };
                    let mut ty = tree::named_type(&ty, span);
                    if let Some(size) = instance.size {
                        let size = self.tree.int(size, span);
                        ty = p16::Type { kind: TypeKind::Stack(Box::new(ty), Box::new(size)), span };
                    }
                    headers.push(member(ty, &instance.name, Vec::new(), span));
                }
                Kind::Metadata => {
                    let name = self.names.fresh(&format!("{}_{}", instance.ty, instance.name));
                    let fields = self.metadata_fields(instance);
                    declarations.push(structure(StructKind::Struct, &name, fields, span));
                    metadata.push(member(tree::named_type(&name, span), &instance.name, Vec::new(), span));
                }
            }
        }
        if !self.hidden.is_empty() {
            let span = Span::default();
            let name = self.names.fresh("p4_14_metadata");
            let hidden = std::mem::take(&mut self.hidden);
            let mut fields = Vec::new();
            for (field, (width, lists)) in hidden {
                let ty = self.tree.ty(width, false, span);
                let lists: Vec<u32> = lists.into_iter().collect();
                fields.push(member(ty, &field, keep(&lists, span), span));
            }
            declarations.push(structure(StructKind::Struct, &name, fields, span));
            let hidden_name = self.hidden_name.clone();
            metadata.push(member(tree::named_type(&name, span), &hidden_name, Vec::new(), span));
        }
        declarations.push(structure(StructKind::Struct, HEADERS, headers, Span::default()));
        declarations.push(structure(StructKind::Struct, METADATA, metadata, Span::default()));
        declarations
    }

    fn header_type(&mut self, ty: &str, name: &str) -> Option<Declaration> {
        let (declared, layout) = self.model.types.get(ty)?;
        let (span, fields) = (declared.span, layout.fields.clone());
        let fields = fields.iter().map(|f| self.field(f, Vec::new())).collect();
        Some(structure(StructKind::Header, name, fields, span))
    }

    fn field(&mut self, f: &crate::model::Field, annotations: Vec<Annotation>) -> Field {
        let ty = if f.varies {
            let width = self.tree.int(f.width, f.span);
            p16::Type { kind: TypeKind::Varbit(Box::new(width)), span: f.span }
        } else {
            self.tree.ty(f.width, f.signed, f.span)
        };
        member(ty, &f.name, annotations, f.span)
    }

    /// The fields of a metadata instance that the architecture does not keep, with the lists that keep them.
    fn metadata_fields(&mut self, instance: &crate::model::Instance<'_>) -> Vec<Field> {
        let fields = self.model.layout(instance).fields.clone();
        let mut made = Vec::new();
        for field in &fields {
            let full = format!("{}.{}", instance.name, field.name);
            if self.model.aliases.contains_key(&full) {
                continue;
            }
            let lists = self.lists_of(&instance.name, &field.name);
            if let Some((_, kept)) = self.hidden.get_mut(initial_flag(&instance.name, &field.name).as_str()) {
                kept.extend(lists.iter().copied());
            }
            let mut annotations = keep(&lists, field.span);
            if full == PORT_BITMAP {
                annotations.push(tree::numbers_annotation("egress_ports", &[], field.span));
            }
            made.push(self.field(field, annotations));
        }
        made
    }
}

/// The name of the hidden bit that says that a field has its initial value, or a later one.
pub(crate) fn initial_flag(instance: &str, field: &str) -> String {
    format!("{instance}_{field}_set")
}

/// The set of ports that get a copy of a packet, which the architecture has as a field of the program's own.
const PORT_BITMAP: &str = "intrinsic_metadata.egress_port_bitmap";

/// The structures of all headers and all metadata.
const HEADERS: &str = "headers";
const METADATA: &str = "metadata";

fn keep(lists: &[u32], span: Span) -> Vec<Annotation> {
    if lists.is_empty() { Vec::new() } else { vec![tree::numbers_annotation("field_list", lists, span)] }
}

pub(crate) fn member(ty: p16::Type, name: &str, annotations: Vec<Annotation>, span: Span) -> Field {
    Field { annotations, ty, name: Name { text: name.into(), span }, span }
}

pub(crate) fn structure(kind: StructKind, name: &str, fields: Vec<Field>, span: Span) -> Declaration {
    Declaration::Struct(p16::StructType {
        annotations: Vec::new(),
        kind,
        name: tree::name(name, span),
        type_params: Vec::new(),
        fields,
        span,
    })
}
