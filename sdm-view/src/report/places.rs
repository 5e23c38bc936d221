//! The call stacks in merged stacks, with the tasks that have each: the places of running tasks, and the selection of
//! tasks whose variables are read.

use sdm_debug::TaskState;
use sdm_debug::reply::StackFrame;
use sdm_debug::rules::{StackNode, StackTree};
use sdm_idset::IdSet;

use crate::coalesce::join;
use crate::item::{MergedStacks, RankRow};

/// Maximum number of call stacks of which all are read with their variables, if none of them is rare.
const PLACES_FEW: usize = 4;

/// A call stack, with the tasks that have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place<'a> {
    /// The tasks with this call stack.
    pub(super) tasks: &'a IdSet,
    /// The frames, outermost first.
    pub(super) frames: Vec<&'a StackFrame>,
}

/// All call stacks, most tasks first.
pub(super) fn places(tree: &StackTree) -> Vec<Place<'_>> {
    let mut found = Vec::new();
    let mut way: Vec<&StackNode> = Vec::new();
    tree.walk(|depth, node| {
        way.truncate(depth);
        way.push(node);
        if !node.here.is_empty() {
            found.push(Place {
                tasks: &node.here,
                frames: way.iter().map(|node| &node.frame).collect(),
            });
        }
    });
    found.sort_by(|a, b| {
        let size = b.tasks.len().cmp(&a.tasks.len());
        size.then(a.tasks.first().cmp(&b.tasks.first()))
    });
    found
}

/// Selects the sets of tasks whose variables are read: tasks with rare call stacks, rarest first. If none is rare and
/// there are few call stacks in total, all are selected. The sets are disjoint, and exclude tasks in `seen`.
#[must_use]
pub fn outliers(merged: &MergedStacks, seen: &IdSet) -> Vec<IdSet> {
    let places = places(&merged.tree);
    let few = merged.few();
    let is_few = |place: &Place<'_>| few.is_some_and(|few| place.tasks.len() <= few);
    let some_few = places.iter().any(is_few);
    let mut seen = seen.clone();
    let mut found = Vec::new();
    for place in places.iter().rev() {
        let wanted = match some_few {
            true => is_few(place),
            false => places.len() <= PLACES_FEW,
        };
        let new = place.tasks.difference(&seen);
        if wanted && !new.is_empty() {
            seen.union_with(&new);
            found.push(new);
        }
    }
    found
}

/// Divides the rows of running tasks by their places in these stacks. `looked` are the tasks that were read while they ran.
pub(super) fn placed(rows: Vec<RankRow>, tree: &StackTree, looked: &IdSet) -> Vec<RankRow> {
    let found = innermost(tree);
    let mut placed = Vec::new();
    for mut row in rows {
        let runs = row.state == TaskState::Running && row.last.is_none() && row.health.is_none();
        for (tasks, frame) in found.iter().filter(|_| runs) {
            let tasks = tasks.intersection(looked).intersection(&row.tasks);
            row.tasks.subtract(&tasks);
            if !tasks.is_empty() {
                placed.push(RankRow {
                    tasks,
                    place: Some(frame.clone()),
                    ..row.clone()
                });
            }
        }
        if !row.tasks.is_empty() {
            placed.push(row);
        }
    }
    placed.sort_by(|a, b| {
        let size = b.tasks.len().cmp(&a.tasks.len());
        size.then(a.tasks.first().cmp(&b.tasks.first()))
    });
    placed
}

/// The innermost frames, with the tasks in each. Of several threads of a task the main thread counts; a task with several
/// other call stacks has no place.
fn innermost(tree: &StackTree) -> Vec<(IdSet, StackFrame)> {
    let places = places(tree);
    let (mut seen, mut several) = (IdSet::new(), IdSet::new());
    for place in &places {
        several.union_with(&seen.intersection(place.tasks));
        seen.union_with(place.tasks);
    }
    let is_main = |place: &Place<'_>| {
        place
            .frames
            .first()
            .is_some_and(|frame| frame.function == "main")
    };
    let mut found = Vec::new();
    for place in &places {
        let tasks = match is_main(place) {
            true => place.tasks.clone(),
            false => place.tasks.difference(&several),
        };
        if let Some(frame) = place.frames.last().filter(|_| !tasks.is_empty()) {
            join(&mut found, &tasks, (*frame).clone());
        }
    }
    found
}
