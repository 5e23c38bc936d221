//! The tree of a profile by functions, regardless of lines.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sdm_debug::reply::StackFrame;
use sdm_idset::IdSet;

use crate::render::{printable, stack_frame};

/// A function with one chain of callers, regardless of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileNode {
    /// The function, with the first of its sampled lines, or 0.
    pub frame: StackFrame,
    /// The last of its sampled lines.
    pub last_line: u32,
    /// The tasks that were in the frame or in its callees.
    pub tasks: IdSet,
    /// Number of samples in the function or its callees.
    pub times: u64,
    /// Number of samples in which it was the innermost frame.
    pub here: u64,
    /// Number of samples in each part of the time, up to the last part with one. Empty in the tree of some of the tasks.
    pub parts: Vec<u64>,
    /// The callees, most frequent first.
    pub below: Vec<ProfileNode>,
}

impl ProfileNode {
    /// The function, and the range of its sampled lines: `relax () at solver.c:12-19`.
    #[must_use]
    pub fn place(&self) -> String {
        let place = stack_frame(&self.frame);
        match self.last_line > self.frame.line && !self.frame.file.is_empty() {
            true if self.frame.line > 0 => {
                printable(format!("{place}-{}", self.last_line).as_bytes())
            }
            _ => place,
        }
    }

    /// Visits every node, parents first, with its depth from 0.
    pub fn walk<'a>(nodes: &'a [Self], visit: &mut impl FnMut(usize, &'a Self)) {
        let mut open: Vec<(usize, &Self)> = nodes.iter().rev().map(|node| (0, node)).collect();
        while let Some((depth, node)) = open.pop() {
            visit(depth, node);
            open.extend(node.below.iter().rev().map(|node| (depth + 1, node)));
        }
    }
}

/// A stack with the number of its samples, its tasks, and the number of its samples in each part of the time.
pub(super) type Stack<'a> = (&'a [StackFrame], u64, IdSet, &'a [u64]);

/// The nodes at a depth, for stacks that share all frames above.
pub(super) fn nodes(stacks: &[Stack<'_>], depth: usize) -> Vec<ProfileNode> {
    let mut groups: BTreeMap<[&str; 3], Vec<Stack<'_>>> = BTreeMap::new();
    for stack in stacks {
        if let Some(frame) = stack.0.get(depth) {
            let key = [&frame.module, &frame.function, &frame.file].map(String::as_str);
            groups.entry(key).or_default().push(stack.clone());
        }
    }
    let mut nodes: Vec<ProfileNode> = groups.into_values().map(|it| node(&it, depth)).collect();
    nodes.sort_by_key(|node| (Reverse(node.times), node.tasks.first()));
    nodes
}

/// The node for stacks with the same functions up to a depth.
fn node(stacks: &[Stack<'_>], depth: usize) -> ProfileNode {
    let frames = || stacks.iter().map(|(frames, ..)| &frames[depth]);
    let lines = || frames().map(|frame| frame.line).filter(|line| *line > 0);
    let mut parts = Vec::new();
    for (.., of_stack) in stacks {
        parts.resize(parts.len().max(of_stack.len()), 0_u64);
        let pairs = parts.iter_mut().zip(*of_stack);
        pairs.for_each(|(part, times)| *part = part.saturating_add(*times));
    }
    let sum = |times: &mut dyn Iterator<Item = u64>| times.fold(0, u64::saturating_add);
    let ends = stacks
        .iter()
        .filter(|(frames, ..)| frames.len() == depth + 1);
    ProfileNode {
        frame: StackFrame {
            line: lines().min().unwrap_or(0),
            repeat: 1,
            ..stacks[0].0[depth].clone()
        },
        last_line: lines().max().unwrap_or(0),
        tasks: IdSet::union_all(stacks.iter().map(|(_, _, who, _)| who)),
        times: sum(&mut stacks.iter().map(|(_, times, ..)| *times)),
        here: sum(&mut ends.map(|(_, times, ..)| *times)),
        parts,
        below: nodes(stacks, depth + 1),
    }
}
