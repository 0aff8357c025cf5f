//! The names of things inside a design: small indices, each of its own type.

use cranelift_entity::entity_impl;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )*};
}

ids! {
    /// A module of a design.
    ModuleId = "module";
    /// An input port of a module.
    InputId = "input";
    /// An output port of a module.
    OutputId = "output";
    /// A node of a module: a value of a fixed width.
    NodeId = "n";
    /// A register of a module.
    RegisterId = "register";
    /// A memory of a module.
    MemoryId = "memory";
    /// A read port of a memory.
    ReadId = "read";
    /// An instance of another module.
    InstanceId = "instance";
    /// A stream among the ports of a module.
    StreamId = "stream";
    /// A place in the source of the program, of which a module keeps a list.
    PlaceId = "place";
}
