//! The control side: P4Info, runtime commands and P4Runtime JSON.
