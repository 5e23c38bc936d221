//! The command `sdm run`.

use sdm_shell::exit_codes::NOT_STARTED;
use sdm_text::printable_name;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use sdm_debug::command::{StartSpec, StopAt};
use sdm_debug::{BackendSettings, GdbOptions, PmixJob};
use sdm_hosts::mpi::{Linked, Mpi};
use sdm_idset::IdSet;
use sdm_launch::{Part, Streams};
use sdm_session::SessionConfig;
use sdm_shell::{Batch, ReportFiles, runs_without_gdb};

use super::check;
use super::command_source::script;
use super::control::Controlled;
use super::job::{self, Job};
use super::notify;
use super::opener::{Opener, Refused, tell_passed_over};
use super::python;
use crate::cli::{BatchArgs, Carrier, Commands, ControlBy, PmixUse, ProgramPart, RunArgs};
use crate::sink::{self, complain};

/// The launcher's name for automatic selection.
const AUTO: &str = "auto";

/// Minimum memory of a gdb, in bytes. The demand of its program is known once a server estimates it.
const GDB_BYTES: u64 = 20 << 20;

/// Starts a program, carries out commands, and ends the session.
pub(super) fn run<O: Opener>(args: &RunArgs, commands: Vec<Commands>, opener: &mut O) -> u8 {
    let code = job::run(args.script.json, job(args, commands), opener);
    if let (Some(line), Some(files)) = (&args.batch.notify, files(&args.batch)) {
        notify::notify(line, &files.page, sink::exit_code(code));
    }
    code
}

pub(super) fn job(args: &RunArgs, commands: Vec<Commands>) -> Result<Job<'_>, Refused> {
    let has_commands = !commands.is_empty();
    let gdb_when_needed = gdb_when_needed(args, &commands);
    let mut parts = args.programs().map_err(|error| (2, error.to_string()))?;
    let count = parts.iter().map(|part| part.count).sum();
    let stdin_tasks = args.stdin.among(count);
    let stdin_tasks = stdin_tasks.map_err(|error| (2, error.to_string()))?;
    if !gdb_when_needed {
        for part in &mut parts {
            python::replace(args.directory.as_deref(), &mut part.words[0]);
        }
        refuse_scripts(args, &parts)?;
    }
    let streams = streams(args, has_commands);
    let passes_input = match streams {
        Streams::Private => !stdin_tasks.is_empty(),
        Streams::Fed => true,
        Streams::Inherited => false,
    };
    let check_room = !args.gdb_use.force && !gdb_when_needed;
    let session = SessionConfig {
        streams,
        records: args.script.json,
        memory: if check_room && args.control == ControlBy::Plain {
            u64::from(count) * GDB_BYTES
        } else {
            0
        },
        ..session(args, &parts)?
    };
    // Only `--check` needs the linked MPI again.
    let linked = match args.check.check {
        Some(_) => linked(args, &parts),
        None => Vec::new(),
    };
    let control = args.control.held();
    let control = control.map(|control| Controlled::new(args, &parts, &session, control));
    let mut programs = Vec::new();
    let mut first = 0;
    for (at, part) in parts.iter().enumerate() {
        let ranks = IdSet::from_range(first..=first + part.count - 1);
        let mut spec = start_spec(args, &part.words, &stdin_tasks, gdb_when_needed);
        if let Some(linked) = linked.get(at) {
            let program = &part.words[0];
            let given = check::variables(args, program, linked, &session.launcher)?;
            spec.environment.extend(given);
        }
        programs.push((ranks, spec));
        first += part.count;
    }
    Ok(Job {
        batch: batch(&args.batch, args.check.check.is_some()),
        files: files(&args.batch),
        args: &args.script,
        commands,
        session,
        control: control.transpose()?,
        programs,
        stdin_tasks,
        passes_input: passes_input && !reads_commands(args, has_commands),
        check_room,
    })
}

/// Refuses scripts, which gdb cannot run. Without a gdb the kernel runs them by their interpreters.
fn refuse_scripts(args: &RunArgs, parts: &[ProgramPart]) -> Result<(), Refused> {
    for part in parts {
        if let Some(interpreter) = interpreter_of(args, &part.words[0]) {
            let program = printable_name(&part.words[0]);
            let words = part.words.iter().map(|word| word.to_string_lossy());
            let words: Vec<String> = words.map(|word| sdm_text::shell_word(&word)).collect();
            let words = words.join(" ");
            return Err((
                NOT_STARTED,
                format!(
                    "{program} is a script; debug its interpreter instead: `-- {interpreter} {words}`; \
                     --batch watches the program that it starts"
                ),
            ));
        }
    }
    Ok(())
}

/// The carrier of the programs' output and input. If it is the launcher, the launcher reads standard input itself,
/// unless commands are read from it or it is a terminal.
fn streams(args: &RunArgs, has_commands: bool) -> Streams {
    match args.output {
        Carrier::Sdm if args.control == ControlBy::Plain => Streams::Private,
        _ if reads_commands(args, has_commands) || io::stdin().is_terminal() => Streams::Fed,
        _ => Streams::Inherited,
    }
}

/// True if commands come from standard input.
fn reads_commands(args: &RunArgs, has_commands: bool) -> bool {
    !args.batch.batch && (args.script.commands.wants_prompt() || !has_commands)
}

fn session(args: &RunArgs, parts: &[ProgramPart]) -> Result<SessionConfig, Refused> {
    let launch = &args.launch;
    let hosts = launch.hosts().map_err(|error| (2, error.to_string()))?;
    let mut launcher = launch.launcher.clone();
    let mut launcher_options = launch.reach.launcher_options.clone();
    let linked = linked(args, parts);
    if launcher == AUTO && !hosts.is_empty() {
        "ssh".clone_into(&mut launcher);
    } else if launcher == AUTO {
        // Where one of the programs calls MPI, they all are started by its launcher.
        let choices = parts.iter().zip(&linked);
        let choices = choices.map(|(part, linked)| sdm_launch::choose(&part.words[0], linked));
        let choices: Vec<_> = choices.collect();
        let by_mpi = choices.iter().find(|choice| choice.is_for_mpi());
        let choice = by_mpi.unwrap_or(&choices[0]);
        let mut options: Vec<OsString> = choice.options.iter().map(Into::into).collect();
        options.append(&mut launcher_options);
        launcher_options = options;
        choice.launcher.clone_into(&mut launcher);
        if choice.launcher != "local" {
            complain(format_args!(
                "[launcher] {launcher}, because {}; --launcher selects another",
                choice.why
            ));
        }
    }
    tell_misfits(parts, &linked, (&launcher, &launcher_options));
    let count = parts.iter().map(|part| part.count).sum();
    let mut session = args.tree.session(count);
    if parts.len() > 1 {
        let part = |part: &ProgramPart| Part {
            count: part.count,
            options: part.options.clone(),
            words: Vec::new(),
        };
        session.parts = parts.iter().map(part).collect();
    }
    let gdb = args
        .gdb
        .as_ref()
        .map_or(OsStr::new("gdb"), |path| path.as_os_str());
    let programs = parts.iter().map(|part| part.words[0].as_os_str());
    tell_passed_over(programs.chain([gdb]));
    let backend = hosted(args, &linked, &launcher)?;
    session.config.start_wait = args.tree.start_wait(&launcher);
    session.tasks_per_server = args.tree.tasks_per_server(&launcher);
    Ok(SessionConfig {
        launcher,
        launcher_options,
        hosts,
        backend,
        ..launch.reach.reaching(session)
    })
}

/// The MPI libraries that each program is linked with, looked up in the program's environment.
fn linked(args: &RunArgs, parts: &[ProgramPart]) -> Vec<Linked> {
    let lookup = |name: &str| {
        let mut given = args.environment.iter().rev();
        match given.find(|(variable, _)| variable == name) {
            Some((_, value)) => value.as_ref().map(Into::into),
            None => std::env::var_os(name),
        }
    };
    let programs = parts.iter();
    programs
        .map(|part| sdm_launch::linked(&part.words, &lookup))
        .collect()
}

/// Warns of programs that are linked with another MPI than the launcher's, so that their ranks do not find
/// each other.
fn tell_misfits(parts: &[ProgramPart], linked: &[Linked], (name, options): (&str, &[OsString])) {
    if linked.iter().all(|linked| linked.mpi.is_none()) {
        return;
    }
    // A launcher that is not found is reported when it is to start the job.
    let Ok(launcher) = sdm_launch::find(name) else {
        return;
    };
    for (part, linked) in parts.iter().zip(linked) {
        if let Some(why) = sdm_launch::misfit(linked, &*launcher, options) {
            let program = printable_name(&part.words[0]);
            complain(format_args!("[launcher] {name}: {program} is {why}"));
        }
    }
}

/// The backend for the processes. The backend hosts a PMIx server if the processes can use one and get none from their
/// launcher.
fn hosted(args: &RunArgs, linked: &[Linked], launcher: &str) -> Result<BackendSettings, Refused> {
    let backend = args.gdb_use.backend();
    let is_system = args.pmix == PmixUse::System;
    let needed = is_system || args.pmix == PmixUse::On;
    // Slurm has a PMIx server of its own, unless it is asked to have none.
    let can_be = args.control == ControlBy::Plain
        && (["local", "ssh"].contains(&launcher)
            || (["srun", "loopback"].contains(&launcher) && needed));
    if needed && !can_be {
        let word = if is_system { "system" } else { "on" };
        let text = format!(
            "--pmix {word}: only with --launcher local, ssh, srun or loopback, and not with --control mpir or pmix; otherwise the launcher has its own PMIx server or none"
        );
        return Err((2, text));
    }
    let find_it = || linked.iter().any(|it| it.mpi == Some(Mpi::OpenMpi));
    if !needed && (args.pmix == PmixUse::Off || !can_be || !find_it()) {
        return Ok(backend);
    }
    let options = match backend {
        BackendSettings::GdbWith(options) => options,
        _ => GdbOptions::default(),
    };
    let pmix = PmixJob {
        needed,
        is_system,
        nodes: Vec::new(),
        spare: IdSet::new(),
    };
    Ok(BackendSettings::GdbHosted { options, pmix })
}

/// True if gdb is not needed before a failure.
fn gdb_when_needed(args: &RunArgs, commands: &[Commands]) -> bool {
    args.batch.batch
        && !args.gdb_use.shapes_start()
        && (commands.is_empty() || run_without_gdb(commands))
}

/// True if the programs of a batch can run without gdb with these commands. A pipe can be read only once.
fn run_without_gdb(commands: &[Commands]) -> bool {
    let is_readable = |command: &Commands| match command {
        Commands::File(path) => path.is_file(),
        Commands::Line(_) => true,
    };
    // A file that cannot be read is refused later.
    commands.iter().all(is_readable)
        && script(commands.to_vec()).is_ok_and(|lines| runs_without_gdb(&lines))
}

fn start_spec(
    args: &RunArgs,
    words: &[OsString],
    stdin_tasks: &IdSet,
    gdb_when_needed: bool,
) -> StartSpec {
    let bytes = |text: &OsString| text.as_bytes().to_vec();
    let environment = args.environment.iter().map(|(name, value)| {
        let value = value.as_ref().map(|value| value.clone().into_bytes());
        (name.clone().into_bytes(), value)
    });
    StartSpec {
        program: bytes(&words[0]),
        args: words[1..].iter().map(bytes).collect(),
        environment: environment.collect(),
        directory: args
            .directory
            .as_ref()
            .map(|path| path.as_os_str().as_bytes().to_vec()),
        stop: if args.no_stop || gdb_when_needed {
            StopAt::Nowhere
        } else {
            StopAt::Main
        },
        gdb: args
            .gdb
            .as_ref()
            .map(|path| path.as_os_str().as_bytes().to_vec()),
        stdin_tasks: stdin_tasks.clone(),
        wrapper: args.gdb_use.wrapper_words(),
        gdb_when_needed,
        ..StartSpec::default()
    }
}

fn files(args: &BatchArgs) -> Option<ReportFiles> {
    let wanted = args.batch && !args.no_report;
    wanted.then(|| ReportFiles::of_page(args.report.clone(), args.junit.clone()))
}

fn batch(args: &BatchArgs, is_checked: bool) -> Option<Batch> {
    if !args.batch {
        return None;
    }
    let or = |given: &Vec<String>, usual: &[&str]| match given.is_empty() {
        true => usual.iter().map(|line| (*line).to_owned()).collect(),
        false => given.clone(),
    };
    let seconds = |given: Option<u32>| given.map(|s| Duration::from_secs(s.into()));
    Some(Batch {
        on_crash: or(
            &args.on_crash,
            &[
                "[@crashed] bt",
                "[@crashed] info locals",
                "[@stopped] stacks",
            ],
        ),
        on_timeout: or(
            &args.on_timeout,
            &["[@stopped] diagnose", "[@stopped] stacks"],
        ),
        time_limit: seconds(args.time_limit),
        hang_timeout: seconds(args.hang_timeout),
        ends_at_hang: is_checked,
    })
}

/// The interpreter of a script. None for other programs, and for files that this machine cannot read.
fn interpreter_of(args: &RunArgs, program: &OsStr) -> Option<String> {
    let program = Path::new(program);
    let here =
        program.components().count() > 1 && ["local", AUTO].contains(&&*args.launch.launcher);
    let path = match &args.directory {
        Some(directory) => directory.join(program),
        None => program.to_owned(),
    };
    if !here && !path.is_file() {
        return None;
    }
    let line = python::script_line(&path)?;
    let text = String::from_utf8_lossy(&line);
    let text = text.trim();
    Some(
        text.strip_prefix("/usr/bin/env ")
            .unwrap_or(text)
            .to_owned(),
    )
}
