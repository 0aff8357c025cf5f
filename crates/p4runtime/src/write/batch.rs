//! Applying the updates of a batch to a switch, and taking them back.

use super::one_shot::forget_one_shot;
use super::replication::ReplicationOp;
use super::{Op, TablesOp};
use crate::forwarding::Target;
use crate::refusal::Refusal;
use crate::shadow::{Before, Shadow};
use millrace_dataplane::{GroupWrite, ObjectRequest, Request};
use millrace_pipeline::{ProfileId, Program};
use millrace_state::{Journal, ObjectWrite, Tables, TablesHandle};
use std::iter::Peekable;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most updates that are decoded, and asked of the worker, at a time.
pub(crate) const CHUNK: usize = 64;
/// Cells of registers and meters that the worker is asked to write at a time, if it is not one update that has more of them.
const CELLS: u64 = 1 << 16;
/// How long updates are applied to tables until other clients, and other writers of tables, have their turn.
const TURN: Duration = Duration::from_millis(5);

/// What takes back what a batch has done so far. Its parts do not touch each other, so each is taken back by itself, the last
/// write first.
#[derive(Default)]
struct Back {
    tables: Journal,
    shadow: Vec<Before>,
    /// In the objects of the worker.
    objects: Vec<Vec<ObjectWrite>>,
    groups: Vec<GroupWrite>,
}

/// What any thread may write.
pub(crate) struct Site<'a> {
    pub(crate) tables: &'a mut Tables,
    /// The switch's time.
    pub(crate) now_ns: u64,
}

/// Where the updates of a batch go.
pub(super) struct Destination<'a> {
    pub(super) target: &'a Target,
    pub(super) program: Arc<Program>,
    pub(super) tables: TablesHandle,
    /// The switch's time.
    pub(super) now_ns: u64,
}

/// A batch that is being applied.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) shadow: Shadow,
    /// What takes back what was done; none when nothing is ever taken back.
    back: Option<Back>,
    /// One-shot groups that nothing names any more when the batch stays.
    retired: Vec<(ProfileId, u32)>,
}

/// What the worker is asked to write to its objects at a time, as packets wait for it.
#[derive(Default)]
struct ObjectTurn {
    cells: u64,
}

impl ObjectTurn {
    /// Whether these writes have a place in it, too; the first have one in any case.
    fn takes(&mut self, writes: &[ObjectWrite]) -> bool {
        let cells = |write: &ObjectWrite| match write {
            ObjectWrite::Register { cells, .. }
            | ObjectWrite::Meter { cells, .. }
            | ObjectWrite::MeterCounts { cells, .. } => cells.end - cells.start,
            ObjectWrite::ReplaceValues(_, members) => members.len() as u64,
            _ => 1,
        };
        let is_first = self.cells == 0;
        // An update that writes nothing has its place as well.
        self.cells += writes.iter().map(cells).sum::<u64>().max(1);
        is_first || self.cells <= CELLS
    }
}

/// What became of updates.
type Results = Vec<Result<(), Refusal>>;

impl Change {
    pub(crate) fn new(shadow: Shadow, can_undo: bool) -> Change {
        Change { shadow, back: can_undo.then(Back::default), retired: Vec::new() }
    }

    /// Applies updates in order. With undoing, those after the first that fails may be left out.
    ///
    /// Neighbours that go to the same place go there together: tables are locked once for them, the worker is asked once. The server's
    /// thread, which is that of all clients, does other things in between.
    pub(super) async fn apply(
        &mut self,
        to: &Destination<'_>,
        ops: Vec<Result<Op, Refusal>>,
    ) -> Result<Results, tonic::Status> {
        let mut results = Results::with_capacity(ops.len());
        let mut ops = ops.into_iter().peekable();
        while ops.peek().is_some() {
            let begun = results.len();
            while let Some(refused) = ops.next_if(Result::is_err) {
                results.push(refused.map(drop));
            }
            self.apply_to_tables(to, &mut ops, &mut results);
            tokio::task::yield_now().await;
            let mut turn = ObjectTurn::default();
            let objects = std::iter::from_fn(|| {
                let has_room = |op: &Result<Op, Refusal>| match op {
                    Ok(Op::Objects(writes)) => turn.takes(writes),
                    _ => false,
                };
                match ops.next_if(has_room)? {
                    Ok(Op::Objects(writes)) => Some(writes),
                    _ => None,
                }
            });
            let objects: Vec<Vec<ObjectWrite>> = objects.collect();
            if !objects.is_empty() {
                results.extend(self.write_objects(to, objects).await?);
            }
            let groups =
                std::iter::from_fn(|| match ops.next_if(|op| matches!(op, Ok(Op::Replication(_))))? {
                    Ok(Op::Replication(op)) => Some(op),
                    _ => None,
                });
            let groups: Vec<ReplicationOp> = groups.collect();
            if !groups.is_empty() {
                results.extend(self.replicate(to, groups).await?);
            }
            if self.can_undo() && results[begun..].iter().any(Result::is_err) {
                break;
            }
        }
        Ok(results)
    }

    /// Applies the next updates that this thread can do, those of one turn.
    fn apply_to_tables(
        &mut self,
        to: &Destination<'_>,
        ops: &mut Peekable<impl Iterator<Item = Result<Op, Refusal>>>,
        results: &mut Results,
    ) {
        let mut tables = to.tables.lock();
        let Some(back) = &mut self.back else {
            return self.apply_all_here(&mut Site { tables: &mut tables, now_ns: to.now_ns }, ops, results);
        };
        let mut journal = std::mem::take(&mut back.tables);
        let mut recording = tables.record(&mut journal);
        self.apply_all_here(&mut Site { tables: &mut recording, now_ns: to.now_ns }, ops, results);
        drop(recording);
        self.back.iter_mut().for_each(|back| back.tables = std::mem::take(&mut journal));
    }

    fn apply_all_here(
        &mut self,
        site: &mut Site<'_>,
        ops: &mut Peekable<impl Iterator<Item = Result<Op, Refusal>>>,
        results: &mut Results,
    ) {
        let until = Instant::now() + TURN;
        while let Some(Ok(Op::Tables(op))) = ops.next_if(|op| matches!(op, Ok(Op::Tables(_)))) {
            let result = self.apply_here(site, op);
            let failed = result.is_err();
            results.push(result);
            if (failed && self.can_undo()) || Instant::now() >= until {
                return;
            }
        }
    }

    fn apply_here(&mut self, site: &mut Site<'_>, op: TablesOp) -> Result<(), Refusal> {
        match op {
            TablesOp::Entry(op) => op.apply(site, self),
            TablesOp::Default(op) => op.apply(site, self),
            TablesOp::DirectCounter(op) => op.apply(site),
            TablesOp::DirectMeter(op) => op.apply(site),
            TablesOp::Member(op) => op.apply(site, self),
            TablesOp::Group(op) => op.apply(site, self),
            TablesOp::Counter(op) => op.apply(site),
            TablesOp::Digest(op) => op.apply(self),
        }
    }

    /// Writes objects of the worker.
    async fn write_objects(
        &mut self,
        to: &Destination<'_>,
        lists: Vec<Vec<ObjectWrite>>,
    ) -> Result<Results, tonic::Status> {
        let program = Arc::clone(&to.program);
        let ask = |reply| Request::Objects(program, ObjectRequest::Write(lists, reply));
        let written = to.target.ask(ask).await?.map_err(Refusal::from)?;
        let mut done = |result: Result<Vec<ObjectWrite>, _>| {
            let back = result.map_err(Refusal::from)?;
            self.back.iter_mut().for_each(|all| all.objects.push(back.clone()));
            Ok(())
        };
        Ok(written.into_iter().map(&mut done).collect())
    }

    /// Writes multicast groups and clone sessions.
    async fn replicate(
        &mut self,
        to: &Destination<'_>,
        ops: Vec<ReplicationOp>,
    ) -> Result<Results, tonic::Status> {
        let writes = ops.iter().map(|op| op.write(&self.shadow)).collect();
        let written = to.target.ask(|reply| Request::Replicate(writes, reply)).await?;
        let mut done = |(op, result): (ReplicationOp, Result<GroupWrite, _>)| {
            let back = result.map_err(Refusal::from)?;
            self.back.iter_mut().for_each(|all| all.groups.push(back.clone()));
            op.remember(self);
            Ok(())
        };
        Ok(ops.into_iter().zip(written).map(&mut done).collect())
    }

    /// Takes everything back.
    pub(super) async fn roll_back(&mut self, to: &Destination<'_>) -> Result<(), tonic::Status> {
        self.retired.clear();
        let Some(Back { tables, mut shadow, mut objects, mut groups }) = self.back.take() else {
            return Ok(());
        };
        while let Some(before) = shadow.pop() {
            self.shadow.recall(before);
        }
        // What others have written over meanwhile stays theirs.
        let _ = to.tables.lock().take_back(tables);
        objects.reverse();
        while !objects.is_empty() {
            let mut turn = ObjectTurn::default();
            let count = objects.iter().take(CHUNK).take_while(|writes| turn.takes(writes)).count();
            let (part, program) = (objects.drain(..count).collect(), Arc::clone(&to.program));
            let ask = |reply| Request::Objects(program, ObjectRequest::Write(part, reply));
            let _ = to.target.ask(ask).await?;
        }
        groups.reverse();
        while !groups.is_empty() {
            let part = groups.drain(..groups.len().min(CHUNK)).collect();
            to.target.ask(|reply| Request::Replicate(part, reply)).await?;
        }
        Ok(())
    }

    /// The batch stays.
    pub(crate) fn commit(&mut self, tables: &mut Tables) {
        for (profile, group) in std::mem::take(&mut self.retired) {
            forget_one_shot(tables, &mut self.shadow, profile, group);
        }
    }

    pub(super) fn can_undo(&self) -> bool {
        self.back.is_some()
    }

    /// Notes what was remembered before an update.
    pub(super) fn note(&mut self, before: impl IntoIterator<Item = Before>) {
        if let Some(back) = &mut self.back {
            back.shadow.extend(before);
        }
    }

    /// A one-shot group lost its entry.
    pub(super) fn retire(&mut self, site: &mut Site<'_>, profile: ProfileId, group: u32) {
        match self.back {
            Some(_) => self.retired.push((profile, group)),
            None => forget_one_shot(site.tables, &mut self.shadow, profile, group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::{Bits, RegisterId};

    #[test]
    fn the_worker_writes_a_bounded_number_of_cells_at_a_time() {
        let write = |cells| {
            vec![ObjectWrite::Register { register: RegisterId::from_u32(0), cells, value: Bits::zero(8) }]
        };
        let taken = |each: u64| {
            let mut turn = ObjectTurn::default();
            (0..2 * CELLS).take_while(|_| turn.takes(&write(0..each))).count() as u64
        };
        assert_eq!(taken(1), CELLS);
        assert_eq!(taken(CELLS / 4), 4);
        assert_eq!([taken(CELLS), taken(16 * CELLS)], [1, 1]);
        assert_eq!(taken(0), CELLS);
        assert!(ObjectTurn::default().takes(&[]));
    }
}
