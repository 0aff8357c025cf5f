//! Exceptions from their codes.

use super::types::*;
use crate::CallError;

macro_rules! exceptions {
    ($($exception:ident($code:ident);)*) => {$(
        #[allow(clippy::needless_update, reason = "most exceptions have nothing but a code")]
        impl From<$code> for $exception {
            fn from(code: $code) -> $exception {
                $exception { code, ..$exception::default() }
            }
        }

        impl From<$exception> for CallError<$exception> {
            fn from(exception: $exception) -> CallError<$exception> {
                CallError::Declared(exception)
            }
        }

        impl From<$code> for CallError<$exception> {
            fn from(code: $code) -> CallError<$exception> {
                CallError::Declared(code.into())
            }
        }
    )*};
}

exceptions! {
    InvalidTableOperation(TableCode);
    InvalidCounterOperation(CounterCode);
    InvalidSwapOperation(SwapCode);
    InvalidMeterOperation(MeterCode);
    InvalidRegisterOperation(RegisterCode);
    InvalidParseVSetOperation(ValueSetCode);
    InvalidLearnOperation(LearnCode);
    InvalidDevMgrOperation(PortCode);
    InvalidCrcOperation(CrcCode);
    InvalidToeplitzHashOperation(ToeplitzCode);
    InvalidIdLookup(IdCode);
    InvalidMcOperation(PreCode);
    InvalidMirroringOperation(MirroringCode);
}
