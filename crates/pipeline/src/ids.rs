//! The names of things inside a program: small indices, each of its own type.

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
    /// A scalar of storage.
    SlotId = "slot";
    /// A header instance.
    HeaderId = "header";
    /// A stack of header instances.
    StackId = "stack";
    /// A body of code.
    BodyId = "body";
    /// A block within its body.
    BlockId = "block";
    /// An action.
    ActionId = "action";
    /// A match-action table.
    TableId = "table";
    /// An action profile or action selector.
    ProfileId = "profile";
    /// An indexed counter array.
    CounterId = "counter";
    /// An indexed meter array.
    MeterId = "meter";
    /// A register array.
    RegisterId = "register";
    /// A parser value set.
    ValueSetId = "value_set";
    /// A hash whose parameters the control plane sets.
    HashId = "own_hash";
    /// A kind of digest message.
    DigestId = "digest";
    /// A plugin that the program calls.
    PluginId = "plugin";
}
