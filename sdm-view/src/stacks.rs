//! The stacks of many tasks, merged to one tree.

use sdm_debug::fold::STOPPED;
use sdm_debug::rules::{StackNode, StackTree};
use sdm_idset::IdSet;

/// Stacks of many tasks as one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedStacks {
    /// The tasks of the stacks.
    pub tasks: IdSet,
    /// The merged stacks, outermost frames at the root.
    pub tree: StackTree,
}

impl MergedStacks {
    /// True if the threads of all tasks have the same call stacks.
    #[must_use]
    pub fn agree(&self) -> bool {
        let mut agree = self.tree.others.is_empty();
        agree &= self.tree.bare.is_empty() || self.tree.bare == self.tasks;
        self.tree.walk(|_, node| {
            agree &= node.tasks == self.tasks;
            agree &= node.here.is_empty() || node.here == self.tasks;
        });
        agree
    }

    /// False if a stack is incomplete, so that its outer frames may differ from the others'.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_cut = |root: &StackNode| root.frame.function.starts_with(STOPPED);
        !self.tree.roots.iter().any(is_cut)
    }

    /// Number of tasks up to which a call stack counts as rare. None if no call stack is frequent, or there are too few
    /// tasks.
    #[must_use]
    pub fn few(&self) -> Option<u64> {
        let whole = self.tasks.len();
        let few = (whole / 8).max(1);
        let mut most = 0;
        self.tree.walk(|_, node| most = most.max(node.here.len()));
        (whole >= 3 && most > few).then_some(few)
    }

    /// The distinct sets of tasks that share a call stack, largest first.
    #[must_use]
    pub fn places(&self) -> Vec<IdSet> {
        let mut places: Vec<IdSet> = Vec::new();
        self.tree.walk(|_, node| {
            if !node.here.is_empty() && !places.contains(&node.here) {
                places.push(node.here.clone());
            }
        });
        places.sort_by(|a, b| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
        places
    }
}
