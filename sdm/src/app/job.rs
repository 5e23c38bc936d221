//! A session with its commands: the common part of `run` and `emulate`.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use sdm_check::STRICT_VARIABLE;
use sdm_debug::EndPolicy;
use sdm_debug::command::StartSpec;
use sdm_idset::IdSet;
use sdm_session::{DebugSession, SessionConfig};
use sdm_shell::ReportFiles;
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_shell::{Batch, Options, Restart, Shell};
use sdm_view::render::Names;
use sdm_view::report::Fact;

use super::command_source::{Lines, carry_out, carry_out_batch, end, queue, script, sends};
use super::control::Controlled;
use super::local::application;
use super::opener::{Opener, Refused, open, refused};
use super::report;
use super::signals::Signals;
use super::stdin::Stdin;
use super::view::give_up;
use super::wake::CurrentWake;
use super::web::{Web, shown_on_pages};
use crate::cli::{Commands, ScriptArgs};
use crate::sink::Sink;

/// A session with its commands.
pub(super) struct Job<'a> {
    /// Options for the source of commands and for the output.
    pub(super) args: &'a ScriptArgs,
    /// The commands of -x and -c, in the order of the command line.
    pub(super) commands: Vec<Commands>,
    /// The servers to start, with their hosts.
    pub(super) session: SessionConfig,
    /// The programs, with the tasks that run each.
    pub(super) programs: Vec<(IdSet, StartSpec)>,
    /// The tasks that get standard input.
    pub(super) stdin_tasks: IdSet,
    /// True if `stdin_tasks` get the standard input of `sdm`.
    pub(super) passes_input: bool,
    /// The settings of a batch run. None for a session with a prompt, a script or lines of standard input.
    pub(super) batch: Option<Batch>,
    /// True if the start is refused if a host seems to lack memory.
    pub(super) check_room: bool,
    /// The files of an automatic report. None if none is written.
    pub(super) files: Option<ReportFiles>,
    /// The start by the job's own launcher, which holds the job. None for other starts.
    pub(super) control: Option<Controlled>,
}

/// Carries out a job and returns its exit code. A refusal is reported.
pub(super) fn run<O: Opener>(json: bool, job: Result<Job<'_>, Refused>, opener: &mut O) -> u8 {
    match job.and_then(|job| try_run(job, opener)) {
        Ok(code) => code,
        Err((code, message)) => give_up(json, code, message),
    }
}

fn try_run<O: Opener>(job: Job<'_>, opener: &mut O) -> Result<u8, Refused> {
    let Job {
        args,
        commands,
        session: config,
        programs,
        stdin_tasks,
        passes_input,
        batch,
        check_room,
        files,
        control,
    } = job;
    let has_script = !commands.is_empty();
    let script = script(commands)?;
    let terminal = io::stdin().is_terminal() && Sink::Output.is_terminal() && !args.json;
    let prompts = terminal && batch.is_none() && (args.commands.wants_prompt() || !has_script);
    let reading = Arc::new(AtomicBool::new(false));
    let queue = queue(prompts, &reading, &args.commands)?;
    let web = Web::new(&args.commands)?;
    let is_person = prompts || web.is_some();
    let signals = listen(prompts, batch.is_some(), &reading)?;
    let facts = facts(&programs, &config, files.is_some());
    let (held, opened) = match control {
        Some(control) => control.open(opener, args.json),
        None => (None, open(opener, &config).map_err(refused)),
    };
    if let (Some(files), Err(refused)) = (&files, &opened) {
        report::of_no_session(files, facts.clone(), refused);
    }
    let (session, wake) = opened?;
    let current = CurrentWake::new(wake);
    let wake = current.wake();
    let (controls, heard) = channel();
    signals.send_to(controls.clone(), Arc::clone(&wake));
    let options = Options {
        interactive: is_person && !has_script,
        stdin_tasks,
        check_room,
        ..options(args, &config, held.is_some(), batch.as_ref(), &programs)
    };
    let view = super::view::view(args.json, Names::ranks(), queue.clone());
    let to_pages = (&controls, &wake, queue.as_ref());
    let view = shown_on_pages(web.as_ref(), view, Names::ranks(), to_pages)?;
    let mut shell = Shell::new(session, application(view, heard, queue.clone()), options);
    shell.set_report(facts, Names::ranks(), files);
    if held.is_none() {
        shell.set_restart(restart(opener.clone(), config, current, &signals));
    }
    let lines = Lines {
        script: has_script.then_some(script),
        then_prompt: !has_script || args.commands.wants_prompt(),
        full_screen: args.commands.tui,
        queue,
        web,
        controls,
        wake,
    };
    if passes_input {
        pass_input(&mut shell, &lines)?;
    }
    let has_begun = match held {
        Some(held) => held.attach(&mut shell),
        // Other failures can be corrected by the user, and `run` tries again.
        None => shell.start(programs) || (is_person && !shell.has_no_program()),
    };
    let ending = match (has_begun, batch) {
        (false, _) => shell.failed_start(),
        (true, None) => carry_out(&mut shell, lines),
        (true, Some(batch)) => carry_out_batch(&mut shell, lines, &batch),
    };
    Ok(end(shell, opener, ending))
}

fn facts(programs: &[(IdSet, StartSpec)], config: &SessionConfig, is_written: bool) -> Vec<Fact> {
    let program = OsStr::from_bytes(&programs[0].1.program);
    report::facts(program, config, is_written)
}

fn is_strict(programs: &[(IdSet, StartSpec)]) -> bool {
    let mut all = programs.iter().flat_map(|(_, it)| &it.environment);
    all.any(|(name, value)| name == STRICT_VARIABLE.as_bytes() && value.is_some())
}

fn options(
    args: &ScriptArgs,
    config: &SessionConfig,
    is_held: bool,
    batch: Option<&Batch>,
    programs: &[(IdSet, StartSpec)],
) -> Options {
    Options {
        in_batch: batch.is_some(),
        passes_mpi_errors: batch.is_some_and(|batch| batch.ends_at_hang),
        strict_sends: is_strict(programs),
        query_timeout: Duration::from_secs(args.timeout.into()),
        partial: config.config.partial,
        attached: is_held,
        controlled: is_held,
        ..Options::default()
    }
}

fn listen(prompts: bool, batch: bool, reading: &Arc<AtomicBool>) -> Result<Signals, Refused> {
    let signals = Signals::listen(prompts, batch, Arc::clone(reading));
    signals.map_err(|error| {
        (
            NOT_STARTED,
            format!("cannot set up signal handling: {error}"),
        )
    })
}

/// Passes the standard input of `sdm` to the programs, unless a script uses `send`.
fn pass_input<D: DebugSession + 'static>(
    shell: &mut Shell<D>,
    lines: &Lines,
) -> Result<(), Refused> {
    if lines.script.iter().flatten().any(sends) {
        return Ok(());
    }
    let stdin = Stdin::start(lines.controls.clone(), Arc::clone(&lines.wake));
    let stdin =
        stdin.map_err(|error| (NOT_STARTED, format!("cannot read standard input: {error}")))?;
    shell.set_input(Box::new(stdin));
    Ok(())
}

/// The function that ends a session and opens another one like it, which is woken from then on. Ctrl-C aborts the
/// opening.
fn restart<O: Opener>(
    mut opener: O,
    mut config: SessionConfig,
    current: CurrentWake,
    signals: &Signals,
) -> Restart<O::Session> {
    let interrupted = signals.interrupted();
    config.given_up = Some(Arc::clone(&interrupted));
    Box::new(move |session| {
        interrupted.store(false, Ordering::SeqCst);
        let closed = opener.close(session, EndPolicy::KillStarted);
        let (next, wake) = open(&mut opener, &config)?;
        *session = next;
        current.set(wake);
        Ok(closed.err().map(|error| error.to_string()))
    })
}
