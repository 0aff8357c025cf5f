//! The service `millrace`: what bmv2 has no call for.

/// Hands the calls of the service `millrace` to the macro `$make`: each as `fn name(id argument: type, ...) -> result,
/// exception;`. The types of the interface must be in scope.
#[macro_export]
macro_rules! millrace_calls {
    ($make:ident) => {
        $make! { "millrace" {
            fn swap_program(1 program: String, 2 keep: Keep) -> String, InvalidSwapOperation;
        }}
    };
}
