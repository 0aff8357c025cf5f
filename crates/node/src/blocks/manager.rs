//! Answers frames: a program does, or a client of the host link.

use super::register::half;
use super::{Load, NoProgram, Out, Program};
use crate::interface::Item;
use crate::model::ManagerSpec;
use millrace_dataplane::EngineKind;
use std::collections::VecDeque;

/// A buffer of frames, and who answers them. An answer leaves with the facts of its frame, its target the output of the number of the
/// frame's port.
#[derive(Debug)]
pub struct Manager {
    buffer: VecDeque<Item>,
    most: usize,
    program: Option<Program>,
    taken: u64,
    lost: u64,
    answers: u64,
}

impl Manager {
    /// A manager as the file has it.
    ///
    /// # Errors
    /// Its program cannot be had.
    pub fn new(spec: &ManagerSpec, load: Load<'_>) -> Result<Manager, NoProgram> {
        let make = |program| Program::new(program, EngineKind::Interp, load);
        let program = spec.program.as_ref().map(make).transpose()?;
        let most = spec.buffer as usize;
        Ok(Manager { buffer: VecDeque::new(), most, program, taken: 0, lost: 0, answers: 0 })
    }

    /// A frame for the buffer; lost if that is full.
    pub fn put(&mut self, item: Item) -> bool {
        let has_room = self.buffer.len() < self.most;
        match has_room {
            true => {
                self.taken += 1;
                self.buffer.push_back(item);
            }
            false => self.lost += 1,
        }
        has_room
    }

    /// The next frame of the buffer, for who answers from outside.
    pub fn take(&mut self) -> Option<Item> {
        self.buffer.pop_front()
    }

    /// Whether a program answers.
    pub fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// An answer from outside.
    pub fn answer(&mut self, mut item: Item) -> Item {
        self.answers += 1;
        item.facts.targets = 1u32.checked_shl(item.facts.port.into()).unwrap_or(0);
        item
    }

    /// Has the program answer the next frame of the buffer; false: there is none, or no program.
    pub(crate) fn work(&mut self, now_ns: u64, out: &mut Out) -> bool {
        let Some(program) = &mut self.program else { return false };
        let Some(item) = self.buffer.pop_front() else { return false };
        let (mut sent, port) = (Out::new(), item.facts.port);
        program.pass(port.into(), item, now_ns, &mut sent);
        for (output, mut item) in sent {
            // By the port that the program chooses, which need not be the one that asked.
            item.facts.port = u16::try_from(output).unwrap_or(port);
            out.push((0, self.answer(item)));
        }
        true
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        match word {
            0 => self.buffer.len() as u32,
            2 | 3 => half(self.taken, word),
            4 | 5 => half(self.lost, word),
            6 | 7 => half(self.answers, word),
            _ => 0,
        }
    }
}
