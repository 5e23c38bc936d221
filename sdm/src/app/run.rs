//! `sdm run`.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use sdm_debug::command::{StartSpec, StopAt};

use super::prompt::{Piped, Prompt, Queue};
use super::signals::Signals;
use super::{Opener, Plan, Wake, give_up};
use crate::cli::{Commands, LauncherName, RunArgs};
use crate::render::Names;
use crate::session::Debug;
use crate::shell::{Control, Ending, LineSource, Options, Script, ScriptLine, Shell};

/// What ends a session before it began: the exit code and why.
pub(super) type Refused = (u8, String);

/// Starts a program, carries out commands, ends.
pub(super) fn run<O: Opener>(args: &RunArgs, commands: Vec<Commands>, opener: &mut O) -> u8 {
    match try_run(args, commands, opener) {
        Ok(code) => code,
        Err((code, message)) => give_up(args.json, code, message),
    }
}

fn try_run<O: Opener>(
    args: &RunArgs,
    commands: Vec<Commands>,
    opener: &mut O,
) -> Result<u8, Refused> {
    let has_script = !commands.is_empty();
    let script = script(commands)?;
    let stdin_tasks = args.stdin.among(args.count).map_err(|why| (2, why))?;
    if let Some(interpreter) = interpreter_of(args) {
        let program = args.program[0].display();
        return Err((
            124,
            format!(
                "{program} is a script; debug its interpreter instead: `-- {interpreter} {program}`"
            ),
        ));
    }
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && !args.json;
    let prompts = terminal && (args.interactive || !has_script);
    let reading = Arc::new(AtomicBool::new(false));
    let signals = Signals::listen(prompts, Arc::clone(&reading))
        .map_err(|error| (124, format!("listen to signals: {error}")))?;
    let (session, wake) = super::open(opener, plan(args)).map_err(|why| (124, why))?;
    let (controls, heard) = channel();
    signals.send_to(controls.clone(), Arc::clone(&wake));
    let queue = prompts.then(|| Arc::new(Queue::new(reading)));
    let options = Options {
        interactive: prompts && !has_script,
        echo: true,
        query_timeout: Duration::from_secs(args.timeout.into()),
        stdin_tasks: stdin_tasks.clone(),
        attached: false,
    };
    let mut shell = Shell::new(
        session,
        super::view(args.json, Names::ranks(), queue.clone()),
        heard,
        options,
        Box::new(Instant::now),
    );
    let lines = Lines {
        script: has_script.then_some(script),
        then_prompt: !has_script || args.interactive,
        queue,
        controls,
        wake,
    };
    let ending = if shell.start(start_spec(args, stdin_tasks.to_string())) || prompts {
        carry_out(&mut shell, lines)
    } else {
        shell.failed_start()
    };
    Ok(end(shell, opener, ending))
}

/// Where lines come from, one source after the other.
pub(super) struct Lines {
    pub(super) script: Option<Vec<ScriptLine>>,
    pub(super) then_prompt: bool,
    pub(super) queue: Option<Arc<Queue>>,
    pub(super) controls: Sender<Control>,
    pub(super) wake: Wake,
}

pub(super) fn carry_out<D: Debug>(shell: &mut Shell<D>, lines: Lines) -> Ending {
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
            policy: sdm_debug::EndPolicy::KillStarted,
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
    let (session, ended) = shell.into_parts();
    if let Err(why) = opener.close(session, policy) {
        code = if code == 0 { 1 } else { code };
        reason = Some(reason.map_or(why.clone(), |reason| format!("{reason}; {why}")));
    }
    ended.show(code, reason);
    code
}

fn plan(args: &RunArgs) -> Plan {
    Plan {
        launcher: args.launcher.name().to_owned(),
        launcher_options: args.launcher_options.clone(),
        servers: args.count,
        tasks: Vec::new(),
        directory: None,
    }
}

fn start_spec(args: &RunArgs, stdin_tasks: String) -> StartSpec {
    let bytes = |text: &std::ffi::OsString| text.as_bytes().to_vec();
    let environment = args.environment.iter().map(|(name, value)| {
        let value = value.as_ref().map(|value| value.clone().into_bytes());
        (name.clone().into_bytes(), value)
    });
    StartSpec {
        program: bytes(&args.program[0]),
        args: args.program[1..].iter().map(bytes).collect(),
        environment: environment.collect(),
        directory: args
            .directory
            .as_ref()
            .map(|path| path.as_os_str().as_bytes().to_vec()),
        stop: if args.no_stop {
            StopAt::Nowhere
        } else {
            StopAt::Main
        },
        gdb: args
            .gdb
            .as_ref()
            .map(|path| path.as_os_str().as_bytes().to_vec()),
        stdin_tasks,
        wrapper: Vec::new(),
    }
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
                let name = path.display().to_string();
                let text = fs::read_to_string(&path)
                    .map_err(|error| (2, format!("read {name}: {error}")))?;
                lines.extend(ScriptLine::of_file(&name, &text));
            }
        }
    }
    Ok(lines)
}

/// The interpreter of a PROGRAM that is a script, where this machine can tell.
fn interpreter_of(args: &RunArgs) -> Option<String> {
    let program = Path::new(&args.program[0]);
    let here = program.components().count() > 1 && args.launcher == LauncherName::Local;
    let path = match &args.directory {
        Some(directory) => directory.join(program),
        None => program.to_owned(),
    };
    if !here && !path.is_file() {
        return None;
    }
    let mut head = [0; 128];
    let length = File::open(path)
        .and_then(|mut file| file.read(&mut head))
        .ok()?;
    let line = head[..length]
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    Some(
        text.strip_prefix("/usr/bin/env ")
            .unwrap_or(text)
            .to_owned(),
    )
}
