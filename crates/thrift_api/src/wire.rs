//! Values as Thrift writes them.
//!
//! The library has the protocol; what its compiler would generate for each type of an interface is here once, as a trait
//! and two macros, so that the interface itself can be read.

use thrift::protocol::{TInputProtocol, TListIdentifier, TMapIdentifier, TOutputProtocol, TType};

/// A value of an interface.
pub trait Wire: Sized {
    /// Its type on the wire.
    const TYPE: TType;

    /// Reads one.
    ///
    /// # Errors
    /// What comes is none, or is larger than the limits of the connection.
    fn read(from: &mut dyn TInputProtocol) -> thrift::Result<Self>;

    /// Writes it.
    ///
    /// # Errors
    /// The connection takes nothing.
    fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()>;

    /// Whether it is there at all: an optional field may not be.
    fn is_set(&self) -> bool {
        true
    }

    /// What stands for a result that is not there.
    fn missing() -> Option<Self> {
        None
    }
}

macro_rules! scalar {
    ($($ty:ty, $kind:ident, $read:ident, $write:ident;)*) => {$(
        impl Wire for $ty {
            const TYPE: TType = TType::$kind;

            fn read(from: &mut dyn TInputProtocol) -> thrift::Result<$ty> {
                from.$read()
            }

            fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
                to.$write(*self)
            }
        }
    )*};
}

scalar! {
    bool, Bool, read_bool, write_bool;
    i16, I16, read_i16, write_i16;
    i32, I32, read_i32, write_i32;
    i64, I64, read_i64, write_i64;
    f64, Double, read_double, write_double;
}

impl Wire for String {
    const TYPE: TType = TType::String;

    /// What is no text has a mark in place of each part that is none: then it names nothing.
    fn read(from: &mut dyn TInputProtocol) -> thrift::Result<String> {
        Ok(String::from_utf8_lossy(&from.read_bytes()?).into_owned())
    }

    fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        to.write_string(self)
    }
}

/// A `binary`.
impl Wire for Vec<u8> {
    const TYPE: TType = TType::String;

    fn read(from: &mut dyn TInputProtocol) -> thrift::Result<Vec<u8>> {
        from.read_bytes()
    }

    fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        to.write_bytes(self)
    }
}

impl<T: Wire> Wire for Vec<T> {
    const TYPE: TType = TType::List;

    fn read(from: &mut dyn TInputProtocol) -> thrift::Result<Vec<T>> {
        let list = from.read_list_begin()?;
        expect::<T>(list.element_type, list.size)?;
        // A claimed size alone takes no memory.
        let mut read = Vec::with_capacity(thrift::protocol::prealloc_size(list.size));
        for _ in 0..list.size {
            read.push(T::read(from)?);
        }
        from.read_list_end()?;
        Ok(read)
    }

    fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        to.write_list_begin(&TListIdentifier::new(T::TYPE, length(self.len())?))?;
        self.iter().try_for_each(|element| element.write(to))?;
        to.write_list_end()
    }
}

/// A `map<string, string>`, in the order in which it was made.
impl Wire for Vec<(String, String)> {
    const TYPE: TType = TType::Map;

    fn read(from: &mut dyn TInputProtocol) -> thrift::Result<Vec<(String, String)>> {
        let map = from.read_map_begin()?;
        expect::<String>(map.key_type.unwrap_or(TType::String), map.size)?;
        expect::<String>(map.value_type.unwrap_or(TType::String), map.size)?;
        let mut read = Vec::new();
        for _ in 0..map.size {
            read.push((String::read(from)?, String::read(from)?));
        }
        from.read_map_end()?;
        Ok(read)
    }

    fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        to.write_map_begin(&TMapIdentifier::new(TType::String, TType::String, length(self.len())?))?;
        for (key, value) in self {
            to.write_string(key)?;
            to.write_string(value)?;
        }
        to.write_map_end()
    }
}

impl<T: Wire> Wire for Option<T> {
    const TYPE: TType = T::TYPE;

    fn read(from: &mut dyn TInputProtocol) -> thrift::Result<Option<T>> {
        T::read(from).map(Some)
    }

    fn write(&self, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        self.iter().try_for_each(|value| value.write(to))
    }

    fn is_set(&self) -> bool {
        self.is_some()
    }
}

/// What a call without a result gives.
impl Wire for () {
    const TYPE: TType = TType::Void;

    fn read(_: &mut dyn TInputProtocol) -> thrift::Result<()> {
        Ok(())
    }

    fn write(&self, _: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        Ok(())
    }

    fn is_set(&self) -> bool {
        false
    }

    fn missing() -> Option<()> {
        Some(())
    }
}

/// The elements of an empty list may say to be of any type.
fn expect<T: Wire>(found: TType, size: i32) -> thrift::Result<()> {
    if found == T::TYPE || size == 0 { Ok(()) } else { Err(unexpected(format!("elements of type {found}"))) }
}

fn length(length: usize) -> thrift::Result<i32> {
    i32::try_from(length).map_err(|_| unexpected(format!("a list of {length} elements")))
}

pub(crate) fn unexpected(what: impl std::fmt::Display) -> thrift::Error {
    let message = format!("{what} cannot be taken");
    thrift::new_protocol_error(thrift::ProtocolErrorKind::InvalidData, message)
}

/// Writes a field, if it is there.
pub fn write_field<T: Wire>(id: i16, value: &T, to: &mut dyn TOutputProtocol) -> thrift::Result<()> {
    if !value.is_set() {
        return Ok(());
    }
    // Names are not written by the binary protocol.
    let name: Option<String> = None;
    to.write_field_begin(&thrift::protocol::TFieldIdentifier::new::<_, String, _>(name, T::TYPE, id))?;
    value.write(to)?;
    to.write_field_end()
}

/// Reads the fields of a structure: `take` reads those that it knows and says so; the others are skipped.
pub fn read_fields(
    from: &mut dyn TInputProtocol,
    mut take: impl FnMut(i16, TType, &mut dyn TInputProtocol) -> thrift::Result<bool>,
) -> thrift::Result<()> {
    from.read_struct_begin()?;
    loop {
        let field = from.read_field_begin()?;
        if field.field_type == TType::Stop {
            break;
        }
        if !take(thrift::protocol::field_id(&field)?, field.field_type, from)? {
            from.skip(field.field_type)?;
        }
        from.read_field_end()?;
    }
    from.read_struct_end()
}

/// Structures and exceptions: `name { id field: type }`.
macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident { $($id:literal $field:ident: $ty:ty),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs, reason = "named as in bmv2's interface")]
        pub struct $name {
            $(pub $field: $ty,)*
        }

        impl $crate::wire::Wire for $name {
            const TYPE: ::thrift::protocol::TType = ::thrift::protocol::TType::Struct;

            fn read(from: &mut dyn ::thrift::protocol::TInputProtocol) -> ::thrift::Result<$name> {
                let mut read = $name::default();
                $crate::wire::read_fields(from, |id, ty, from| {
                    match id {
                        $($id if ty == <$ty as $crate::wire::Wire>::TYPE => {
                            read.$field = $crate::wire::Wire::read(from)?;
                        })*
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                Ok(read)
            }

            fn write(&self, to: &mut dyn ::thrift::protocol::TOutputProtocol) -> ::thrift::Result<()> {
                to.write_struct_begin(&::thrift::protocol::TStructIdentifier::new(stringify!($name)))?;
                $($crate::wire::write_field($id, &self.$field, to)?;)*
                to.write_field_stop()?;
                to.write_struct_end()
            }
        }
    )*};
}

/// Enumerations, with their names in bmv2's interface. `else` is for what any other number is.
macro_rules! enumerations {
    ($($(#[$meta:meta])* $name:ident { $first:ident = $first_value:literal $first_text:literal
        $(, $variant:ident = $value:literal $text:literal)* $(,)?
        $(; else $other:ident = $other_value:literal $other_text:literal)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "named as in bmv2's interface")]
        pub enum $name {
            #[default]
            $first = $first_value,
            $($variant = $value,)*
            $($other = $other_value,)?
        }

        impl $name {
            /// Its name in bmv2's interface.
            pub fn name(self) -> &'static str {
                match self {
                    $name::$first => $first_text,
                    $($name::$variant => $text,)*
                    $($name::$other => $other_text,)?
                }
            }
        }

        impl $crate::wire::Wire for $name {
            const TYPE: ::thrift::protocol::TType = ::thrift::protocol::TType::I32;

            fn read(from: &mut dyn ::thrift::protocol::TInputProtocol) -> ::thrift::Result<$name> {
                let others: &[$name] = &[$($name::$other)?];
                match from.read_i32()? {
                    $first_value => Ok($name::$first),
                    $($value => Ok($name::$variant),)*
                    number => others.first().copied().ok_or_else(|| {
                        $crate::wire::unexpected(format_args!("{} {number}", stringify!($name)))
                    }),
                }
            }

            fn write(&self, to: &mut dyn ::thrift::protocol::TOutputProtocol) -> ::thrift::Result<()> {
                to.write_i32(*self as i32)
            }
        }
    )*};
}

pub(crate) use {enumerations, structures};
