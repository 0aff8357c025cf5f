//! Calls out of compiled code: helpers at fixed addresses, and values in memory for them.

use super::Gen;
use super::fields::constant_memory;
use super::values::Val;
use crate::abi;
use crate::runtime::{Helper, prefetch_routine};
use cranelift_codegen::ir::{AbiParam, InstBuilder, SigRef, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use millrace_pipeline::Expr;
use std::mem::offset_of;

impl Gen<'_> {
    /// Calls a helper; all arguments and the result are `I64`. What helpers without a result give means nothing.
    pub(super) fn call(&mut self, helper: Helper, args: &[Value]) -> Value {
        let address = self.int(helper.address() as u64);
        self.call_address(address, args)
    }

    pub(super) fn call_address(&mut self, address: Value, args: &[Value]) -> Value {
        let signature = self.signature(args.len());
        let call = self.b.ins().call_indirect(signature, address, args);
        self.b.inst_results(call)[0]
    }

    /// Asks for the cache line at an address, which need not be valid.
    pub(super) fn prefetch(&mut self, address: Value) {
        let signature = *self.prefetch_signature.get_or_insert_with(|| {
            let mut signature = Signature::new(CallConv::PreserveAll);
            signature.params.push(AbiParam::new(types::I64));
            self.b.import_signature(signature)
        });
        let routine = self.int(prefetch_routine() as u64);
        self.b.ins().call_indirect(signature, routine, &[address]);
    }

    fn signature(&mut self, params: usize) -> SigRef {
        if let Some(signature) = self.signatures.get(&params) {
            return *signature;
        }
        let mut signature = Signature::new(self.target.default_call_conv);
        signature.params.resize(params, AbiParam::new(types::I64));
        signature.returns.push(AbiParam::new(types::I64));
        let signature = self.b.import_signature(signature);
        self.signatures.insert(params, signature);
        signature
    }

    /// The first argument of helpers that need the program's objects.
    pub(super) fn host(&mut self) -> Value {
        self.b.ins().load(types::I64, constant_memory(), self.env, offset_of!(abi::Env, host) as i32)
    }

    pub(super) fn now(&mut self) -> Value {
        self.b.ins().load(types::I64, constant_memory(), self.env, offset_of!(abi::Env, now_ns) as i32)
    }

    /// The bytes of the packet.
    pub(super) fn length(&mut self) -> Value {
        self.get(self.vars.len)
    }

    /// Hands values over as the arguments of a digest or a log line.
    pub(super) fn hand_over(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            let host = self.host();
            match self.eval(expr) {
                Val::Bool(truth) => {
                    let truth = self.b.ins().uextend(types::I64, truth);
                    self.call(Helper::ArgumentBool, &[host, truth]);
                }
                Val::Bits(num) => {
                    let width = self.int(u64::from(num.width));
                    let limbs = self.spill_number(0, &num);
                    self.call(Helper::ArgumentBits, &[host, width, limbs]);
                }
                Val::Varbit(pointer) => {
                    self.call(Helper::ArgumentVarbit, &[host, pointer]);
                }
            }
        }
    }
}
