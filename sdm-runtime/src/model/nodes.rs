//! The states of nodes that follow from their processes: RUNNING_PROCESS where one lives (starting, running or
//! suspended), EXITED_PROCESS where some have ended and none lives, else NONE. Processes are counted node by node, by
//! range.

use roaring::RoaringBitmap;

use super::apply::Changed;
use super::column::{Column, Piece, ranges};
use super::states::{self, NodeProcesses};
use super::store::Store;
use crate::wire::event::Kind;

/// Category of a process's state, for the counts on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Live,
    Ended,
    Unknown,
}

impl Life {
    fn of(state: Option<i64>) -> Self {
        match state.and_then(|state| usize::try_from(state).ok()) {
            Some(state) if states::is_live(state) => Self::Live,
            Some(state) if states::has_ended(state) => Self::Ended,
            _ => Self::Unknown,
        }
    }
}

impl Store {
    /// True if setting an attribute of these processes can change a node's counts.
    pub(super) fn is_counted(
        &self,
        attribute: usize,
        cell: Option<i64>,
        ids: &RoaringBitmap,
    ) -> bool {
        if attribute != self.places.process {
            return attribute == self.places.node;
        }
        let groups = self.table(Kind::Process).groups(attribute, ids);
        let is_same = |from: Option<i64>| Life::of(from) == Life::of(cell);
        groups.into_iter().any(|(from, _)| !is_same(from))
    }

    /// Adds `by` to the counts of these processes on their nodes; adds nodes with changed counts to `touched`.
    pub(super) fn count(&mut self, ids: &RoaringBitmap, by: i64, touched: &mut RoaringBitmap) {
        let mut counts = Vec::new();
        let processes = self.table(Kind::Process);
        let Some(nodes) = processes.columns.get(&self.places.node) else {
            return;
        };
        for (state, alike) in processes.groups(self.places.process, ids) {
            let life = Life::of(state);
            if life == Life::Unknown {
                continue;
            }
            for (first, last) in ranges(&alike) {
                for piece in nodes.pieces(first, last) {
                    spread(&piece, |first, last, count| {
                        counts.push((life, first, last, count))
                    });
                }
            }
        }
        for (life, first, last, count) in counts {
            let column = if life == Life::Live {
                &mut self.live
            } else {
                &mut self.ended
            };
            add(column, first, last, by * count);
            touched.insert_range(first..=last);
        }
    }

    /// Sets the states of nodes that follow from their processes; adds nodes with a new state to `changed`.
    pub(super) fn settle(&mut self, touched: &RoaringBitmap, changed: &mut Changed) {
        let nodes = touched & &self.table(Kind::Node).ids;
        if nodes.is_empty() {
            return;
        }
        let running = some(&self.live, &nodes);
        let exited = some(&self.ended, &nodes) - &running;
        let none = &nodes - &running - &exited;
        let attribute = self.places.processes;
        for (ids, state) in [
            (running, Some(NodeProcesses::Running as i64)),
            (exited, Some(NodeProcesses::Exited as i64)),
            (none, None),
        ] {
            let others = self.table(Kind::Node).others(attribute, &ids, state);
            if !others.is_empty() {
                self.table_mut(Kind::Node).set(attribute, &others, state);
                *changed.entry(attribute).or_default() |= others;
            }
        }
    }
}

/// Those of `nodes` whose count is above 0.
fn some(counts: &Column, nodes: &RoaringBitmap) -> RoaringBitmap {
    let mut all = RoaringBitmap::new();
    for (count, nodes) in counts.groups(nodes) {
        if count.is_some_and(|count| count > 0) {
            all |= nodes;
        }
    }
    all
}

/// Calls `add` for each range of nodes in a piece of the column of the processes' nodes. Its arguments are the first
/// and the last node, and the number of the piece's processes on each.
fn spread(piece: &Piece, mut add: impl FnMut(u32, u32, i64)) {
    let node = |cell: i64| u32::try_from(cell).ok();
    if piece.step == 0 {
        if let Some(node) = node(piece.cell) {
            add(node, node, i64::from(piece.last - piece.first) + 1);
        }
        return;
    }
    let count = piece.last - piece.first + 1;
    let (whole, rest) = (count / piece.each, count % piece.each);
    let at = |block: u32| node(piece.cell + i64::from(piece.step) * i64::from(block));
    if piece.step == 1
        && whole > 0
        && let (Some(first), Some(last)) = (at(0), at(whole - 1))
    {
        add(first, last, i64::from(piece.each));
    } else {
        for node in (0..whole).filter_map(at) {
            add(node, node, i64::from(piece.each));
        }
    }
    if let Some(node) = at(whole).filter(|_| rest > 0) {
        add(node, node, i64::from(rest));
    }
}

/// Adds to the counts of nodes.
fn add(counts: &mut Column, first: u32, last: u32, by: i64) {
    let before: Vec<_> = counts.runs(first, last).collect();
    counts.write(first, last, by);
    for (first, last, count) in before {
        match count + by {
            0 => counts.erase(first, last),
            sum => counts.write(first, last, sum),
        }
    }
}
