//! Names, types, generics and constant evaluation: from the syntax tree to the typed program.
