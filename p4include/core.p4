// SPDX-License-Identifier: Apache-2.0
//
// The P4_16 core library: what every architecture may take for granted
// (P4_16 specification 1.2.5, "P4 core library").

#ifndef _CORE_P4_
#define _CORE_P4_

/// What a parser can fail with. Programs and architectures add their own codes.
error {
    NoError,                // the parser reached `accept`
    PacketTooShort,         // extract, lookahead or advance ran past the end
    NoMatch,                // a select without a matching case
    StackOutOfBounds,       // a header stack index outside the stack
    HeaderTooShort,         // a varbit longer than its field can hold
    ParserTimeout,          // more parsing steps than the target allows
    ParserInvalidArgument   // a length that is no multiple of what the target handles
}

/// The packet as a parser sees it: a cursor that only moves forward.
extern packet_in {
    /// Fills a header of fixed size, makes it valid and moves behind it.
    void extract<T>(out T hdr);

    /// The same for a header with one varbit field, of the given width now.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);

    /// Reads what comes next without moving.
    T lookahead<T>();

    /// Skips.
    void advance(in bit<32> sizeInBits);

    /// Bytes in the whole packet; not every target knows before it has all of it.
    bit<32> length();
}

/// The packet as a deparser builds it, from the front.
extern packet_out {
    /// Appends a header that is valid; of a struct, stack or union its valid headers in order.
    void emit<T>(in T hdr);
}

/// Leaves the parser for `reject` with the error when the check is false.
extern void verify(in bool check, in error toSignal);

/// The action that does nothing: every table's default unless it names another.
@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,    // value and mask
    lpm         // longest prefix
}

/// Checked by the compiler; a false one is a compile-time error that shows the message.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
