//! Many stacks as one tree: common frames once, sets on the branches.

use sdm_debug::rules::StackNode;
use sdm_idset::IdSet;

use super::label::Names;
use super::place;
use super::style::Style;
use crate::view::MergedStacks;

/// A node as it is shown.
struct Node<'a> {
    of: &'a StackNode,
    below: Vec<Node<'a>>,
}

/// The lines of a tree.
pub(crate) fn lines(merged: &MergedStacks, names: &Names, style: &Style) -> Vec<String> {
    let MergedStacks { tasks, tree } = merged;
    let mut writer = Writer {
        names,
        style,
        whole: tasks.len(),
        lines: Vec::new(),
    };
    for root in &sorted(&tree.roots) {
        writer.branch(root, "", "", tree.roots.len() > 1);
    }
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
            &format!("{count} threads in further stacks; ask fewer of them"),
        );
    }
    if tree.helpers > 0 {
        let threads = if tree.helpers == 1 {
            "thread"
        } else {
            "threads"
        };
        let count = tree.helpers;
        say(
            tasks,
            &format!("{count} helper {threads} of a runtime left out"),
        );
    }
    lines
}

/// Biggest first; of equal ones the one with the smallest task first.
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
    lines: Vec<String>,
}

impl Writer<'_> {
    /// A node with its set, the frames that follow without a fork, then its branches.
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
            place::stack_frame(&node.of.frame)
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
            let text = place::stack_frame(&node.of.frame);
            self.lines.push(format!("{below}{bar}{text}"));
        }
        let ends_here = !node.of.here.is_empty() && !node.below.is_empty();
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
            let head = self.head(&node.of.here, 0);
            let mark = self.mark(&node.of.here);
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
    use sdm_debug::reply::{StackFrame, TaskStacks, ThreadStack};

    use crate::view::Gathered;

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
ranks 0-1 (2): 4 helper threads of a runtime left out",
        );
    }
}
