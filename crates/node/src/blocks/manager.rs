//! Answers frames: a program does, or a client of the host link.

use super::register::half;
use super::{Load, NoProgram, Out, Program};
use crate::interface::Item;
use crate::model::{ManagerSpec, Placement};
use millrace_dataplane::EngineKind;
use std::collections::VecDeque;

/// A buffer of frames, and who answers them.
#[derive(Debug)]
pub struct Manager {
    buffer: VecDeque<Item>,
    most: usize,
    answerer: Answerer,
    taken: u64,
    lost: u64,
}

/// Who answers the frames of a buffer: a program, or a client of the host link. An answer leaves with the facts of its frame, its target
/// the output of the number of the frame's port.
#[derive(Debug)]
pub(crate) struct Answerer {
    program: Option<Program>,
    answers: u64,
}

impl Manager {
    /// A manager as the file has it.
    ///
    /// # Errors
    /// Its program cannot be had.
    pub fn new(spec: &ManagerSpec, load: Load<'_>) -> Result<Manager, NoProgram> {
        let answerer = Answerer::new(spec, Placement::Software, load)?;
        let most = spec.buffer as usize;
        Ok(Manager { buffer: VecDeque::new(), most, answerer, taken: 0, lost: 0 })
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
        self.answerer.has_program()
    }

    /// Who answers.
    pub(crate) fn answerer(&mut self) -> &mut Answerer {
        &mut self.answerer
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
            _ => self.answerer.read(word),
        }
    }
}

impl Answerer {
    /// Its program is in hardware where the buffer is.
    ///
    /// # Errors
    /// Its program cannot be had.
    pub(crate) fn new(
        spec: &ManagerSpec,
        placement: Placement,
        load: Load<'_>,
    ) -> Result<Answerer, NoProgram> {
        let make = |program| match placement {
            Placement::Software => Program::new(program, EngineKind::Interp, load),
            Placement::Hardware => Program::in_hardware(program, load),
        };
        Ok(Answerer { program: spec.program.as_ref().map(make).transpose()?, answers: 0 })
    }

    /// The program that answers.
    pub(crate) fn program(&mut self) -> Option<&mut Program> {
        self.program.as_mut()
    }

    /// Whether a program answers.
    pub(crate) fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// An answer from outside.
    pub(crate) fn answer(&mut self, mut item: Item) -> Item {
        self.answers += 1;
        item.facts.targets = 1u32.checked_shl(item.facts.port.into()).unwrap_or(0);
        item
    }

    /// Has the program answer a frame.
    pub(crate) fn work(&mut self, item: Item, now_ns: u64) -> Vec<Item> {
        let (mut sent, port) = (Out::new(), item.facts.port);
        if let Some(program) = &mut self.program {
            program.pass(port.into(), item, now_ns, &mut sent);
        }
        let answers = sent.into_iter().map(|(output, mut item)| {
            // By the port that the program chooses, which need not be the one that asked.
            item.facts.port = u16::try_from(output).unwrap_or(port);
            self.answer(item)
        });
        answers.collect()
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        match word {
            6 | 7 => half(self.answers, word),
            _ => 0,
        }
    }
}
