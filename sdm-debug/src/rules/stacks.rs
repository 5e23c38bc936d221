//! The merge rule for stacks: distinct stacks, and the tree of their common frames.

use std::cmp::Reverse;

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;
use xxhash_rust::xxh3::xxh3_64;

use super::capped::{Capped, CappedKey, TaskCount};
use super::coding::{Reader, Writer, is_merged};
use super::frames::{FramesReader, FramesWriter, cost};
use super::plain::MergedForm;
use super::rule_numbers::RULE_STACK_TREE;
use crate::fold::STACK_FRAMES_MAX;
use crate::reply::{Reply, StackFrame, TaskStacks};
use crate::wire;

/// The stacks of many tasks as one prefix tree.
///
/// On the wire the tree is its distinct stacks, each as its difference from the one before. The payload is `fe 01`,
/// helpers, a table of strings, cut, count and set of the others, then the stacks. A node's set is the union of the
/// sets of the stacks through it, and is computed for display.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StackTree {
    /// The outermost frames, ordered by descending number of tasks.
    pub roots: Vec<StackNode>,
    /// Tasks that have a thread without any frame.
    pub bare: IdSet,
    /// Number of threads that were left out, as helpers of a runtime or for lack of room, over all tasks.
    pub helpers: u64,
    /// Tasks with stacks that the merged answer has no room for.
    pub others: IdSet,
    /// Number of threads in the stacks that the merged answer has no room for.
    pub others_threads: u64,
}

/// A node of the tree: a frame with its callees.
#[derive(Clone, Debug, PartialEq)]
pub struct StackNode {
    /// The function and the line that all stacks of this node share.
    pub frame: StackFrame,
    /// Tasks that have a thread in this frame or in one that it called.
    pub tasks: IdSet,
    /// Number of threads of `tasks` in this frame or in one that it called, over all tasks.
    pub threads: u64,
    /// Tasks that have a thread with this innermost frame.
    pub here: IdSet,
    /// The frames that this frame called, those with most tasks first.
    pub children: Vec<StackNode>,
}

impl StackTree {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// The payload has no stacks.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload).map(|stacks| stacks.tree())
    }

    /// Visits every node, parents first, with its depth from 0.
    pub fn walk<'a>(&'a self, mut visit: impl FnMut(usize, &'a StackNode)) {
        let mut open: Vec<(usize, &StackNode)> = self.roots.iter().rev().map(|n| (0, n)).collect();
        while let Some((depth, node)) = open.pop() {
            visit(depth, node);
            open.extend(node.children.iter().rev().map(|n| (depth + 1, n)));
        }
    }
}

/// A stack, outermost frame first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stack(Vec<StackFrame>);

impl CappedKey for Stack {
    fn cost(&self) -> usize {
        cost(&self.0)
    }

    fn hash(&self) -> u64 {
        xxh3_64(&wire::encode(&self.0))
    }
}

/// The distinct stacks of many tasks, each with its tasks.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stacks {
    capped: Capped<Stack>,
    helpers: u64,
}

impl Stacks {
    /// The merged form of equal answers of these tasks.
    ///
    /// # Errors
    /// A stack is longer than allowed.
    pub fn of(tasks: &IdSet, own: &TaskStacks) -> Result<Self, Rejected> {
        let mut threads = own.threads.iter();
        if threads.any(|thread| thread.frames.len() > STACK_FRAMES_MAX) {
            return Err(Rejected("a stack has more frames than the maximum"));
        }
        let mut stacks = Self {
            helpers: u64::from(own.helpers).saturating_mul(tasks.len()),
            ..Self::default()
        };
        for thread in &own.threads {
            let held = TaskCount {
                tasks: tasks.clone(),
                count: u64::from(thread.count).saturating_mul(tasks.len()),
                at: 0,
            };
            stacks.capped.insert(Stack(thread.frames.clone()), &held);
        }
        Ok(stacks)
    }

    /// Merges in the stacks of other tasks.
    pub fn absorb(&mut self, other: Self) {
        self.helpers = self.helpers.saturating_add(other.helpers);
        self.capped.absorb(other.capped);
    }

    /// The tree of the stacks' common frames.
    #[must_use]
    pub fn tree(&self) -> StackTree {
        let mut stacks = sorted(&self.capped);
        let mut bare = IdSet::new();
        if let Some(([], held)) = stacks.first() {
            bare.clone_from(&held.tasks);
            stacks.remove(0);
        }
        StackTree {
            roots: nodes(&stacks, 0),
            bare,
            helpers: self.helpers,
            others: self.capped.others.clone(),
            others_threads: self.capped.others_count,
        }
    }
}

/// The stacks in the order of their frames, such that equal beginnings are adjacent.
fn sorted(capped: &Capped<Stack>) -> Vec<(&[StackFrame], &TaskCount)> {
    let mut stacks: Vec<_> = capped.entries().map(|(s, held)| (&s.0[..], held)).collect();
    stacks.sort_by(|a, b| a.0.cmp(b.0));
    stacks
}

/// The nodes at `depth` of sorted stacks. The stacks agree on all frames before and are longer than `depth`.
fn nodes(stacks: &[(&[StackFrame], &TaskCount)], depth: usize) -> Vec<StackNode> {
    let mut nodes = Vec::new();
    for group in stacks.chunk_by(|a, b| a.0[depth] == b.0[depth]) {
        // A stack that ends here sorts before those that continue.
        let ends = group.partition_point(|(frames, _)| frames.len() == depth + 1);
        let (ending, going_on) = group.split_at(ends);
        let children = self::nodes(going_on, depth + 1);
        let here = IdSet::union_all(ending.iter().map(|(_, held)| &held.tasks));
        let below = children.iter().map(|child| &child.tasks);
        nodes.push(StackNode {
            frame: group[0].0[depth].clone(),
            tasks: IdSet::union_all(below.chain([&here])),
            threads: group
                .iter()
                .fold(0, |sum, (_, held)| sum.saturating_add(held.count)),
            here,
            children,
        });
    }
    // Nodes of equal size keep the order of their frames.
    nodes.sort_by_key(|node: &StackNode| Reverse(node.tasks.len()));
    nodes
}

impl MergedForm for Stacks {
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload)
    }

    fn absorb(&mut self, other: Self) {
        Self::absorb(self, other);
    }

    fn write(self, bytes_max: usize) -> Vec<u8> {
        let Self { capped, helpers } = self;
        capped.within(bytes_max, |capped, named| write(capped, helpers, named))
    }
}

fn write(stacks: &Capped<Stack>, helpers: u64, named: bool) -> Vec<u8> {
    let mut writer = Writer::new(RULE_STACK_TREE);
    writer.number(helpers);
    let sorted = sorted(stacks);
    let mut frames_written = FramesWriter::default();
    let mut body = Writer { out: Vec::new() };
    stacks.write_rest(&mut body, named);
    body.size(sorted.len());
    for (frames, held) in sorted {
        frames_written.write(&mut body, frames);
        body.number(held.count);
        body.set(&held.tasks);
    }
    frames_written.write_texts(&mut writer);
    writer.fixed(&body.out);
    writer.out
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<Stacks, Rejected> {
    if !is_merged(payload) {
        return match wire::decode(payload) {
            Ok(Reply::Stacks(own)) => Stacks::of(sources, &own),
            _ => Err(Rejected("no stacks")),
        };
    }
    let mut reader = Reader::new(RULE_STACK_TREE, payload, sources)?;
    let helpers = reader.number()?;
    let mut frames = FramesReader::read_texts(&mut reader)?;
    let capped = Capped::read(&mut reader, |reader| {
        let stack = Stack(frames.read(reader)?);
        let count = reader.number()?;
        let tasks = reader.set()?;
        let held = TaskCount {
            tasks,
            count,
            at: 0,
        };
        Ok((stack, held))
    })?;
    reader.end()?;
    Ok(Stacks { capped, helpers })
}
