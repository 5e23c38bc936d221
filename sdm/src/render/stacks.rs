//! Many stacks as one tree: common frames once, sets on the branches.

use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_idset::IdSet;

use super::label::Names;
use super::place;
use super::style::Style;

/// Merged stacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackTree {
    roots: Vec<Node>,
    tasks: IdSet,
    threads: u64,
    helpers: Vec<(u32, IdSet)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    frame: StackFrame,
    /// All who have it.
    tasks: IdSet,
    /// Those for whom it is the innermost one.
    here: IdSet,
    threads: u64,
    below: Vec<Node>,
}

impl StackTree {
    /// The tree of some distinct answers.
    #[must_use]
    pub fn build<'a>(answers: impl IntoIterator<Item = (&'a IdSet, &'a TaskStacks)>) -> Self {
        let mut tree = Self::default();
        for (tasks, stacks) in answers {
            tree.tasks.union_with(tasks);
            for thread in &stacks.threads {
                let threads = u64::from(thread.count) * tasks.len();
                tree.threads += threads;
                insert(&mut tree.roots, &thread.frames, tasks, threads);
            }
            if stacks.helpers > 0 {
                let known = tree.helpers.iter_mut().find(|(n, _)| *n == stacks.helpers);
                match known {
                    Some((_, set)) => set.union_with(tasks),
                    None => tree.helpers.push((stacks.helpers, tasks.clone())),
                }
            }
        }
        sort(&mut tree.roots);
        tree
    }

    /// True where there is no stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The lines of the tree.
    pub(super) fn lines(&self, names: &Names, style: &Style) -> Vec<String> {
        let mut writer = Writer {
            names,
            style,
            whole: self.tasks.len(),
            lines: Vec::new(),
        };
        for root in &self.roots {
            let mark = self.roots.len() > 1;
            writer.branch(root, "", "", mark);
        }
        let mut lines = writer.lines;
        for (count, tasks) in &self.helpers {
            let each = if tasks.len() > 1 { " each" } else { "" };
            let who = names.label(tasks, style.set_width());
            let threads = if *count == 1 { "thread" } else { "threads" };
            let text = format!("{who}: {count} helper {threads}{each} of a runtime left out");
            lines.push(style.faint(&text));
        }
        lines
    }
}

fn insert(nodes: &mut Vec<Node>, frames: &[StackFrame], tasks: &IdSet, threads: u64) {
    let Some((frame, deeper)) = frames.split_first() else {
        return;
    };
    let index = nodes
        .iter()
        .position(|node| node.frame == *frame)
        .unwrap_or_else(|| {
            nodes.push(Node {
                frame: frame.clone(),
                tasks: IdSet::new(),
                here: IdSet::new(),
                threads: 0,
                below: Vec::new(),
            });
            nodes.len() - 1
        });
    let node = &mut nodes[index];
    node.tasks.union_with(tasks);
    node.threads += threads;
    if deeper.is_empty() {
        node.here.union_with(tasks);
    }
    insert(&mut node.below, deeper, tasks, threads);
}

/// Biggest first; of equal ones the one with the smallest task first.
fn sort(nodes: &mut [Node]) {
    nodes.sort_by(|a, b| {
        let size = b.tasks.len().cmp(&a.tasks.len());
        let first = a.tasks.first().cmp(&b.tasks.first());
        size.then(first).then_with(|| a.frame.cmp(&b.frame))
    });
    for node in nodes {
        sort(&mut node.below);
    }
}

struct Writer<'a> {
    names: &'a Names,
    style: &'a Style,
    whole: u64,
    lines: Vec<String>,
}

impl Writer<'_> {
    /// A node with its set, the frames that follow without a fork, then its branches.
    fn branch(&mut self, node: &Node, lead: &str, below: &str, mark: bool) {
        let head = self.head(&node.tasks, node.threads);
        let mark = if mark {
            self.mark(&node.tasks)
        } else {
            String::new()
        };
        self.lines.push(format!(
            "{lead}{}: {}{mark}",
            self.style.label(&head),
            place::stack_frame(&node.frame)
        ));
        let mut node = node;
        // Frames that all of them share need no set of their own.
        while let [only] = &node.below[..] {
            if !node.here.is_empty() || only.tasks != node.tasks {
                break;
            }
            node = only;
            let bar = if node.below.is_empty() {
                "   "
            } else {
                "│  "
            };
            let bar = if forks(node) { bar } else { "   " };
            let text = place::stack_frame(&node.frame);
            self.lines.push(format!("{below}{bar}{text}"));
        }
        let ends_here = !node.here.is_empty() && !node.below.is_empty();
        let count = node.below.len() + usize::from(ends_here);
        for (index, child) in node.below.iter().enumerate() {
            let last = index + 1 == count;
            self.branch(
                child,
                &format!("{below}{}", if last { "└─ " } else { "├─ " }),
                &format!("{below}{}", if last { "   " } else { "│  " }),
                count > 1,
            );
        }
        if ends_here {
            let head = self.head(&node.here, 0);
            let mark = self.mark(&node.here);
            let head = self.style.label(&head);
            self.lines
                .push(format!("{below}└─ {head}: here, no further frame{mark}"));
        }
    }

    fn head(&self, tasks: &IdSet, threads: u64) -> String {
        let label = self.names.label(tasks, self.style.set_width());
        if threads <= tasks.len() {
            return label;
        }
        format!("{label}, {threads} threads")
    }

    /// A branch that only few took is what a person looks for.
    fn mark(&self, tasks: &IdSet) -> String {
        let few = (self.whole / 8).max(1);
        if self.whole < 3 || tasks.len() > few {
            return String::new();
        }
        let text = format!("  <-- {} of {}", tasks.len(), self.whole);
        self.style.odd(&text)
    }
}

/// True where branches follow somewhere below the chain that goes on here.
fn forks(node: &Node) -> bool {
    let mut node = node;
    loop {
        match &node.below[..] {
            [] => return false,
            [only] if node.here.is_empty() && only.tasks == node.tasks => node = only,
            _ => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_debug::reply::ThreadStack;

    fn stacks(places: &[(&str, u32)]) -> TaskStacks {
        let frames = places
            .iter()
            .map(|(function, line)| StackFrame {
                module: String::new(),
                function: (*function).to_owned(),
                file: if *line == 0 { "" } else { "halo.c" }.to_owned(),
                line: *line,
                repeat: 1,
            })
            .collect();
        TaskStacks {
            threads: vec![ThreadStack {
                count: 1,
                main: true,
                frames,
            }],
            helpers: 0,
        }
    }

    fn check(answers: &[(&str, TaskStacks)], expect: &str) {
        let sets: Vec<IdSet> = answers
            .iter()
            .map(|(set, _)| set.parse().unwrap())
            .collect();
        let pairs = sets
            .iter()
            .zip(answers)
            .map(|(set, (_, stacks))| (set, stacks));
        let tree = StackTree::build(pairs);
        let text = tree.lines(&Names::ranks(), &Style::PLAIN).join("\n");
        assert_eq!(text, expect.trim_matches('\n'));
    }

    #[test]
    fn one_rank_that_differs_stands_out() {
        let common = [("main", 80), ("exchange", 44), ("MPI_Recv", 0)];
        let other = [("main", 80), ("exchange", 51), ("report", 12)];
        check(
            &[("0-4,6-7", stacks(&common)), ("5", stacks(&other))],
            "
ranks 0-7 (8): main () at halo.c:80
├─ ranks 0-4,6-7 (7): exchange () at halo.c:44
│     MPI_Recv ()
└─ rank 5: exchange () at halo.c:51  <-- 1 of 8
      report () at halo.c:12",
        );
    }

    #[test]
    fn a_common_prefix_is_said_once() {
        let (a, b) = (
            [("main", 80), ("run", 3), ("f", 1)],
            [("main", 80), ("run", 3), ("g", 2)],
        );
        check(
            &[("0-1", stacks(&a)), ("2-3", stacks(&b))],
            "
ranks 0-3 (4): main () at halo.c:80
│  run () at halo.c:3
├─ ranks 0-1 (2): f () at halo.c:1
└─ ranks 2-3 (2): g () at halo.c:2",
        );
    }

    #[test]
    fn who_stands_in_a_frame_that_others_left_is_said() {
        let (a, b) = ([("main", 80), ("f", 1)], [("main", 80)]);
        check(
            &[("0-2", stacks(&a)), ("3", stacks(&b))],
            "
ranks 0-3 (4): main () at halo.c:80
├─ ranks 0-2 (3): f () at halo.c:1
└─ rank 3: here, no further frame  <-- 1 of 4",
        );
    }

    #[test]
    fn threads_are_counted() {
        let mut one = stacks(&[("main", 80)]);
        one.threads.push(ThreadStack {
            count: 3,
            main: false,
            frames: stacks(&[("worker", 7)]).threads[0].frames.clone(),
        });
        one.helpers = 2;
        check(
            &[("0-1", one)],
            "
ranks 0-1 (2): main () at halo.c:80
ranks 0-1 (2), 6 threads: worker () at halo.c:7
ranks 0-1 (2): 2 helper threads each of a runtime left out",
        );
    }
}
