//! Why a command did nothing, in the words of bmv2's tools.

use millrace_commands::Refusal;
use millrace_thrift_api::{
    CallError, InvalidCounterOperation, InvalidCrcOperation, InvalidDevMgrOperation, InvalidMcOperation,
    InvalidMeterOperation, InvalidMirroringOperation, InvalidParseVSetOperation, InvalidRegisterOperation,
    InvalidSwapOperation, InvalidTableOperation, InvalidToeplitzHashOperation, Undeclared,
};
use std::fmt;
use std::io;

/// Why a command did nothing.
#[derive(Debug)]
pub enum Trouble {
    /// It is wrong in itself.
    Wrong(String),
    /// The switch refused it.
    Refused(String),
    /// The switch cannot be reached any more.
    Lost(String),
    /// What is to be shown cannot be written.
    Output(io::Error),
}

impl Trouble {
    pub(crate) fn wrong(message: impl Into<String>) -> Trouble {
        Trouble::Wrong(message.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Wrong(message) => write!(f, "Error: {message}"),
            Trouble::Refused(message) => f.write_str(message),
            Trouble::Lost(message) => write!(f, "Error: the switch cannot be reached any more: {message}"),
            Trouble::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Wrong(refusal.to_string())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Output(error)
    }
}

macro_rules! exceptions {
    ($($exception:ident: $what:literal;)*) => {$(
        impl From<CallError<$exception>> for Trouble {
            fn from(error: CallError<$exception>) -> Trouble {
                match error {
                    CallError::Declared(exception) => {
                        Trouble::Refused(format!(concat!("Invalid ", $what, " ({})"), exception.code.name()))
                    }
                    CallError::Failed(error) => Trouble::Wrong(error.message),
                    CallError::Broken(error) => Trouble::Lost(error.to_string()),
                }
            }
        }
    )*};
}

exceptions! {
    InvalidTableOperation: "table operation";
    InvalidCounterOperation: "counter operation";
    InvalidMeterOperation: "meter operation";
    InvalidRegisterOperation: "register operation";
    InvalidCrcOperation: "crc operation";
    InvalidToeplitzHashOperation: "Toeplitz hash operation";
    InvalidParseVSetOperation: "parser value set operation";
    InvalidMcOperation: "PRE operation";
    InvalidMirroringOperation: "mirroring operation";
}

/// Exceptions that may come with a reason.
macro_rules! explained {
    ($($exception:ident: $what:literal;)*) => {$(
        impl From<CallError<$exception>> for Trouble {
            fn from(error: CallError<$exception>) -> Trouble {
                match error {
                    CallError::Declared($exception { code, reason: None }) => {
                        Trouble::Refused(format!(concat!("Invalid ", $what, " ({})"), code.name()))
                    }
                    CallError::Declared($exception { reason: Some(reason), .. }) => {
                        Trouble::Refused(format!(concat!("Invalid ", $what, ": {}"), reason))
                    }
                    CallError::Failed(error) => Trouble::Wrong(error.message),
                    CallError::Broken(error) => Trouble::Lost(error.to_string()),
                }
            }
        }
    )*};
}

explained! {
    InvalidSwapOperation: "swap operation";
    InvalidDevMgrOperation: "device manager operation";
}

impl From<CallError<Undeclared>> for Trouble {
    fn from(error: CallError<Undeclared>) -> Trouble {
        match error {
            CallError::Declared(never) => match never {},
            CallError::Failed(error) => Trouble::Wrong(error.message),
            CallError::Broken(error) => Trouble::Lost(error.to_string()),
        }
    }
}
