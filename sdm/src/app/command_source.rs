//! The sources of a session's lines, one after the other, and the end of the session.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use sdm_debug::EndPolicy;
use sdm_session::DebugSession;
use sdm_shell::commands::{self, UserCommand};
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_shell::{Batch, Control, Ending, LineSource, Script, ScriptLine, Shell};
use sdm_text::printable_name;

use super::full_screen::{self, Full};
use super::opener::{Opener, Refused};
use super::prompt::{Piped, Prompt};
use super::queue::Queue;
use super::wake::Wake;
use super::web::Web;
use crate::cli::{CommandArgs, Commands};
use crate::sink::{self, Sink};

/// The sources of lines, in order: a script, then the prompt and the pages of `--web`, or standard input.
pub(super) struct Lines {
    pub(super) script: Option<Vec<ScriptLine>>,
    pub(super) then_prompt: bool,
    /// True if the prompt is in full-screen mode.
    pub(super) full_screen: bool,
    pub(super) queue: Option<Arc<Queue>>,
    /// The page server of `--web`, whose pages give lines as well. None without `--web`.
    pub(super) web: Option<Arc<Web>>,
    pub(super) controls: Sender<Control>,
    pub(super) wake: Wake,
}

/// Carries out the commands, then runs the program to its end.
pub(super) fn carry_out_batch<D: DebugSession + 'static>(
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

/// Carries out the script's lines, then those of the prompt and of pages if a prompt follows. Without a script it also
/// reads standard input.
pub(super) fn carry_out<D: DebugSession + 'static>(
    shell: &mut Shell<D>,
    mut lines: Lines,
) -> Ending {
    if let Some(script) = lines.script.take() {
        let mut source = Script::new(script, lines.controls.clone());
        let ending = shell.run_lines(&mut source);
        let prompt_follows = lines.then_prompt && (lines.queue.is_some() || lines.web.is_some());
        if shell.is_over() || !prompt_follows {
            return ending;
        }
        if let Some(reason) = &ending.reason {
            shell.say(reason);
        }
        shell.set_interactive();
    }
    match source(&lines) {
        Ok(mut source) => {
            if let Some(queue) = lines.queue.as_ref().filter(|_| lines.full_screen) {
                queue.full.set(true);
            }
            let ending = shell.run_lines(&mut *source);
            if let Some(queue) = &lines.queue {
                queue.full.leave();
            }
            ending
        }
        Err(error) => Ending {
            code: NOT_STARTED,
            policy: EndPolicy::KillStarted,
            reason: Some(format!("cannot use the terminal: {error}")),
        },
    }
}

/// The source of lines: the prompt on a terminal, standard input, or pages, also in addition to the prompt.
fn source(lines: &Lines) -> io::Result<Box<dyn LineSource>> {
    let (controls, wake) = (lines.controls.clone(), Arc::clone(&lines.wake));
    let prompt = match lines.queue.clone() {
        Some(queue) => {
            let prompt = Prompt::start(queue, controls, wake).map_err(io::Error::other)?;
            Some(Box::new(prompt) as Box<dyn LineSource>)
        }
        None if lines.web.is_some() => None,
        None => Some(Box::new(Piped::start(controls, wake)?) as Box<dyn LineSource>),
    };
    match (&lines.web, prompt) {
        (Some(web), prompt) => Ok(web.lines(prompt)),
        (None, Some(prompt)) => Ok(prompt),
        (None, None) => unreachable!("without pages there is one of the two"),
    }
}

/// Closes the session, and shows its end. Returns the exit code.
pub(super) fn end<O: Opener>(mut shell: Shell<O::Session>, opener: &mut O, ending: Ending) -> u8 {
    let mut ending = shell.leave(ending);
    let mut unsure = shell.unsure();
    let (mut session, mut ended) = shell.into_parts();
    let closed = opener.close(&mut session, ending.policy);
    unsure.union_with(opener.lost(&session));
    let is_sure = closed.is_ok() && unsure.is_empty();
    if ending.tell_left(is_sure) && !unsure.is_empty() {
        ended.tell_unsure(unsure);
    }
    let Ending {
        mut code,
        mut reason,
        ..
    } = ending;
    if let Err(error) = closed {
        let why = error.to_string();
        code = if code == 0 { 1 } else { code };
        reason = Some(reason.map_or(why.clone(), |reason| format!("{reason}; {why}")));
    }
    drop(session);
    code = sink::exit_code(code);
    match ended.finish_report(code, reason.as_ref()) {
        Ok(Some(screen)) => {
            // A failed write is ignored: the text is also in a file.
            let _ = Sink::Complaints.show(&screen);
        }
        Ok(None) => {}
        Err(why) => {
            sink::complain_of_loss(format_args!("sdm: no report: {why}"));
            code = sink::exit_code(code);
        }
    }
    ended.show(code, reason);
    code
}

/// True for a `send` line, which feeds programs itself.
pub(super) fn sends(line: &ScriptLine) -> bool {
    let parsed = commands::parse(&line.text);
    parsed.is_ok_and(|line| matches!(line.command, UserCommand::Send { .. }))
}

/// Creates the prompt's output queue if there is a prompt. Refuses if full-screen mode was requested and is not
/// supported, or if the terminal cannot be used.
pub(super) fn queue(
    prompts: bool,
    reading: &Arc<AtomicBool>,
    commands: &CommandArgs,
) -> Result<Option<Arc<Queue>>, Refused> {
    if commands.tui {
        full_screen::check().map_err(|error| (2, format!("--tui: {error}")))?;
    }
    if !prompts {
        return Ok(None);
    }
    let full = Full::new(&commands.look);
    let full = full.map_err(|error| (NOT_STARTED, format!("cannot use the terminal: {error}")))?;
    Ok(Some(Arc::new(Queue::new(Arc::clone(reading), full))))
}

/// The lines of -x and -c, in the order of the command line.
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
