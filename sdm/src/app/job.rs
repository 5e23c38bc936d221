//! A session and the commands for it: what `run` and `emulate` have in common.

use sdm_text::printable_name;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use sdm_debug::EndPolicy;
use sdm_debug::command::StartSpec;
use sdm_idset::IdSet;
use sdm_session::{DebugSession, SessionConfig};
use sdm_shell::ReportFiles;
use sdm_shell::commands::{self, UserCommand};
use sdm_shell::{Batch, Control, Ending, LineSource, Options, Restart, Script, ScriptLine, Shell};
use sdm_view::render::Names;

use super::control::Controlled;
use super::local::application;
use super::prompt::{Piped, Prompt, Queue};
use super::report;
use super::signals::Signals;
use super::stdin::Stdin;
use super::{CurrentWake, Opener, Wake, give_up};
use crate::cli::{Commands, ScriptArgs};
use crate::sink::{self, Sink, complain};

/// What ends a session before it began: the exit code and why.
pub(super) type Refused = (u8, String);

/// A session and the commands for it.
pub(super) struct Job<'a> {
    /// How commands come and how what they say is shown.
    pub(super) args: &'a ScriptArgs,
    /// The commands of -x and -c, in their order.
    pub(super) commands: Vec<Commands>,
    /// Which processes.
    pub(super) session: SessionConfig,
    /// Who runs which program.
    pub(super) programs: Vec<(IdSet, StartSpec)>,
    /// Whose standard input is fed.
    pub(super) stdin_tasks: IdSet,
    /// What `sdm` reads is for them.
    pub(super) passes_input: bool,
    /// How it runs to its end by itself, where it does.
    pub(super) batch: Option<Batch>,
    /// Nothing is started where a host seems to lack the memory for it.
    pub(super) check_room: bool,
    /// Where its report goes, where one is written by itself.
    pub(super) files: Option<ReportFiles>,
    /// How its own launcher starts it and holds it, where it does.
    pub(super) control: Option<Controlled>,
}

/// Carries out a job; gives the exit code. One that is refused is said so.
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
    let prompts = terminal && batch.is_none() && (args.commands.interactive || !has_script);
    let reading = Arc::new(AtomicBool::new(false));
    let signals = Signals::listen(prompts, batch.is_some(), Arc::clone(&reading))
        .map_err(|error| (124, format!("listen to signals: {error}")))?;
    let program = OsStr::from_bytes(&programs[0].1.program);
    let facts = report::facts(program, &config, files.is_some());
    let (held, opened) = match control {
        Some(control) => control.open(opener, args.json),
        None => (None, super::open(opener, &config).map_err(|why| (124, why))),
    };
    if let (Some(files), Err(refused)) = (&files, &opened) {
        report::of_no_session(files, facts.clone(), refused);
    }
    let (session, wake) = opened?;
    let current = CurrentWake::new(wake);
    let wake = current.wake();
    let (controls, heard) = channel();
    signals.send_to(controls.clone(), Arc::clone(&wake));
    let queue = prompts.then(|| Arc::new(Queue::new(reading)));
    let options = Options {
        interactive: prompts && !has_script,
        query_timeout: Duration::from_secs(args.timeout.into()),
        stdin_tasks,
        check_room,
        attached: held.is_some(),
        controlled: held.is_some(),
        ..Options::default()
    };
    let view = super::view(args.json, Names::ranks(), queue.clone());
    let mut shell = Shell::new(session, application(view, heard), options);
    shell.set_report(facts, Names::ranks(), files);
    let interrupted = signals.interrupted();
    if held.is_none() {
        shell.set_restart(restart(opener.clone(), config, current, interrupted));
    }
    let lines = Lines {
        script: has_script.then_some(script),
        then_prompt: !has_script || args.commands.interactive,
        queue,
        controls,
        wake,
    };
    if passes_input {
        pass_input(&mut shell, &lines)?;
    }
    let has_begun = match held {
        Some(held) => held.attach(&mut shell),
        // What else is wrong can be mended, and `run` tries again.
        None => shell.start(programs) || (prompts && !shell.is_programless()),
    };
    let ending = match (has_begun, batch) {
        (false, _) => shell.failed_start(),
        (true, None) => carry_out(&mut shell, lines),
        (true, Some(batch)) => carry_out_batch(&mut shell, lines, &batch),
    };
    Ok(end(shell, opener, ending))
}

/// What `sdm` reads is for the programs, unless there are lines that send them something.
fn pass_input<D: DebugSession + 'static>(
    shell: &mut Shell<D>,
    lines: &Lines,
) -> Result<(), Refused> {
    if lines.script.iter().flatten().any(sends) {
        return Ok(());
    }
    let stdin = Stdin::start(lines.controls.clone(), Arc::clone(&lines.wake));
    let stdin = stdin.map_err(|error| (124, format!("read standard input: {error}")))?;
    shell.set_input(Box::new(stdin));
    Ok(())
}

/// Ends a session and opens another one like it, which is the one that is woken from then on. Ctrl-C
/// gives the opening up.
fn restart<O: Opener>(
    mut opener: O,
    mut config: SessionConfig,
    current: CurrentWake,
    interrupted: Arc<AtomicBool>,
) -> Restart<O::Session> {
    config.given_up = Some(Arc::clone(&interrupted));
    Box::new(move |session| {
        interrupted.store(false, Ordering::SeqCst);
        let closed = opener.close(session, EndPolicy::KillStarted);
        let (next, wake) = super::open(&mut opener, &config)?;
        *session = next;
        current.set(wake);
        Ok(closed.err())
    })
}

/// Where lines come from, one source after the other.
pub(super) struct Lines {
    pub(super) script: Option<Vec<ScriptLine>>,
    pub(super) then_prompt: bool,
    pub(super) queue: Option<Arc<Queue>>,
    pub(super) controls: Sender<Control>,
    pub(super) wake: Wake,
}

/// The commands first; where they are done, the program to its end.
fn carry_out_batch<D: DebugSession + 'static>(
    shell: &mut Shell<D>,
    lines: Lines,
    batch: &Batch,
) -> Ending {
    if let Some(script) = lines.script {
        let ending = shell.run_lines(&mut Script::new(script, lines.controls));
        if shell.is_over() || ending.code != 0 {
            shell.look_back();
            return ending;
        }
    }
    shell.run_batch(batch)
}

pub(super) fn carry_out<D: DebugSession + 'static>(shell: &mut Shell<D>, lines: Lines) -> Ending {
    if let Some(script) = lines.script {
        let mut source = Script::new(script, lines.controls.clone());
        let ending = shell.run_lines(&mut source);
        let prompt_follows = lines.then_prompt && lines.queue.is_some();
        if shell.is_over() || !prompt_follows {
            return ending;
        }
        if let Some(reason) = &ending.reason {
            shell.say(reason);
        }
        shell.set_interactive();
    }
    let source: io::Result<Box<dyn LineSource>> = match lines.queue {
        Some(queue) => Prompt::start(queue, lines.controls, lines.wake)
            .map(|prompt| Box::new(prompt) as Box<dyn LineSource>)
            .map_err(io::Error::other),
        None => Piped::start(lines.controls, lines.wake)
            .map(|piped| Box::new(piped) as Box<dyn LineSource>),
    };
    match source {
        Ok(mut source) => shell.run_lines(&mut *source),
        Err(error) => Ending {
            code: 124,
            policy: EndPolicy::KillStarted,
            reason: Some(format!("use the terminal: {error}")),
        },
    }
}

/// Closes the session and says how it ended.
pub(super) fn end<O: Opener>(mut shell: Shell<O::Session>, opener: &mut O, ending: Ending) -> u8 {
    let ending = shell.leave(ending);
    let Ending {
        mut code,
        policy,
        mut reason,
    } = ending;
    let (mut session, mut ended) = shell.into_parts();
    if let Err(why) = opener.close(&mut session, policy) {
        code = if code == 0 { 1 } else { code };
        reason = Some(reason.map_or(why.clone(), |reason| format!("{reason}; {why}")));
    }
    drop(session);
    code = sink::exit_code(code);
    match ended.finish_report(code, reason.as_ref()) {
        Ok(Some(screen)) => {
            // It is no loss where nobody reads it: it is in a file.
            let _ = Sink::Complaints.show(&screen);
        }
        Ok(None) => {}
        Err(why) => complain(format_args!("sdm: no report: {why}")),
    }
    ended.show(code, reason);
    code
}

/// Whether a line feeds programs by itself.
fn sends(line: &ScriptLine) -> bool {
    let parsed = commands::parse(&line.text);
    parsed.is_ok_and(|line| matches!(line.command, UserCommand::Send { .. }))
}

/// The lines of -x and -c, in their order.
pub(super) fn script(commands: Vec<Commands>) -> Result<Vec<ScriptLine>, Refused> {
    let mut lines = Vec::new();
    let mut number = 0;
    for command in commands {
        match command {
            Commands::Line(text) => {
                number += 1;
                lines.push(ScriptLine {
                    text,
                    origin: format!("-c {number}"),
                });
            }
            Commands::File(path) => {
                let name = printable_name(&path);
                let text = sdm_system::files::read_text(&path)
                    .map_err(|error| (2, format!("read {name}: {error}")))?;
                lines.extend(ScriptLine::of_file(&name, &text));
            }
        }
    }
    Ok(lines)
}
