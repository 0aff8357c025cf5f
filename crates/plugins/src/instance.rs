//! One worker's instance of a plugin, and a call of it.

use crate::area::{self, DROP, REPLY, REWRITTEN};
use crate::code::{Code, Held, LoadError};
use crate::{Grants, MAX_BYTES, MAX_TABLE, MAX_WORDS};
use std::ops::Range;
use wasmtime::{Memory, Store, StoreLimitsBuilder, Trap, TypedFunc};

/// A module with a memory of its own.
pub(crate) struct Instance {
    store: Store<Held>,
    memory: Memory,
    call: TypedFunc<(), i32>,
    /// Where the area is; it is in the memory, which never shrinks.
    area: Range<usize>,
    /// The buffer for the payload.
    payload: Range<usize>,
    /// The buffer for a packet of its own.
    reply: Range<usize>,
    fuel: u64,
    code: Code,
}

/// Why a call gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It trapped, or the answer was none.
    Trap,
    /// It had used its fuel up.
    OverBudget,
}

/// What a call gave: ranges of the memory.
pub(crate) struct Answer {
    pub(crate) drop: bool,
    /// The bytes of the payload that are replaced, and by what.
    pub(crate) payload: Option<(usize, Range<usize>)>,
    pub(crate) reply: Option<Range<usize>>,
    pub(crate) fuel: u64,
}

impl Instance {
    /// An instance, which has described itself.
    pub(crate) fn new(code: &Code) -> Result<Instance, LoadError> {
        let refused = |error: wasmtime::Error| LoadError::Instance(format!("{error:#}"));
        let limits = StoreLimitsBuilder::new()
            .memory_size(code.settings.memory)
            .table_elements(MAX_TABLE)
            .instances(1)
            .memories(1)
            .tables(1)
            .build();
        let mut store = Store::new(&code.engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(code.settings.fuel).map_err(refused)?;
        let instance = code.made_of.instantiate(&mut store).map_err(refused)?;
        let memory = instance.get_memory(&mut store, "memory").ok_or(LoadError::Export("a memory"))?;
        let describe = instance.get_typed_func::<(), i32>(&mut store, "millrace_area").map_err(refused)?;
        let call = instance.get_typed_func::<(), i32>(&mut store, "millrace_call").map_err(refused)?;
        let start = describe.call(&mut store, ()).map_err(refused)? as u32;
        let data = memory.data(&store);
        let within = |at: u32, bytes: usize, what: &str| {
            let range = at as usize..at as usize + bytes;
            match range.end <= data.len() {
                true => Ok(range),
                false => Err(LoadError::Instance(format!("its {what} is not in its memory"))),
            }
        };
        let area = within(start, area::SIZE, "area")?;
        let described = &data[area.clone()];
        let version = area::get(described, 0);
        if version != area::VERSION {
            let why = format!("its area has version {version}, not {}", area::VERSION);
            return Err(LoadError::Instance(why));
        }
        let buffer = |room: usize, at: usize, what: &str| {
            let room = area::get(described, room) as usize;
            if room > MAX_BYTES {
                let why = format!("its {what} has {room} bytes, and at most {MAX_BYTES} may be");
                return Err(LoadError::Instance(why));
            }
            within(area::get(described, at), room, what)
        };
        let payload = buffer(area::PAYLOAD_ROOM, area::PAYLOAD_AT, "buffer for the payload")?;
        let reply = buffer(area::REPLY_ROOM, area::REPLY_AT, "buffer for a packet")?;
        let fuel = code.settings.fuel;
        Ok(Instance { store, memory, call, area, payload, reply, fuel, code: code.clone() })
    }

    /// The same once more.
    pub(crate) fn again(&self) -> Result<Instance, LoadError> {
        Instance::new(&self.code)
    }

    /// The bytes of the memory.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.memory.data(&self.store).get(range).unwrap_or(&[])
    }

    /// The bounds it was made with.
    pub(crate) fn settings(&self) -> &crate::Settings {
        &self.code.settings
    }

    /// Calls the plugin for a packet. After a failure the instance is not to be used any more.
    pub(crate) fn call(
        &mut self,
        ins: &[u64],
        outs: &mut [u64],
        payload: &[u8],
        grants: Grants,
    ) -> Result<Answer, Failure> {
        let seen = payload.len().min(self.payload.len());
        let data = self.memory.data_mut(&mut self.store);
        if let (Some(buffer), Some(bytes)) =
            (data.get_mut(self.payload.start..self.payload.start + seen), payload.get(..seen))
        {
            buffer.copy_from_slice(bytes);
        }
        let area = data.get_mut(self.area.clone()).ok_or(Failure::Trap)?;
        write(area, ins, outs.len(), (seen, payload.len()), grants);
        if self.store.set_fuel(self.fuel).is_err() {
            return Err(Failure::Trap);
        }
        let answered = self.call.call(&mut self.store, ());
        let left = self.store.get_fuel().unwrap_or(0);
        let answer = match answered {
            Ok(answer) => answer,
            Err(error) if matches!(error.downcast_ref(), Some(Trap::OutOfFuel)) => {
                return Err(Failure::OverBudget);
            }
            Err(_) => return Err(Failure::Trap),
        };
        self.read(answer, outs, seen, grants, self.fuel.saturating_sub(left))
    }

    /// The answer, if it is one.
    fn read(
        &self,
        answer: i32,
        outs: &mut [u64],
        seen: usize,
        grants: Grants,
        fuel: u64,
    ) -> Result<Answer, Failure> {
        if answer & !(DROP | REWRITTEN | REPLY) != 0 || (answer & REWRITTEN != 0 && !grants.rewrite) {
            return Err(Failure::Trap);
        }
        let area = self.bytes(self.area.clone());
        let words = area.get(area::OUT_WORDS..).unwrap_or(&[]);
        for (word, bytes) in outs.iter_mut().zip(words.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        let part = |asked: i32, of: &Range<usize>, len: usize| {
            if answer & asked == 0 {
                return Ok(None);
            }
            let len = area::get(area, len) as usize;
            match len <= of.len() {
                true => Ok(Some(of.start..of.start + len)),
                false => Err(Failure::Trap),
            }
        };
        let payload = part(REWRITTEN, &self.payload, area::PAYLOAD_LEN)?.map(|bytes| (seen, bytes));
        let reply = part(REPLY, &self.reply, area::REPLY_LEN)?;
        Ok(Answer { drop: answer & DROP != 0, payload, reply, fuel })
    }
}

/// Writes what a call is about.
fn write(area: &mut [u8], ins: &[u64], outs: usize, (seen, total): (usize, usize), grants: Grants) {
    let (ins, outs) = (&ins[..ins.len().min(MAX_WORDS)], outs.min(MAX_WORDS));
    area::put(area, area::PAYLOAD_LEN, seen as u32);
    area::put(area, area::PAYLOAD_TOTAL, total as u32);
    area::put(area, area::REPLY_LEN, 0);
    area::put(area, area::MAY_REWRITE, grants.rewrite.into());
    area::put(area, area::INS, ins.len() as u32);
    area::put(area, area::OUTS, outs as u32);
    let words = area.get_mut(area::IN_WORDS..area::OUT_WORDS).unwrap_or(&mut []);
    for (bytes, word) in words.chunks_exact_mut(8).zip(ins) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    if let Some(words) = area.get_mut(area::OUT_WORDS..area::OUT_WORDS + 8 * outs) {
        words.fill(0);
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("code", &self.code).finish_non_exhaustive()
    }
}
