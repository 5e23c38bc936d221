//! `save` writes breakpoints and sets as commands that create them again. `gcore` writes core files of
//! tasks.
use sdm_debug::Command;
use sdm_debug::written_files::Writing;
use sdm_idset::{IdSet, TaskId};
use sdm_view::item::{Gathered, Item};

use super::invocation::Invocation;
use super::model::goal::Goal;
use super::{SessionHandle, Verdict};

/// Maximum number of core files of one command.
const CORES_MAX: u64 = 256;

/// `save FILE`: writes commands that restore the breakpoints and sets.
pub(super) fn save(session: &SessionHandle, file: &str) -> Verdict {
    let text = session.read(|model| model.saved());
    let written = session.machine(|machine| machine.write_file(file.as_ref(), text.as_bytes()));
    match written {
        Ok(()) => Verdict::Done,
        Err(error) => session.complain(format!("save: {file}: {error}"), ""),
    }
}

/// `gcore FILE`: the tasks of the line write their core files at the same time, at most [`CORES_MAX`].
pub(super) async fn dump(session: &SessionHandle, said: &Invocation<'_>, file: &str) -> Verdict {
    if said.to.len() > CORES_MAX {
        return session.complain(
            format!("gcore: {} core files at once are too many", said.to.len()),
            "select ranks, at most 256 at a time: [3] gcore FILE",
        );
    }
    let line = |task: TaskId| format!("gcore {file}.{task}");
    one_each(session, said, line).await
}

/// A line that writes a file, if several tasks were to write one of the same name: each writes `FILE.RANK`, as a core
/// file. `None` for other commands.
pub(super) async fn one_file_each(
    session: &SessionHandle,
    said: &Invocation<'_>,
    command: &Command,
) -> Option<Verdict> {
    let Command::Console { line } = command else {
        return None;
    };
    let writing = Writing::parse(line).filter(|_| said.to.len() > 1)?;
    let named = |task: TaskId| writing.with_name(|file| format!("{file}.{task}"));
    named(said.to.first()?)?;
    let line = |task| named(task).unwrap_or_default();
    Some(one_each(session, said, line).await)
}

/// Sends each task a line of its own for gdb; shows the answers together.
async fn one_each(
    session: &SessionHandle,
    said: &Invocation<'_>,
    line: impl Fn(TaskId) -> String,
) -> Verdict {
    let mut asked = Vec::new();
    for task in &said.to {
        let command = Command::Console { line: line(task) };
        asked.push(session.send(said.line, &IdSet::single(task), &command));
    }
    let mut all = Gathered {
        command: said.line.to_owned(),
        to: said.to.clone(),
        ..Gathered::default()
    };
    let mut verdict = Verdict::Done;
    for id in asked {
        let waited = session.wait_for(&Goal::Answered(id), said.line, None).await;
        let Some(open) = session.take_answered(id, waited) else {
            continue;
        };
        if open.has_failed() {
            verdict = Verdict::Failed;
        }
        all.absorb(open.gathered);
    }
    session.show(&Item::Answer(all));
    verdict
}
