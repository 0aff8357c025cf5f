//! The size of values in bits (specification, "Compile-time size determination").

use crate::check::Checker;
use crate::hir::{StructKind, Ty, TyKind};

/// Why a type has no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeError {
    /// It depends on a type parameter.
    Generic,
    /// Its values have no representation in bits.
    NotSerializable,
    /// An error left it unknown.
    Unknown,
}

impl Checker<'_> {
    /// The least and the greatest size of values of a type, in bits.
    pub(crate) fn size_in_bits(&self, ty: Ty) -> Result<(u64, u64), SizeError> {
        Ok(match self.kind(ty) {
            TyKind::Bool => (1, 1),
            TyKind::Bits(w) | TyKind::SignedBits(w) => (w.into(), w.into()),
            TyKind::Varbit(w) => (0, w.into()),
            TyKind::Enum(id) => match self.hir.types.enums[id].repr {
                Some(repr) => self.size_in_bits(repr)?,
                None => return Err(SizeError::NotSerializable),
            },
            TyKind::New(id) => self.size_in_bits(self.hir.types.new_types[id].base)?,
            TyKind::Tuple(parts) => self.sum_of_sizes(parts.into_iter())?,
            TyKind::Struct(id) => {
                let s = &self.hir.types.structs[id];
                let fields = s.fields.iter().map(|f| f.ty);
                if s.kind == StructKind::Union {
                    let sizes: Result<Vec<_>, _> = fields.map(|t| self.size_in_bits(t)).collect();
                    let sizes = sizes?;
                    let least = sizes.iter().map(|s| s.0).max().unwrap_or(0);
                    (least, sizes.iter().map(|s| s.1).max().unwrap_or(0))
                } else {
                    self.sum_of_sizes(fields)?
                }
            }
            TyKind::Stack(element, n) => {
                let (least, most) = self.size_in_bits(element)?;
                (least.saturating_mul(n.into()), most.saturating_mul(n.into()))
            }
            TyKind::Var(_) => return Err(SizeError::Generic),
            TyKind::Unknown => return Err(SizeError::Unknown),
            _ => return Err(SizeError::NotSerializable),
        })
    }

    fn sum_of_sizes(&self, parts: impl Iterator<Item = Ty>) -> Result<(u64, u64), SizeError> {
        let mut sum = (0u64, 0u64);
        for part in parts {
            let (least, most) = self.size_in_bits(part)?;
            sum = (sum.0.saturating_add(least), sum.1.saturating_add(most));
        }
        Ok(sum)
    }
}
