//! Core files: the ends of programs, and their stacks at that time.
use sdm_debug::Command;
use sdm_debug::command::CoreSpec;
use sdm_idset::{IdSet, TaskId};
use sdm_view::item::{Gathered, Happening, Item};

use super::exit::StacksCode;
use super::{SessionHandle, Verdict, notices};
use sdm_view::coalesce::Merged;

/// Opens all core files, and shows the positions of their processes. Returns false if none could be opened, or if the
/// session is over.
pub(super) async fn open_cores(session: &SessionHandle, spec: CoreSpec) -> bool {
    show_start_of_cores(session, &spec);
    let tasks = tasks_of(&spec);
    let (_, open) = session
        .ask_quietly("core", &tasks, &Command::LoadCore(spec))
        .await;
    let Some(open) = open else {
        return false;
    };
    let opened = open.done();
    if open.has_failed() {
        session.show(&Item::Answer(open.gathered));
    }
    notices::show_places(session, &opened);
    !opened.is_empty() && !session.is_over()
}

/// Reads core files, `at_once` of them at a time. Shows the ends of their processes and the merged stacks when all are
/// read.
pub(super) async fn show_cores(
    session: &SessionHandle,
    spec: &CoreSpec,
    full: bool,
    at_once: usize,
) -> StacksCode {
    show_start_of_cores(session, spec);
    let mut code = StacksCode::Agree;
    let mut ends: Merged<Happening> = Merged::new();
    let mut all = Gathered {
        command: "stacks".to_owned(),
        to: tasks_of(spec),
        ..Gathered::default()
    };
    for (index, part) in spec.cores.chunks(at_once.max(1)).enumerate() {
        let line = format!("core: {}/{} read", index * at_once, spec.cores.len());
        session.status(Some(&line));
        let part = CoreSpec {
            cores: part.to_vec(),
            ..spec.clone()
        };
        if add_cores(session, part, full, &mut ends, &mut all).await != Verdict::Done {
            code = StacksCode::Error;
        }
        if session.is_over() {
            return StacksCode::Error;
        }
    }
    session.status(None);
    let ends = ends.take_biggest_first().into_iter();
    let ends = ends.map(|(tasks, what)| Item::Happened { tasks, what });
    session.show_group(&ends.collect::<Vec<_>>());
    code = code.of_stacks(all.stacks().as_ref());
    session.show(&super::run::answer(all, full));
    code
}

/// Opens some core files, adds the ends and stacks of their processes, and closes the files.
async fn add_cores(
    session: &SessionHandle,
    spec: CoreSpec,
    full: bool,
    ends: &mut Merged<Happening>,
    all: &mut Gathered,
) -> Verdict {
    let tasks = tasks_of(&spec);
    let (opening, open) = session
        .ask_quietly("core", &tasks, &Command::LoadCore(spec))
        .await;
    let opened = match open {
        Some(open) => {
            let opened = open.done();
            all.absorb(open.gathered);
            opened
        }
        None => IdSet::new(),
    };
    if opened.is_empty() || session.is_over() {
        return Verdict::Failed;
    }
    for row in session.read(|model| model.tasks.rows_of(&opened)) {
        if let Some(what) = row.last {
            ends.push(row.tasks, what);
        }
    }
    let (looking, open) = session
        .ask_quietly("stacks", &opened, &Command::Stacks { full })
        .await;
    if let Some(open) = open {
        all.absorb(open.gathered);
    }
    let (leaving, _) = session
        .ask_quietly("detach", &opened, &Command::Detach)
        .await;
    let done = [opening, looking, leaving]
        .iter()
        .all(|verdict| *verdict == Verdict::Done);
    if done { Verdict::Done } else { Verdict::Failed }
}

fn show_start_of_cores(session: &SessionHandle, spec: &CoreSpec) {
    let program = String::from_utf8_lossy(&spec.program).into_owned();
    let item = Item::Start {
        session: session.session_name(),
        tasks: session.all(),
        programs: vec![(session.all(), vec![program])],
        pids: Vec::new(),
    };
    session.show(&item);
}

fn tasks_of(spec: &CoreSpec) -> IdSet {
    spec.cores.iter().map(|(task, _)| TaskId(*task)).collect()
}
