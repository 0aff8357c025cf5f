//! The fixed names of every finding, so that tools and tests can tell them apart. A code is never given a new meaning.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) const $name: &str = $code;
    )*};
}

codes! {
    // ---- Names ----

    /// Nothing of this name is visible here.
    UNKNOWN_NAME = "E0101";
    /// The name is taken in this scope.
    DUPLICATE = "E0102";
    /// The name means another kind of thing.
    WRONG_KIND = "E0103";
    /// A structure, enumeration, extern, ... has no such member.
    UNKNOWN_MEMBER = "E0104";
    /// A declaration that uses itself.
    RECURSION = "E0105";
    /// Two things would have one name for the control plane.
    CONTROL_PLANE_NAME = "E0107";

    // ---- Types ----

    /// An expression has another type than its place wants.
    TYPE_MISMATCH = "E0201";
    /// A width or size that is out of bounds or no number.
    BAD_SIZE = "E0202";
    /// Wrong number of type arguments.
    TYPE_ARGUMENTS = "E0203";
    /// A type where the nesting rules do not allow it.
    NESTING = "E0204";
    /// A type that a variable, parameter or result cannot have.
    BAD_TYPE_HERE = "E0205";
    /// A cast that the language does not define.
    BAD_CAST = "E0206";
    /// A type argument that cannot be found out.
    CANNOT_INFER = "E0207";
    /// The underlying type of an enumeration or new type.
    BAD_UNDERLYING = "E0208";
    /// A value of a serializable enumeration that its type cannot hold.
    ENUM_VALUE = "E0209";
    /// A type that has no default value.
    NO_DEFAULT = "E0210";
    /// A structure-valued expression that misses or repeats members.
    BAD_MEMBERS = "E0211";
    /// A type or constant that is over a limit.
    TOO_LARGE = "E0213";
    /// A type without a size in bits.
    NO_BIT_SIZE = "E0212";

    // ---- Expressions ----

    /// An operator that is not defined on its operands.
    BAD_OPERANDS = "E0301";
    /// A value must be known at compile time.
    NOT_CONSTANT = "E0302";
    /// Division or modulo by zero or of negative numbers.
    BAD_DIVISION = "E0303";
    /// A shift by a negative or absurd amount.
    BAD_SHIFT = "E0304";
    /// Bits that the operand does not have.
    BAD_SLICE = "E0305";
    /// An index outside an array, stack or tuple.
    BAD_INDEX = "E0306";
    /// Something that cannot be assigned to.
    NOT_LVALUE = "E0307";
    /// A type or another thing that is no value.
    NOT_VALUE = "E0308";
    /// `...` or `_` where it says nothing.
    MISPLACED_DOTS = "E0309";
    /// `static_assert` of something false.
    STATIC_ASSERT = "E0310";

    // ---- Calls ----

    /// No overload takes these arguments, or too few or too many of them.
    BAD_ARGUMENTS = "E0401";
    /// Not something that can be called.
    NOT_CALLABLE = "E0402";
    /// A call that this place does not allow.
    CALL_NOT_ALLOWED = "E0403";
    /// An overload set that does not decide.
    AMBIGUOUS_CALL = "E0404";
    /// A direction that a parameter cannot have, or must have.
    BAD_DIRECTION = "E0405";
    /// A default value where a parameter cannot have one.
    BAD_DEFAULT = "E0406";

    // ---- Instances ----

    /// An instance where none may be.
    INSTANCE_NOT_ALLOWED = "E0501";
    /// An abstract method without definition, or a definition of none.
    ABSTRACT_METHOD = "E0502";
    /// `main` that is no package.
    BAD_MAIN = "E0503";
    /// A parser or control whose signature does not fit.
    SIGNATURE = "E0504";

    // ---- Statements ----

    /// A statement that this place does not allow.
    STATEMENT_NOT_ALLOWED = "E0601";
    /// A `return` that does not fit the function.
    BAD_RETURN = "E0602";
    /// A path through a function that returns nothing.
    MISSING_RETURN = "E0603";
    /// A label that appears twice, or after `default`.
    BAD_LABEL = "E0604";
    /// What `switch` cannot choose by.
    BAD_SWITCH = "E0605";

    // ---- Parsers ----

    /// A parser without the state `start`.
    NO_START = "E0701";
    /// A transition to nothing.
    UNKNOWN_STATE = "E0702";
    /// A state with a reserved name.
    RESERVED_STATE = "E0703";
    /// A set of values that cannot be matched.
    BAD_KEYSET = "E0704";
    /// A parser that can never end.
    ENDLESS_PARSER = "E0705";

    // ---- Tables ----

    /// A property that is missing, repeated or of the wrong kind.
    BAD_PROPERTY = "E0801";
    /// An action that is not in the table's list.
    NOT_IN_ACTIONS = "E0802";
    /// A parameter of an action that is bound, or not, against the rules.
    BAD_BINDING = "E0803";
    /// An initial entry that does not fit its table.
    BAD_ENTRY = "E0804";
    /// A priority that is not allowed or missing.
    BAD_PRIORITY = "E0805";
    /// A key that needs a name.
    KEY_NAME = "E0806";

    // ---- Annotations ----

    /// An annotation whose body does not fit.
    BAD_ANNOTATION = "E0901";

    // ---- Architectures ----

    /// A restriction of an architecture's own objects.
    ARCHITECTURE = "E0951";

    // ---- Warnings ----

    /// A number that lost bits.
    OVERFLOW = "W0001";
    /// A comparison or case that is always the same.
    UNREACHABLE = "W0002";
    /// Entries' priorities that look unintended.
    PRIORITY_ORDER = "W0003";
    /// A use of something deprecated.
    DEPRECATED = "W0004";
    /// A name that hides another.
    SHADOWING = "W0005";
    /// A function that no call can choose.
    AMBIGUOUS_OVERLOAD = "W0006";
    /// Something happens that is not written.
    IMPLIED = "W0007";
    /// A variable that is read, or an `out` parameter, that nothing sets.
    UNSET = "W0008";
    /// A field of a header that cannot be valid.
    INVALID_HEADER = "W0009";
    /// A call that writes one place twice.
    WRITTEN_TWICE = "W0010";
    /// A header that does not fill its last byte.
    PARTIAL_BYTE = "W0011";
}
