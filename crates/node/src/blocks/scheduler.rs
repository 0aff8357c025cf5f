//! Chooses among queues.

use super::register::Refusal;
use crate::limits::MAX_QUANTUM;
use crate::model::{Discipline, SchedulerSpec};
use std::collections::VecDeque;

/// Chooses which of its queues gives the next frame. The discipline and the quanta change while it runs.
///
/// Queues that have frames stand in a ring, in which one that becomes ready comes last, whatever the discipline. In round robin the
/// first gives a frame and goes to the end. In deficit round robin the first gets its quantum once a turn and gives frames while its
/// deficit covers the one at its head; then it goes to the end, and the next one is looked at. A queue that is the second to be looked
/// at, or alone, gives its frame even if its quantum does not cover it, and has no deficit then. A queue that runs empty loses its
/// deficit, and under another discipline all do.
#[derive(Clone, Debug)]
pub struct Scheduler {
    discipline: Discipline,
    quanta: Vec<u32>,
    counts: Vec<u32>,
    deficits: Vec<u64>,
    ring: VecDeque<usize>,
    /// The first in the ring has its quantum of this turn.
    given: bool,
}

impl Scheduler {
    /// A scheduler whose queues are empty.
    pub fn new(spec: &SchedulerSpec) -> Scheduler {
        let queues = spec.quanta.len();
        Scheduler {
            discipline: spec.discipline,
            quanta: spec.quanta.clone(),
            counts: vec![0; queues],
            deficits: vec![0; queues],
            ring: VecDeque::new(),
            given: false,
        }
    }

    /// A frame has come to a queue.
    pub fn came(&mut self, queue: usize) {
        if let Some(count) = self.counts.get_mut(queue) {
            *count += 1;
            if *count == 1 {
                self.ring.push_back(queue);
            }
        }
    }

    /// The queue whose first frame is next; `head` gives the bytes of that of each queue. The frame is to be taken.
    pub fn choose(&mut self, head: impl Fn(usize) -> u32) -> Option<usize> {
        let first = *self.ring.front()?;
        let choice = match self.discipline {
            Discipline::Priority => self.counts.iter().rposition(|count| *count > 0)?,
            Discipline::RoundRobin => first,
            Discipline::Deficit => self.by_deficit(first, head),
        };
        self.counts[choice] -= 1;
        let is_empty = self.counts[choice] == 0;
        if is_empty || self.discipline == Discipline::RoundRobin {
            self.ring.retain(|queue| *queue != choice);
        }
        if is_empty {
            self.deficits[choice] = 0;
        } else if self.discipline == Discipline::RoundRobin {
            self.ring.push_back(choice);
        }
        self.given = self.discipline == Discipline::Deficit && !is_empty;
        Some(choice)
    }

    fn by_deficit(&mut self, first: usize, head: impl Fn(usize) -> u32) -> usize {
        let quantum = |queue: usize| u64::from(self.quanta[queue]);
        let own = self.deficits[first] + if self.given { 0 } else { quantum(first) };
        let covers = |deficit: u64, queue: usize| deficit >= u64::from(head(queue));
        let (choice, deficit) = match self.ring.get(1) {
            _ if covers(own, first) => (first, own),
            None => (first, own + quantum(first)),
            Some(second) => (*second, self.deficits[*second] + quantum(*second)),
        };
        if choice != first {
            self.deficits[first] = own;
            self.ring.rotate_left(1);
        }
        self.deficits[choice] = deficit.saturating_sub(u64::from(head(choice)));
        choice
    }

    /// The discipline.
    pub fn discipline(&self) -> Discipline {
        self.discipline
    }

    /// Sets the discipline.
    pub fn set_discipline(&mut self, discipline: Discipline) {
        self.discipline = discipline;
        if discipline != Discipline::Deficit {
            self.deficits.fill(0);
            self.given = false;
        }
    }

    /// The quantum of a queue, in bytes.
    pub fn quantum(&self, queue: usize) -> Option<u32> {
        self.quanta.get(queue).copied()
    }

    /// Sets the quantum of a queue; false: there is no such queue.
    pub fn set_quantum(&mut self, queue: usize, quantum: u32) -> bool {
        self.quanta.get_mut(queue).map(|known| *known = quantum).is_some()
    }

    pub(crate) fn read(&self, word: u32) -> u32 {
        match word.checked_sub(1) {
            None => self.discipline as u32,
            Some(queue) => self.quantum(queue as usize).unwrap_or(0),
        }
    }

    pub(crate) fn write(&mut self, at: u32, word: u32) -> Result<(), Refusal> {
        let Some(queue) = at.checked_sub(1) else {
            let known = Discipline::ALL.into_iter().find(|(_, discipline)| *discipline as u32 == word);
            let (_, discipline) = known.ok_or_else(|| {
                Refusal(format!(
                    "{word} is no discipline: 0 is priority, 1 round robin, 2 deficit round robin"
                ))
            })?;
            self.set_discipline(discipline);
            return Ok(());
        };
        let is_right = (1..=MAX_QUANTUM).contains(&word.into());
        match is_right && self.set_quantum(queue as usize, word) {
            true => Ok(()),
            false => Err(Refusal(format!("{word} is no quantum: 1 to {MAX_QUANTUM} bytes (MAX_QUANTUM)"))),
        }
    }

    /// How many queues it chooses among.
    pub fn queues(&self) -> usize {
        self.quanta.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of frames of these lengths, which all wait when the first is chosen.
    fn order(discipline: Discipline, quanta: &[u32], frames: &[(usize, u32)]) -> Vec<usize> {
        let mut scheduler = Scheduler::new(&SchedulerSpec { discipline, quanta: quanta.to_vec() });
        let mut queues: Vec<VecDeque<u32>> = vec![VecDeque::new(); quanta.len()];
        for (queue, length) in frames {
            queues[*queue].push_back(*length);
            scheduler.came(*queue);
        }
        let mut order = Vec::new();
        while let Some(queue) = scheduler.choose(|queue| queues[queue].front().copied().unwrap_or(0)) {
            queues[queue].pop_front().unwrap();
            order.push(queue);
        }
        assert!(queues.iter().all(VecDeque::is_empty));
        order
    }

    #[test]
    fn each_discipline_has_its_order() {
        let frames = [(0, 100), (0, 100), (0, 100), (1, 100), (1, 100), (2, 300)];
        assert_eq!(order(Discipline::Priority, &[1, 1, 1], &frames), [2, 1, 1, 0, 0, 0]);
        assert_eq!(order(Discipline::RoundRobin, &[1, 1, 1], &frames), [0, 1, 2, 0, 1, 0]);
        // Queue 0 sends two frames a turn, queue 1 one, and queue 2 has one of three quanta of 100.
        assert_eq!(order(Discipline::Deficit, &[200, 100, 300], &frames), [0, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn the_discipline_changes_while_frames_wait() {
        let spec = SchedulerSpec { discipline: Discipline::RoundRobin, quanta: vec![100, 100] };
        let mut scheduler = Scheduler::new(&spec);
        [0, 0, 0, 1, 1, 1].into_iter().for_each(|queue| scheduler.came(queue));
        let next = |scheduler: &mut Scheduler| scheduler.choose(|_| 100);
        assert_eq!(next(&mut scheduler), Some(0));
        scheduler.set_discipline(Discipline::Priority);
        assert_eq!([next(&mut scheduler), next(&mut scheduler)], [Some(1), Some(1)]);
        scheduler.set_discipline(Discipline::Deficit);
        assert!(scheduler.set_quantum(0, 200) && !scheduler.set_quantum(2, 1));
        assert_eq!([0, 1, 2].map(|_| next(&mut scheduler)), [Some(1), Some(0), Some(0)]);
        assert_eq!(next(&mut scheduler), None);
    }
}
