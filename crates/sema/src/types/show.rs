//! Types as people write them.

use super::infer::TypeVar;
use crate::check::Checker;
use crate::hir::{Ty, TyKind};

impl Checker<'_> {
    /// The type as it would be written in a program.
    pub(crate) fn show(&self, ty: Ty) -> String {
        self.show_nested(ty, 0)
    }

    fn show_nested(&self, ty: Ty, depth: u32) -> String {
        if depth > 8 {
            return "...".into();
        }
        let list = |parts: &[Ty]| {
            let shown: Vec<String> = parts.iter().map(|&t| self.show_nested(t, depth + 1)).collect();
            shown.join(", ")
        };
        let applied = |name: &str, args: &[Ty]| match args {
            [] => name.to_string(),
            _ => format!("{name}<{}>", list(args)),
        };
        match self.kind(ty) {
            TyKind::Void => "void".into(),
            TyKind::Bool => "bool".into(),
            TyKind::String => "string".into(),
            TyKind::Error => "error".into(),
            TyKind::MatchKind => "match_kind".into(),
            TyKind::Int => "int".into(),
            TyKind::Bits(w) => format!("bit<{w}>"),
            TyKind::SignedBits(w) => format!("int<{w}>"),
            TyKind::Varbit(w) => format!("varbit<{w}>"),
            TyKind::Tuple(parts) => format!("tuple<{}>", list(&parts)),
            TyKind::List(t) => format!("list<{}>", self.show_nested(t, depth + 1)),
            TyKind::Stack(t, n) => format!("{}[{n}]", self.show_nested(t, depth + 1)),
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[id];
                if s.name.is_empty() {
                    let fields: Vec<String> = s
                        .fields
                        .iter()
                        .map(|f| format!("{} = {}", f.name, self.show_nested(f.ty, depth + 1)))
                        .collect();
                    return format!("{{ {} }}", fields.join(", "));
                }
                applied(&s.name, &s.args)
            }
            TyKind::Enum(id) => self.hir.types.enums[id].name.clone(),
            TyKind::New(id) => self.hir.types.new_types[id].name.clone(),
            TyKind::Set(t) => format!("set<{}>", self.show_nested(t, depth + 1)),
            TyKind::Extern(id, args) => applied(&self.hir.externs[id].name, &args),
            TyKind::Parser(id) => format!("parser {}", self.hir.parsers[id].name),
            TyKind::Control(id) => format!("control {}", self.hir.controls[id].name),
            TyKind::Package(id, args) => applied(&self.hir.packages[id].name, &args),
            TyKind::ApplyResult(_) => "the result of applying a table".into(),
            TyKind::ActionRun(_) => "action_run".into(),
            TyKind::Table(id) => format!("table {}", self.hir.tables[id].name),
            TyKind::ValueSet(t) => format!("value_set<{}>", self.show_nested(t, depth + 1)),
            TyKind::BlockType(id, args) => applied(&self.hir.block_types[id].name, &args),
            TyKind::Var(var) => match self.infer.get(var) {
                TypeVar::Rigid(name) | TypeVar::Free { name, .. } | TypeVar::Bound { name, .. } => {
                    name.clone()
                }
            },
            TyKind::Unknown => "_".into(),
        }
    }
}
