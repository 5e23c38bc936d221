//! Stacks of many tasks as one tree: common frames once, with the sets of tasks at the branches.

use sdm_debug::reply::StackFrame;
use sdm_debug::rules::StackNode;
use sdm_idset::IdSet;
use sdm_text::{counted, printable};

use super::highlight;
use super::label::Names;
use super::place;
use super::style::Style;
use crate::item::MergedStacks;
use crate::readable;

/// A node to show.
struct Node<'a> {
    of: &'a StackNode,
    below: Vec<Node<'a>>,
}

/// Maximum numbers of branches per fork. The next smaller one is tried until the tree fits on the screen.
const BRANCHES: [usize; 9] = [32, 24, 16, 12, 8, 6, 4, 3, 2];

/// The lines of a tree, folded to fit on a screen. The largest and smallest branches of a fork are folded
/// last.
pub(crate) fn lines(merged: &MergedStacks, names: &Names, style: &Style) -> Vec<String> {
    let roots = sorted(&merged.tree.roots);
    let mut lines = lines_with(merged, &roots, names, style, usize::MAX);
    for branches in BRANCHES {
        if lines.len() <= style.rows {
            return lines;
        }
        lines = lines_with(merged, &roots, names, style, branches);
    }
    style.fit(lines)
}

fn lines_with(
    merged: &MergedStacks,
    roots: &[Node<'_>],
    names: &Names,
    style: &Style,
    branches_max: usize,
) -> Vec<String> {
    let MergedStacks { tasks, tree } = merged;
    let mut writer = Writer {
        names,
        style,
        whole: tasks.len(),
        few: merged.few(),
        branches_max,
        lines: Vec::new(),
    };
    writer.roots(roots);
    let mut lines = writer.lines;
    let mut say = |tasks: &IdSet, text: &str| {
        let who = names.label(tasks, style.set_width());
        lines.push(style.faint(&format!("{who}: {text}")));
    };
    if !tree.bare.is_empty() {
        say(&tree.bare, "a thread without any frame");
    }
    if !tree.others.is_empty() {
        let count = tree.others_threads;
        say(
            &tree.others,
            &format!(
                "{} in stacks that are not shown; select fewer ranks",
                counted(count, "thread")
            ),
        );
    }
    if tree.helpers > 0 {
        let threads = counted(tree.helpers, "helper thread");
        say(tasks, &format!("{threads} of a runtime not shown"));
    }
    lines
}

/// Nodes sorted by size, largest first, then by their smallest task.
fn sorted(nodes: &[StackNode]) -> Vec<Node<'_>> {
    let mut nodes: Vec<Node<'_>> = nodes
        .iter()
        .map(|of| Node {
            of,
            below: sorted(&of.children),
        })
        .collect();
    nodes.sort_by(|a, b| {
        let size = b.of.tasks.len().cmp(&a.of.tasks.len());
        let first = a.of.tasks.first().cmp(&b.of.tasks.first());
        size.then(first).then_with(|| a.of.frame.cmp(&b.of.frame))
    });
    nodes
}

struct Writer<'a> {
    names: &'a Names,
    style: &'a Style,
    whole: u64,
    few: Option<u64>,
    branches_max: usize,
    lines: Vec<String>,
}

/// An entry below a frame with several callees.
enum Branch<'a, 'n> {
    Node(&'a Node<'n>),
    /// Number of branches that are not shown, with their tasks.
    Folded(usize, IdSet),
    /// The tasks whose innermost frame is the one above.
    Here(&'a IdSet),
}

impl Writer<'_> {
    fn roots(&mut self, roots: &[Node<'_>]) {
        let branches = self.branches(roots);
        let mark = roots.len() > 1;
        for branch in &branches {
            self.one(branch, ("", ""), mark);
        }
    }

    /// The branches of a fork. If there are too many, the largest and smallest ones.
    fn branches<'a, 'n>(&self, nodes: &'a [Node<'n>]) -> Vec<Branch<'a, 'n>> {
        let count = nodes.len();
        let max = self.branches_max.max(2);
        if count <= max.saturating_add(1) {
            return nodes.iter().map(Branch::Node).collect();
        }
        let (first, rest) = nodes.split_at(max - max / 2);
        let (folded, last) = rest.split_at(rest.len() - max / 2);
        let tasks = IdSet::union_all(folded.iter().map(|node| &node.of.tasks));
        let first = first.iter().map(Branch::Node);
        let folded = Branch::Folded(folded.len(), tasks);
        first
            .chain([folded])
            .chain(last.iter().map(Branch::Node))
            .collect()
    }

    fn one(&mut self, branch: &Branch<'_, '_>, (lead, below): (&str, &str), mark: bool) {
        let text = match branch {
            Branch::Node(node) => return self.branch(node, lead, below, mark),
            Branch::Folded(count, tasks) => {
                let head = self.head(tasks, 0);
                let branches = counted(*count, "more branch");
                let text = format!("{head}: {branches}, not shown");
                self.style.faint(&text)
            }
            Branch::Here(tasks) => {
                let mark = self.mark(tasks);
                let head = self.style.label(&self.head(tasks, 0));
                format!("{head}: the stack ends here{mark}")
            }
        };
        self.lines.push(format!("{lead}{text}"));
    }

    /// Appends a node with its set, the chain of frames below it without a fork, and then its branches.
    fn branch(&mut self, node: &Node<'_>, lead: &str, below: &str, mark: bool) {
        let head = self.head(&node.of.tasks, node.of.threads);
        let mark = if mark {
            self.mark(&node.of.tasks)
        } else {
            String::new()
        };
        self.lines.push(format!(
            "{lead}{}: {}{mark}",
            self.style.label(&head),
            self.frame(&node.of.frame)
        ));
        let mut node = node;
        // Frames that all of them share need no set of their own.
        while let [only] = &node.below[..] {
            if !node.of.here.is_empty() || only.of.tasks != node.of.tasks {
                break;
            }
            node = only;
            let bar = if node.below.is_empty() {
                "   "
            } else {
                "│  "
            };
            let bar = if forks(node) { bar } else { "   " };
            let text = self.frame(&node.of.frame);
            self.lines.push(format!("{below}{bar}{text}"));
        }
        let mut branches = self.branches(&node.below);
        if !node.of.here.is_empty() && !node.below.is_empty() {
            branches.push(Branch::Here(&node.of.here));
        }
        let count = branches.len();
        for (index, branch) in branches.iter().enumerate() {
            let (fork, bar) = match index + 1 == count {
                true => ("└─ ", "   "),
                false => ("├─ ", "│  "),
            };
            let (lead, below) = (format!("{below}{fork}"), format!("{below}{bar}"));
            self.one(branch, (&lead, &below), count > 1);
        }
    }

    fn frame(&self, frame: &StackFrame) -> String {
        let name = |text: &str| printable(text.as_bytes());
        let text = place::stack_frame(frame);
        let function = name(&readable::function(&frame.function));
        highlight::place(self.style, &function, &name(&frame.file), text)
    }

    fn head(&self, tasks: &IdSet, threads: u64) -> String {
        let label = self.names.label(tasks, self.style.set_width());
        if threads <= tasks.len() {
            return label;
        }
        format!("{label}, {threads} threads")
    }

    /// The mark of a branch with few tasks, because users search for such branches. Empty for other branches.
    fn mark(&self, tasks: &IdSet) -> String {
        if self.few.is_none_or(|few| tasks.len() > few) {
            return String::new();
        }
        let text = format!("  <-- {} of {}", tasks.len(), self.whole);
        self.style.odd(&text)
    }
}

/// True if the chain of frames that begins here has a fork further down.
fn forks(node: &Node<'_>) -> bool {
    let mut node = node;
    loop {
        match &node.below[..] {
            [] => return false,
            [only] if node.of.here.is_empty() && only.of.tasks == node.of.tasks => node = only,
            _ => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sdm_debug::Reply;
    use sdm_debug::reply::{TaskStacks, ThreadStack};

    use crate::item::Gathered;

    fn stacks(places: &[(&str, u32)]) -> TaskStacks {
        let frames = places.iter().map(|(function, line)| {
            let file = if *line == 0 { "" } else { "halo.c" };
            StackFrame::own(*function, file, *line)
        });
        TaskStacks::of_main(frames.collect(), 0)
    }

    fn check(answers: &[(&str, TaskStacks)], expect: &str) {
        let class = |(set, stacks): &(&str, TaskStacks)| {
            (set.parse().unwrap(), Reply::Stacks(stacks.clone()))
        };
        let gathered = Gathered {
            ok: answers.iter().map(class).collect(),
            ..Gathered::default()
        };
        let merged = gathered.stacks().unwrap();
        let text = lines(&merged, &Names::ranks(), &Style::PLAIN).join("\n");
        assert_eq!(text, expect.trim_matches('\n'));
    }

    #[test]
    fn single_differing_rank_is_marked() {
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
    fn common_stack_prefix_is_shown_once() {
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
    fn rank_in_a_frame_without_callee_is_shown() {
        let (a, b) = ([("main", 80), ("f", 1)], [("main", 80)]);
        check(
            &[("0-2", stacks(&a)), ("3", stacks(&b))],
            "
ranks 0-3 (4): main () at halo.c:80
├─ ranks 0-2 (3): f () at halo.c:1
└─ rank 3: the stack ends here  <-- 1 of 4",
        );
    }

    #[test]
    fn threads_per_frame_are_counted() {
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
ranks 0-1 (2): 4 helper threads of a runtime not shown",
        );
    }
}
