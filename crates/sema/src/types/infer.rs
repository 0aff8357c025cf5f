//! Type variables: those of generic declarations, and those that stand for type arguments to be found out.

use crate::check::Checker;
use crate::hir::{Direction, StructId, Ty, TyKind, VarKind};

/// What is known of a type variable.
#[derive(Clone, Debug)]
pub(crate) enum TypeVar {
    /// The parameter of a generic declaration whose body is being checked: equal to itself only.
    Rigid(String),
    /// To be found out.
    Free {
        /// The parameter's name.
        name: String,
        /// Written `_`: may stay unknown.
        dont_care: bool,
    },
    /// Found out, maybe in part.
    Bound {
        /// The parameter's name.
        name: String,
        /// What it stands for.
        ty: Ty,
    },
}

/// All type variables of a program.
#[derive(Debug, Default)]
pub(crate) struct Inference {
    vars: Vec<TypeVar>,
}

impl Inference {
    fn push(&mut self, var: TypeVar) -> TyKind {
        self.vars.push(var);
        TyKind::Var(self.vars.len() as u32 - 1)
    }

    /// What is known of a variable.
    pub(crate) fn get(&self, var: u32) -> &TypeVar {
        &self.vars[var as usize]
    }

    fn bind(&mut self, var: u32, ty: Ty) {
        let name = match self.get(var) {
            TypeVar::Rigid(name) | TypeVar::Free { name, .. } | TypeVar::Bound { name, .. } => name.clone(),
        };
        self.vars[var as usize] = TypeVar::Bound { name, ty };
    }
}

impl Checker<'_> {
    /// A variable to be found out.
    pub(crate) fn fresh(&mut self, name: &str, dont_care: bool) -> Ty {
        let kind = self.infer.push(TypeVar::Free { name: name.to_string(), dont_care });
        self.intern(kind)
    }

    /// A variable that is equal to itself only.
    pub(crate) fn rigid(&mut self, name: &str) -> Ty {
        let kind = self.infer.push(TypeVar::Rigid(name.to_string()));
        self.intern(kind)
    }

    /// The type that bound variables stand for.
    pub(crate) fn shallow(&self, mut ty: Ty) -> Ty {
        while let TyKind::Var(var) = self.hir.types.kind(ty) {
            match self.infer.get(*var) {
                TypeVar::Bound { ty: next, .. } => ty = *next,
                _ => break,
            }
        }
        ty
    }

    /// The shape of a type, bound variables looked through.
    pub(crate) fn kind(&self, ty: Ty) -> TyKind {
        let kind = self.hir.types.kind(self.shallow(ty));
        let parts = match kind {
            TyKind::Tuple(parts) | TyKind::Extern(_, parts) | TyKind::BlockType(_, parts) => parts.len(),
            _ => 0,
        };
        if self.effort.spend(1 + parts / 4) { kind.clone() } else { TyKind::Unknown }
    }

    /// Whether any variable is part of a type, bound or not.
    pub(crate) fn mentions_vars(&self, ty: Ty) -> bool {
        if !self.effort.spend(1) {
            return false;
        }
        match self.hir.types.kind(ty) {
            TyKind::Var(_) => true,
            TyKind::Tuple(parts)
            | TyKind::Extern(_, parts)
            | TyKind::Package(_, parts)
            | TyKind::BlockType(_, parts) => parts.iter().any(|&t| self.mentions_vars(t)),
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t) => {
                self.mentions_vars(*t)
            }
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[*id];
                if self.decls.struct_origin.contains_key(id) {
                    s.args.iter().any(|&t| self.mentions_vars(t))
                } else {
                    s.fields.iter().any(|f| self.mentions_vars(f.ty))
                }
            }
            _ => false,
        }
    }

    /// The type with its bound variables replaced.
    pub(crate) fn settle(&mut self, ty: Ty) -> Ty {
        if !self.mentions_vars(ty) {
            return ty;
        }
        let ty = self.shallow(ty);
        let kind = match self.kind(ty) {
            TyKind::Tuple(parts) => TyKind::Tuple(self.settle_all(parts)),
            TyKind::Extern(id, parts) => TyKind::Extern(id, self.settle_all(parts)),
            TyKind::Package(id, parts) => TyKind::Package(id, self.settle_all(parts)),
            TyKind::BlockType(id, parts) => TyKind::BlockType(id, self.settle_all(parts)),
            TyKind::List(t) => TyKind::List(self.settle(t)),
            TyKind::Stack(t, n) => TyKind::Stack(self.settle(t), n),
            TyKind::Set(t) => TyKind::Set(self.settle(t)),
            TyKind::ValueSet(t) => TyKind::ValueSet(self.settle(t)),
            TyKind::Struct(id) => return self.settle_struct(id, ty),
            _ => return ty,
        };
        self.intern(kind)
    }

    fn settle_all(&mut self, parts: Vec<Ty>) -> Vec<Ty> {
        parts.into_iter().map(|t| self.settle(t)).collect()
    }

    fn settle_struct(&mut self, id: StructId, ty: Ty) -> Ty {
        if let Some(&origin) = self.decls.struct_origin.get(&id) {
            let args = self.hir.types.structs[id].args.clone();
            let args = self.settle_all(args);
            return self.struct_instance(origin, args);
        }
        let fields: Vec<(String, Ty)> =
            self.hir.types.structs[id].fields.iter().map(|f| (f.name.clone(), f.ty)).collect();
        let fields = fields.into_iter().map(|(n, t)| (n, self.settle(t))).collect();
        let span = self.hir.types.structs[id].span;
        let _ = ty;
        self.record_type(fields, span)
    }

    /// The type with everything that was written `_` and never found out as unknown. Gives the name of a variable that is
    /// still free.
    pub(crate) fn finish_type(&mut self, ty: Ty) -> Result<Ty, String> {
        let ty = self.settle(ty);
        if let Some(name) = self.free_var(ty, true) {
            return Err(name);
        }
        Ok(ty)
    }

    /// Whether a free variable is part of a type; those written `_` become unknown.
    fn free_var(&mut self, ty: Ty, close: bool) -> Option<String> {
        if !self.mentions_vars(ty) {
            return None;
        }
        let parts = match self.kind(ty) {
            TyKind::Var(var) => {
                return match self.infer.get(var) {
                    TypeVar::Free { dont_care: true, .. } if close => {
                        let unknown = self.unknown_ty();
                        self.infer.bind(var, unknown);
                        None
                    }
                    TypeVar::Free { name, .. } => Some(name.clone()),
                    _ => None,
                };
            }
            TyKind::Tuple(p) | TyKind::Extern(_, p) | TyKind::Package(_, p) | TyKind::BlockType(_, p) => p,
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t) => vec![t],
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[id];
                s.args.iter().copied().chain(s.fields.iter().map(|f| f.ty)).collect()
            }
            _ => Vec::new(),
        };
        parts.into_iter().find_map(|t| self.free_var(t, close))
    }

    /// Makes the variables of a type that are still free unknown.
    pub(crate) fn close_vars(&mut self, ty: Ty) {
        let ty = self.settle(ty);
        while let Some(var) = self.first_free(ty) {
            let unknown = self.unknown_ty();
            self.infer.bind(var, unknown);
        }
    }

    fn first_free(&self, ty: Ty) -> Option<u32> {
        match self.kind(ty) {
            TyKind::Var(var) => matches!(self.infer.get(var), TypeVar::Free { .. }).then_some(var),
            TyKind::Tuple(p) | TyKind::Extern(_, p) | TyKind::Package(_, p) | TyKind::BlockType(_, p) => {
                p.into_iter().find_map(|t| self.first_free(t))
            }
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t) => {
                self.first_free(t)
            }
            TyKind::Struct(id) => self.hir.types.structs[id].args.iter().find_map(|&t| self.first_free(t)),
            _ => None,
        }
    }

    /// Whether a variable that is still to be found out is part of a type.
    pub(crate) fn has_free_vars(&mut self, ty: Ty) -> bool {
        let ty = self.settle(ty);
        self.free_var(ty, false).is_some()
    }

    /// Makes the type that a declaration wants fit the one that a use has, by binding variables of both. False when no
    /// binding can; whether a value may really be passed is decided afterwards by conversion.
    pub(crate) fn unify(&mut self, want: Ty, have: Ty) -> bool {
        let (want, have) = (self.shallow(want), self.shallow_keeping_last_var(want, have));
        if want == have {
            return true;
        }
        match (self.hir.types.kind(want).clone(), self.hir.types.kind(have).clone()) {
            (TyKind::Unknown, _) | (_, TyKind::Unknown) => true,
            (TyKind::Var(var), _) if matches!(self.infer.get(var), TypeVar::Free { .. }) => {
                let have = self.settle(have);
                if !self.occurs(var, have) {
                    self.infer.bind(var, have);
                }
                true
            }
            (_, TyKind::Var(var)) if matches!(self.infer.get(var), TypeVar::Free { .. }) => {
                let want = self.settle(want);
                if !self.occurs(var, want) {
                    self.infer.bind(var, want);
                }
                true
            }
            (TyKind::Int, TyKind::Bits(_) | TyKind::SignedBits(_)) => true,
            (TyKind::Bits(_) | TyKind::SignedBits(_), TyKind::Int) => true,
            (TyKind::Bits(_) | TyKind::SignedBits(_), TyKind::Enum(_)) => true,
            (TyKind::Tuple(a), TyKind::Tuple(b)) => {
                a.len() == b.len() && a.into_iter().zip(b).all(|(x, y)| self.unify(x, y))
            }
            (TyKind::Extern(i, a), TyKind::Extern(j, b)) => i == j && self.unify_all(&a, &b),
            (TyKind::Package(i, a), TyKind::Package(j, b)) => i == j && self.unify_all(&a, &b),
            (TyKind::BlockType(i, a), TyKind::BlockType(j, b)) if i == j => self.unify_all(&a, &b),
            (TyKind::BlockType(..), TyKind::BlockType(..) | TyKind::Parser(_) | TyKind::Control(_)) => {
                self.unify_signatures(want, have)
            }
            (TyKind::List(a), TyKind::List(b))
            | (TyKind::Set(a), TyKind::Set(b))
            | (TyKind::ValueSet(a), TyKind::ValueSet(b)) => self.unify(a, b),
            (TyKind::Stack(a, n), TyKind::Stack(b, m)) => n == m && self.unify(a, b),
            (TyKind::List(a), TyKind::Tuple(parts)) | (TyKind::Stack(a, _), TyKind::Tuple(parts)) => {
                parts.into_iter().all(|t| self.unify(a, t))
            }
            (TyKind::Struct(i), TyKind::Struct(j)) => self.unify_structs(i, j),
            (TyKind::Struct(i), TyKind::Tuple(parts)) => {
                let fields: Vec<Ty> = self.hir.types.structs[i].fields.iter().map(|f| f.ty).collect();
                fields.len() == parts.len() && fields.into_iter().zip(parts).all(|(f, t)| self.unify(f, t))
            }
            _ => false,
        }
    }

    /// Lets a variable that is bound to a type with plain `int` numbers take on a fixed width seen later.
    fn shallow_keeping_last_var(&mut self, want: Ty, have: Ty) -> Ty {
        let have = self.shallow(have);
        let mut var = None;
        let mut ty = want;
        while let TyKind::Var(v) = self.hir.types.kind(ty) {
            let TypeVar::Bound { ty: next, .. } = self.infer.get(*v) else { break };
            var = Some(*v);
            ty = *next;
        }
        if let Some(var) = var
            && let Some(joined) = self.join(ty, have)
            && joined != ty
        {
            self.infer.bind(var, joined);
            return joined;
        }
        have
    }

    /// The type that values of both types convert to, when it is not the first: `int` gives way to fixed widths.
    pub(crate) fn join(&mut self, a: Ty, b: Ty) -> Option<Ty> {
        let (a, b) = (self.shallow(a), self.shallow(b));
        if a == b {
            return Some(a);
        }
        match (self.kind(a), self.kind(b)) {
            (TyKind::Unknown, _) => Some(b),
            (_, TyKind::Unknown) => Some(a),
            (TyKind::Int, TyKind::Bits(_) | TyKind::SignedBits(_)) => Some(b),
            (TyKind::Bits(_) | TyKind::SignedBits(_), TyKind::Int) => Some(a),
            (TyKind::Tuple(p), TyKind::Tuple(q)) if p.len() == q.len() => {
                let parts: Option<Vec<Ty>> = p.into_iter().zip(q).map(|(x, y)| self.join(x, y)).collect();
                parts.map(|p| self.intern(TyKind::Tuple(p)))
            }
            _ => None,
        }
    }

    fn occurs(&self, var: u32, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Var(v) => v == var,
            TyKind::Tuple(p) | TyKind::Extern(_, p) | TyKind::Package(_, p) | TyKind::BlockType(_, p) => {
                p.into_iter().any(|t| self.occurs(var, t))
            }
            TyKind::List(t) | TyKind::Stack(t, _) | TyKind::Set(t) | TyKind::ValueSet(t) => {
                self.occurs(var, t)
            }
            TyKind::Struct(id) => self.hir.types.structs[id].args.iter().any(|&t| self.occurs(var, t)),
            _ => false,
        }
    }

    fn unify_all(&mut self, a: &[Ty], b: &[Ty]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| self.unify(x, y))
    }

    fn unify_structs(&mut self, want: StructId, have: StructId) -> bool {
        let origins = (self.decls.struct_origin.get(&want), self.decls.struct_origin.get(&have));
        match origins {
            (Some(a), Some(b)) if a == b => {
                let (a, b) =
                    (self.hir.types.structs[want].args.clone(), self.hir.types.structs[have].args.clone());
                self.unify_all(&a, &b)
            }
            (_, None) => {
                let fields = |c: &Self, id: StructId| -> Vec<(String, Ty)> {
                    c.hir.types.structs[id].fields.iter().map(|f| (f.name.clone(), f.ty)).collect()
                };
                let (a, b) = (fields(self, want), fields(self, have));
                b.into_iter().all(|(name, ty)| match a.iter().find(|(n, _)| *n == name) {
                    Some(&(_, want)) => self.unify(want, ty),
                    None => false,
                })
            }
            _ => false,
        }
    }

    /// The parameters of what can be applied: directions, types, and whether they may be left out.
    pub(crate) fn apply_shape(&mut self, ty: Ty) -> Option<Vec<(Direction, Ty, bool)>> {
        let vars = match self.kind(ty) {
            TyKind::Parser(id) => self.hir.parsers[id].params.clone(),
            TyKind::Control(id) => self.hir.controls[id].params.clone(),
            TyKind::BlockType(id, args) => {
                let signature = self.block_type_signature(id, &args);
                return Some(
                    signature
                        .params
                        .into_iter()
                        .map(|p| (p.direction, p.ty, p.optional || p.default.is_some()))
                        .collect(),
                );
            }
            _ => return None,
        };
        let shape = vars.into_iter().map(|v| {
            let var = &self.hir.vars[v];
            let direction = match var.kind {
                VarKind::Param(d) => d,
                VarKind::CtorParam | VarKind::Local => Direction::None,
            };
            (direction, var.ty, false)
        });
        Some(shape.collect())
    }

    /// Whether a parser or control has the signature of a parser type or control type.
    fn unify_signatures(&mut self, want: Ty, have: Ty) -> bool {
        let is_parser = |c: &Self, ty: Ty| match c.kind(ty) {
            TyKind::Parser(_) => Some(true),
            TyKind::Control(_) => Some(false),
            TyKind::BlockType(id, _) => Some(c.hir.block_types[id].is_parser),
            _ => None,
        };
        if is_parser(self, want) != is_parser(self, have) {
            return false;
        }
        let (Some(want), Some(have)) = (self.apply_shape(want), self.apply_shape(have)) else { return false };
        let mut fits = have.len() <= want.len();
        let missing = want.get(have.len()..).unwrap_or(&[]);
        fits &= missing.iter().all(|(_, _, optional)| *optional);
        for ((want_direction, want_ty, _), (have_direction, have_ty, _)) in want.into_iter().zip(have) {
            fits &= want_direction == have_direction;
            fits &= self.unify(want_ty, have_ty);
            let (a, b) = (self.settle(want_ty), self.settle(have_ty));
            fits &= self.mentions_vars(a) || self.is_unknown(a) || self.is_unknown(b) || a == b;
        }
        fits
    }

    /// Whether an error left this type unknown.
    pub(crate) fn is_unknown(&self, ty: Ty) -> bool {
        matches!(self.kind(ty), TyKind::Unknown)
    }
}
