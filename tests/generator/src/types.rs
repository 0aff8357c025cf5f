//! The types of a program: what was declared, and how it is written.

use millrace_pipeline::arbitrary::Rng;
use std::fmt;

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Bool,
    Bit(u32),
    Int(u32),
    /// A serializable enumeration, by its number.
    Enum(usize),
    Header(usize),
    Struct(usize),
}

/// A field of a header or struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Ty,
}

/// A header or struct.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    /// The most bits of a varbit that ends a header.
    pub(crate) varbit: Option<u32>,
}

/// A serializable enumeration.
#[derive(Clone, Debug)]
pub(crate) struct Enumeration {
    pub(crate) name: String,
    pub(crate) width: u32,
    pub(crate) members: Vec<u64>,
}

/// All types of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    /// Widths that fields and variables are given, so that many are alike.
    pub(crate) widths: Vec<u32>,
    pub(crate) headers: Vec<Record>,
    pub(crate) structs: Vec<Record>,
    pub(crate) enums: Vec<Enumeration>,
}

const WIDTHS: [u32; 22] = [1, 2, 3, 4, 7, 8, 9, 13, 16, 20, 24, 31, 32, 33, 47, 48, 63, 64, 65, 96, 128, 160];

impl Types {
    pub(crate) fn random(rng: &mut Rng, size: usize) -> Types {
        let mut types = Types { widths: vec![8, 16, 32], ..Types::default() };
        for _ in 0..3 {
            types.widths.extend(rng.pick(&WIDTHS));
        }
        for number in 0..1 + rng.below(2) {
            let width = [4, 8, 16][rng.below(3)];
            let members = (0..2 + rng.below(3) as u64).map(|value| value * 2 + number as u64).collect();
            types.enums.push(Enumeration { name: format!("E{number}"), width, members });
        }
        for number in 0..2 + rng.below(2 + size / 2) {
            let header = types.random_header(rng, number);
            types.headers.push(header);
        }
        for number in 0..1 + rng.below(2) {
            let fields = types.random_fields(rng, 4, true);
            types.structs.push(Record { name: format!("s{number}_t"), fields, varbit: None });
        }
        types
    }

    fn random_fields(&self, rng: &mut Rng, most: usize, in_struct: bool) -> Vec<Field> {
        let field = |at: usize, rng: &mut Rng| {
            let ty = match rng.below(8) {
                0 if in_struct => Ty::Bool,
                1 => Ty::Int(self.width(rng).max(2)),
                2 => Ty::Enum(rng.below(self.enums.len())),
                _ => Ty::Bit(self.width(rng)),
            };
            Field { name: format!("f{at}"), ty }
        };
        (0..1 + rng.below(most)).map(|at| field(at, rng)).collect()
    }

    fn random_header(&self, rng: &mut Rng, number: usize) -> Record {
        // What a select looks at comes first.
        let mut fields = vec![Field { name: "kind".into(), ty: Ty::Bit(8) }];
        fields.extend(self.random_fields(rng, 5, false));
        let bits: u32 = fields.iter().map(|field| self.bits(field.ty)).sum();
        if !bits.is_multiple_of(8) {
            fields.push(Field { name: "pad".into(), ty: Ty::Bit(8 - bits % 8) });
        }
        let varbit = (number > 0 && rng.one_in(6)).then(|| 32 * (1 + rng.below(3) as u32));
        Record { name: format!("h{number}_t"), fields, varbit }
    }

    pub(crate) fn width(&self, rng: &mut Rng) -> u32 {
        rng.pick(&self.widths).copied().unwrap_or(8)
    }

    /// The bits of a scalar.
    pub(crate) fn bits(&self, ty: Ty) -> u32 {
        match ty {
            Ty::Bool => 1,
            Ty::Bit(width) | Ty::Int(width) => width,
            Ty::Enum(at) => self.enums[at].width,
            Ty::Header(at) => self.headers[at].fields.iter().map(|field| self.bits(field.ty)).sum(),
            Ty::Struct(at) => self.structs[at].fields.iter().map(|field| self.bits(field.ty)).sum(),
        }
    }

    /// A scalar type.
    pub(crate) fn scalar(&self, rng: &mut Rng) -> Ty {
        match rng.below(8) {
            0 => Ty::Bool,
            1 => Ty::Int(self.width(rng).max(2)),
            2 => Ty::Enum(rng.below(self.enums.len())),
            _ => Ty::Bit(self.width(rng)),
        }
    }

    /// How a type is written.
    pub(crate) fn name(&self, ty: Ty) -> String {
        match ty {
            Ty::Bool => "bool".into(),
            Ty::Bit(width) => format!("bit<{width}>"),
            Ty::Int(width) => format!("int<{width}>"),
            Ty::Enum(at) => self.enums[at].name.clone(),
            Ty::Header(at) => self.headers[at].name.clone(),
            Ty::Struct(at) => self.structs[at].name.clone(),
        }
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Enumeration { name, width, members } in &self.enums {
            let listed: Vec<String> =
                members.iter().enumerate().map(|(at, value)| format!("M{at} = {value}")).collect();
            writeln!(f, "enum bit<{width}> {name} {{ {} }}", listed.join(", "))?;
        }
        for (keyword, records) in [("header", &self.headers), ("struct", &self.structs)] {
            for record in records {
                writeln!(f, "{keyword} {} {{", record.name)?;
                for field in &record.fields {
                    writeln!(f, "    {} {};", self.name(field.ty), field.name)?;
                }
                if let Some(most) = record.varbit {
                    writeln!(f, "    varbit<{most}> options;")?;
                }
                writeln!(f, "}}")?;
            }
        }
        Ok(())
    }
}
