//! Which types may be part of which (specification, "Type nesting rules").

use crate::check::Checker;
use crate::codes;
use crate::hir::{StructKind, Ty, TyKind};
use millrace_syntax::{Diagnostic, Span};

/// What a type is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// A header.
    Header,
    /// A header union.
    Union,
    /// A struct.
    Struct,
    /// A tuple.
    Tuple,
    /// A list.
    List,
    /// An array or header stack.
    Array,
    /// `typedef`.
    Typedef,
}

impl Container {
    fn noun(self) -> &'static str {
        match self {
            Self::Header => "a member of a header",
            Self::Union => "a member of a header union",
            Self::Struct => "a member of a struct",
            Self::Tuple => "a member of a tuple",
            Self::List => "the element of a list",
            Self::Array => "the element of an array",
            Self::Typedef => "renamed with `typedef`",
        }
    }

    fn holds(self) -> &'static str {
        match self {
            Self::Header => {
                "a header holds `bit`, `int<W>`, `varbit`, `bool`, enumerations with an underlying type, and structs of these"
            }
            Self::Union => "a header union holds headers",
            Self::Struct => "a struct holds anything that has a value at run time",
            Self::Tuple | Self::List => "it holds values, no `void` and no parsers, controls or externs",
            Self::Array => "an array holds anything that has a value at run time, or externs",
            Self::Typedef => "`typedef` renames types of values, parsers, controls and externs",
        }
    }
}

impl Checker<'_> {
    /// Reports a type that may not be part of another; false if it may not.
    pub(crate) fn check_nesting(&mut self, container: Container, ty: Ty, span: Span) -> bool {
        if !self.may_nest(container, ty) {
            let shown = self.show(ty);
            let message = format!("`{shown}` cannot be {}", container.noun());
            let mut found = Diagnostic::error(codes::NESTING, span, message).with_help(container.holds());
            if let Some(used) = self.here.instantiated.filter(|used| *used != span) {
                found = found.with_secondary(used, "with the type arguments that are given here");
            }
            self.report(found);
            return false;
        }
        true
    }

    fn may_nest(&self, container: Container, ty: Ty) -> bool {
        use Container::*;
        match self.kind(ty) {
            TyKind::Unknown | TyKind::Var(_) => true,
            TyKind::Bits(_) | TyKind::SignedBits(_) | TyKind::Bool => container != Union,
            TyKind::Varbit(_) => container != Union,
            TyKind::Int => matches!(container, List | Typedef | Tuple),
            TyKind::Void => false,
            TyKind::String => matches!(container, List | Tuple | Struct),
            TyKind::MatchKind => matches!(container, List | Tuple),
            TyKind::Error => !matches!(container, Header | Union),
            TyKind::Enum(id) => match container {
                Header => self.hir.types.enums[id].repr.is_some(),
                Union => false,
                _ => true,
            },
            TyKind::New(id) => {
                let base = self.hir.types.new_types[id].base;
                self.may_nest(container, base)
            }
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[id];
                match (s.kind, container) {
                    (StructKind::Header, Header) | (StructKind::Union, Header | Union) => false,
                    (StructKind::Header, _) | (StructKind::Union, _) => true,
                    (StructKind::Struct, Header) => {
                        s.fields.iter().all(|f| self.may_be_in_header_struct(f.ty))
                    }
                    (StructKind::Struct, Union) => false,
                    (StructKind::Struct, _) => true,
                }
            }
            TyKind::Stack(element, _) => {
                let is_header_stack = self.is_header(element);
                match container {
                    Header => !is_header_stack,
                    Union => false,
                    Array => !is_header_stack,
                    _ => true,
                }
            }
            TyKind::Tuple(_) => matches!(container, Struct | Tuple | List | Typedef),
            TyKind::List(_) => matches!(container, List | Typedef | Tuple),
            TyKind::Extern(..) => matches!(container, Array | Typedef),
            TyKind::Parser(_) | TyKind::Control(_) | TyKind::Package(..) | TyKind::BlockType(..) => {
                container == Typedef
            }
            TyKind::Set(_)
            | TyKind::ApplyResult(_)
            | TyKind::ActionRun(_)
            | TyKind::Table(_)
            | TyKind::ValueSet(_) => false,
        }
    }

    fn may_be_in_header_struct(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Varbit(_) => false,
            TyKind::Struct(id) if self.hir.types.structs[id].kind == StructKind::Struct => {
                self.hir.types.structs[id].fields.iter().all(|f| self.may_be_in_header_struct(f.ty))
            }
            _ => self.may_nest(Container::Header, ty),
        }
    }

    /// Whether a type is a header or header union.
    pub(crate) fn is_header(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Struct(id) => self.hir.types.structs[id].kind != StructKind::Struct,
            _ => false,
        }
    }

    /// Whether a variable, runtime parameter or result can have this type.
    pub(crate) fn is_value_type(&self, ty: Ty) -> bool {
        !matches!(
            self.kind(ty),
            TyKind::Void
                | TyKind::Int
                | TyKind::String
                | TyKind::MatchKind
                | TyKind::Set(_)
                | TyKind::Extern(..)
                | TyKind::Parser(_)
                | TyKind::Control(_)
                | TyKind::Package(..)
                | TyKind::BlockType(..)
                | TyKind::ApplyResult(_)
                | TyKind::ActionRun(_)
                | TyKind::Table(_)
                | TyKind::ValueSet(_)
        )
    }
}
