//! Starts a program, and runs it to `main` or without a stop.

use sdm_text::printable;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sdm_check::Suppressions;
use sdm_core::CommandId;
use sdm_debug::command::StopAt;
use sdm_debug::event::Phase;
use sdm_debug::{Event, Failure, FailureCode, TaskState};

use super::breakpoints::insert_kept;
use super::end::not_begun;
use super::run::begin;
use crate::action::Action;
use crate::answer::Answer;
use crate::gdb::Gdb;
use crate::state::activity::RunKind;
use crate::state::breakpoints::SavedBreakpoint;
use crate::state::origin::Wrapped;
use crate::state::signals::PASSED;
use crate::text::base_name;
use crate::text::console_line;
use crate::text::{console_bytes, with_path};
use crate::wording::names;
use sdm_child::Launch;

/// Input for gdb before the program runs.
#[derive(Debug, Default, PartialEq)]
pub struct StartInput {
    /// Lines for gdb's command line.
    pub settings: Vec<String>,
    /// The breakpoints that exist from the start.
    pub breakpoints: Vec<SavedBreakpoint>,
    /// Suppressions for the check of the use of MPI; `None` without that check.
    pub check: Option<Suppressions>,
}

pub(crate) async fn start(
    gdb: Gdb,
    id: CommandId,
    launch: Launch,
    stop: StopAt,
    before: StartInput,
) {
    let result = run_program(&gdb, id, &launch, stop, before).await;
    // The program has opened its streams, or will never do so.
    gdb.edit().actions.push_back(Action::ProgramOpened);
    let Err(failure) = result else {
        return;
    };
    let task = gdb.get().activity.task();
    let failure = if task.is_live() {
        not_begun(&gdb);
        failure
    } else if task == TaskState::GdbDead {
        failure
    } else {
        Failure::new(
            FailureCode::NotRunning,
            "the program was killed before it ran",
        )
    };
    gdb.answer(id, Err(failure));
}

async fn run_program(
    gdb: &Gdb,
    id: CommandId,
    launch: &Launch,
    stop: StopAt,
    before: StartInput,
) -> Result<(), Failure> {
    let StartInput {
        settings,
        breakpoints,
        check,
    } = before;
    gdb.edit().breakpoints.check = check;
    let program = launch.program.as_os_str().as_bytes();
    let name = printable(program);
    gdb.edit().program_name = base_name(&name).to_owned();
    let mut answers = prepare(gdb);
    super::registers::look(gdb).await?;
    gdb.tell(Event::Progress(Phase::Gdb));
    let wait = gdb.get().config.symbols_wait;
    gdb.send_within(with_path("-file-exec-and-symbols", "file", program), wait)
        .await
        .map_err(|failure| no_program(&name, failure))?;
    gdb.tell(Event::Progress(Phase::Symbols));
    let set = |what: &[u8], value: &[u8]| console_bytes(&[what, value].concat());
    if launch.reached_by.is_none() {
        if !launch.wrapper.is_empty() {
            answers.push(gdb.send(set(b"set exec-wrapper ", &launch.wrapper)));
        }
        answers.push(gdb.send(set(b"set args ", &launch.args)));
    }
    for answer in answers {
        answer.await?;
    }
    carry_out_handles(gdb).await;
    carry_out(gdb, &settings).await;
    let waiting = |program: &Path, kept| Wrapped {
        program: program.to_owned(),
        stop,
        kept,
        catch: None,
    };
    if let Some(line) = &launch.reached_by {
        let waiting = waiting(&launch.program, breakpoints);
        return super::valgrind::launch(gdb, id, line, waiting).await;
    }
    if let Some(wrapped) = &launch.wrapped {
        return super::exec_wrapper::launch(gdb, id, waiting(wrapped, breakpoints)).await;
    }
    insert_kept(gdb, breakpoints).await;
    launch_it(gdb, id, stop)
        .await
        .map_err(|failure| no_program(&name, failure))
}

/// Carries out the user's lines; a line that gdb refuses does not affect the others.
async fn carry_out(gdb: &Gdb, lines: &[String]) {
    for line in lines {
        let done = match super::signals::handle_line(gdb, line).await {
            Some(done) => done.map(drop),
            None => gdb.mi(console_line(line)).await.map(drop),
        };
        if let Err(failure) = done {
            let text = format!("{line}: {}", failure.text.trim_end_matches('.'));
            gdb.tell(Event::Notice { text });
        }
    }
}

/// Carries out the user's `handle` lines, which follow the standard settings.
pub(crate) async fn carry_out_handles(gdb: &Gdb) {
    let lines = gdb.get().config.handles.clone();
    carry_out(gdb, &lines).await;
}

async fn launch_it(gdb: &Gdb, id: CommandId, stop: StopAt) -> Result<(), Failure> {
    let id = Some(id);
    match stop {
        StopAt::Nowhere => {
            super::internal::insert_internal(gdb).await;
            begin(gdb, id, RunKind::StartFreely, "-exec-run").await?;
            let mut state = gdb.edit();
            if state.activity.is_starting() {
                state.set_task(TaskState::Running);
            }
        }
        StopAt::Main => {
            // gdb knows the name of `main` in the program's language. If it finds none, it refuses before anything
            // runs.
            let to_main = begin(gdb, id, RunKind::StartToMain, "-exec-run --start").await;
            let began = gdb.get().pid().is_some();
            match to_main {
                Ok(()) => {}
                Err(failure) if began || failure.code != FailureCode::Gdb => return Err(failure),
                Err(_) => {
                    let line = console_line("starti");
                    begin(gdb, id, RunKind::StartToFirst, &line).await?;
                }
            }
        }
    }
    gdb.tell(Event::Progress(Phase::Running));
    Ok(())
}

/// Sends the settings that every gdb gets before anything else.
pub(crate) fn prepare(gdb: &Gdb) -> Vec<Answer> {
    let mut passed = String::from("handle");
    for name in PASSED {
        passed.push(' ');
        passed.push_str(name);
    }
    for number in 34..=64 {
        passed.push_str(&format!(" SIG{number}"));
    }
    passed.push_str(" nostop print pass");
    [
        passed.as_str(),
        "handle SIGSEGV SIGBUS SIGFPE SIGILL SIGABRT stop print pass",
        // The driver uses SIGSTOP itself. It must never reach the program.
        "handle SIGSTOP stop print nopass",
    ]
    .into_iter()
    .map(console_line)
    // Containers are shown as variable objects in their logical form, not in their implementation.
    .chain(["-enable-pretty-printing".to_owned()])
    .map(|line| gdb.send(line))
    .collect()
}

pub(crate) fn no_program(name: &str, failure: Failure) -> Failure {
    if failure.code != FailureCode::Gdb {
        return failure;
    }
    let text = if names(&failure.text, name.as_bytes()) {
        failure.text
    } else {
        format!("{name}: {}", failure.text)
    };
    Failure::new(FailureCode::NoProgram, text.trim().trim_end_matches('.'))
}
