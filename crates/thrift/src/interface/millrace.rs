//! The service `millrace`: what bmv2 has no call for.

use super::types::*;

crate::call::service! { "millrace" {
    fn swap_program(1 program: String, 2 keep: Keep) -> String, InvalidSwapOperation;
}}
