//! What programs were at their end: core files.

use sdm_debug::Command;
use sdm_debug::command::CoreSpec;
use sdm_idset::{IdSet, TaskId};
use sdm_session::Debug;
use sdm_view::item::{Gathered, Happening, Item};

use super::flow::StacksCode;
use super::gather::Merged;
use super::{Shell, Verdict};

impl<D: Debug> Shell<D> {
    /// Opens core files, all at once, and shows where they are; false where none could be opened.
    pub fn open_cores(&mut self, spec: CoreSpec) -> bool {
        self.show_start_of_cores(&spec);
        let tasks = tasks_of(&spec);
        let (_, open) = self.ask_quietly("core", &tasks, &Command::LoadCore(spec));
        let Some(open) = open else {
            return false;
        };
        let opened = open.done();
        if open.has_failed() {
            self.show(&Item::Answer(open.gathered));
        }
        for row in self.tasks.rows_of(&opened) {
            if let Some(what) = row.last {
                self.notices.push(self.now(), &row.tasks, what);
            }
        }
        self.show_held();
        !opened.is_empty() && self.over.is_none()
    }

    /// Shows how processes ended and their merged stacks, by their core files, so many at a time.
    pub fn show_cores(&mut self, spec: &CoreSpec, full: bool, at_once: usize) -> StacksCode {
        self.show_start_of_cores(spec);
        let mut code = StacksCode::Agree;
        let mut ends: Merged<Happening> = Merged::new();
        let mut all = Gathered {
            command: "stacks".to_owned(),
            to: tasks_of(spec),
            ..Gathered::default()
        };
        for (index, part) in spec.cores.chunks(at_once.max(1)).enumerate() {
            let line = format!("core: {}/{} read", index * at_once, spec.cores.len());
            self.view.status(Some(&line));
            let part = CoreSpec {
                cores: part.to_vec(),
                ..spec.clone()
            };
            if self.add_cores(part, full, &mut ends, &mut all) != Verdict::Done {
                code = StacksCode::Error;
            }
            if self.over.is_some() {
                return StacksCode::Error;
            }
        }
        self.view.status(None);
        self.view.group(true);
        for (tasks, what) in ends.take_biggest_first() {
            self.show(&Item::Happened { tasks, what });
        }
        self.view.group(false);
        let differ = all.stacks().is_some_and(|stacks| !stacks.agree());
        if differ && code == StacksCode::Agree {
            code = StacksCode::Differ;
        }
        self.show(&super::run::answer(all, full));
        code
    }

    /// Opens some core files, adds how each ended and its stacks, and lets them go.
    fn add_cores(
        &mut self,
        spec: CoreSpec,
        full: bool,
        ends: &mut Merged<Happening>,
        all: &mut Gathered,
    ) -> Verdict {
        let tasks = tasks_of(&spec);
        let (opening, open) = self.ask_quietly("core", &tasks, &Command::LoadCore(spec));
        let opened = match open {
            Some(open) => {
                let opened = open.done();
                add(all, open.gathered);
                opened
            }
            None => IdSet::new(),
        };
        if opened.is_empty() || self.over.is_some() {
            return Verdict::Failed;
        }
        for row in self.tasks.rows_of(&opened) {
            if let Some(what) = row.last {
                ends.push(row.tasks, what);
            }
        }
        let (looking, open) = self.ask_quietly("stacks", &opened, &Command::Stacks { full });
        if let Some(open) = open {
            add(all, open.gathered);
        }
        let (leaving, _) = self.ask_quietly("detach", &opened, &Command::Detach);
        let done = [opening, looking, leaving]
            .iter()
            .all(|verdict| *verdict == Verdict::Done);
        if done { Verdict::Done } else { Verdict::Failed }
    }

    fn show_start_of_cores(&mut self, spec: &CoreSpec) {
        let program = String::from_utf8_lossy(&spec.program).into_owned();
        let item = Item::Start {
            session: self.debug.id().to_string(),
            tasks: self.debug.tasks().clone(),
            programs: vec![(self.debug.tasks().clone(), vec![program])],
            pids: Vec::new(),
        };
        self.show(&item);
    }
}

fn tasks_of(spec: &CoreSpec) -> IdSet {
    spec.cores.iter().map(|(task, _)| TaskId(*task)).collect()
}

/// Answers of further tasks.
fn add(all: &mut Gathered, more: Gathered) {
    all.ok.extend(more.ok);
    all.merged.extend(more.merged);
    for (tasks, failure) in more.failed {
        super::gather::join(&mut all.failed, &tasks, failure);
    }
    all.others.union_with(&more.others);
    all.missing.extend(more.missing);
    all.lost.union_with(&more.lost);
}
