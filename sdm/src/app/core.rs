//! The command `sdm core`: merged stacks, or a session, from core files.

use sdm_shell::exit_codes::NOT_STARTED;
use sdm_text::printable_name;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use sdm_debug::EndPolicy;
use sdm_debug::command::CoreSpec;
use sdm_hosts::HostShare;
use sdm_hosts::job::core_file::{self, CoreFile, CoreProcess};
use sdm_idset::{IdSet, TaskId};
use sdm_session::SessionConfig;
use sdm_shell::{Ending, Options, Shell, StacksCode};
use sdm_system::secret::SecretFile;
use sdm_view::render::Names;

use super::command_source::{Lines, carry_out, end, queue, script};
use super::error::AppError;
use super::local::application;
use super::opener::Opener;
use super::opener::{Refused, refused};
use super::report;
use super::signals::Signals;
use super::view::give_up;
use super::web::{Web, shown_on_pages};
use crate::cli::{Commands, CoreArgs, TreeArgs};
use crate::sink::Sink;

/// Number of core files that one server reads at a time, if they are not kept open for debugging.
const AT_ONCE: usize = 16;
/// Maximum number of core files that one server has open at once, and of compressed core files that are unpacked.
const OPEN_MAX: usize = 256;

/// Core files, with the names of their tasks.
struct Cores {
    spec: CoreSpec,
    names: Names,
    /// Notes to show before the stacks.
    notes: Vec<String>,
    /// The unpacked copies of compressed core files, which are removed on drop.
    _unpacked: Vec<SecretFile>,
}

/// Shows the merged stacks of core files, or debugs them.
pub(super) fn core<O: Opener>(args: &CoreArgs, commands: Vec<Commands>, opener: &mut O) -> u8 {
    let looks = commands.is_empty() && !args.script.commands.wants_prompt();
    let done = match look_up(args) {
        Ok(cores) if looks => look(args, cores, opener),
        Ok(cores) => debug(args, cores, commands, opener),
        Err(error) => Err((StacksCode::Error as u8, error.to_string())),
    };
    done.unwrap_or_else(|(code, message)| give_up(args.script.json, code, message))
}

/// Opens the core files, shows their merged stacks, and ends.
fn look<O: Opener>(args: &CoreArgs, cores: Cores, opener: &mut O) -> Result<u8, Refused> {
    let error = |why: AppError| (StacksCode::Error as u8, why.to_string());
    let signals = Signals::listen(false, false, Arc::new(AtomicBool::new(false)))
        .map_err(|why| error(AppError::Signals(why)))?;
    let config = session(args, &cores.spec);
    let (session, wake) = super::opener::open(opener, &config).map_err(error)?;
    let (controls, heard) = channel();
    signals.send_to(controls, wake);
    let view = super::view::view(args.script.json, cores.names, None);
    let options = options(args, false);
    let mut shell = Shell::new(session, application(view, heard, None), options);
    for note in &cores.notes {
        shell.say(note);
    }
    let at_once = AT_ONCE * args.hosts.len().max(1);
    let ending = Ending {
        code: shell.show_cores(&cores.spec, args.full, at_once) as u8,
        policy: EndPolicy::Detach,
        reason: None,
    };
    Ok(end(shell, opener, ending))
}

/// Opens core files, and carries out commands or shows the prompt.
fn debug<O: Opener>(
    args: &CoreArgs,
    cores: Cores,
    commands: Vec<Commands>,
    opener: &mut O,
) -> Result<u8, Refused> {
    let count = cores.spec.cores.len();
    let room = OPEN_MAX * args.hosts.len().max(1);
    if count > room {
        let why = format!(
            "{count} core files given, but at most {room} can be opened at once: give fewer files, or more hosts"
        );
        return Err((2, why));
    }
    let has_script = !commands.is_empty();
    let script = script(commands)?;
    let terminal = io::stdin().is_terminal() && Sink::Output.is_terminal() && !args.script.json;
    let interactive = args.script.commands.wants_prompt();
    let prompts = terminal && interactive;
    let reading = Arc::new(AtomicBool::new(false));
    let queue = queue(prompts, &reading, &args.script.commands)?;
    let web = Web::new(&args.script.commands)?;
    let signals = Signals::listen(prompts, false, Arc::clone(&reading))
        .map_err(|error| refused(AppError::Signals(error)))?;
    let config = session(args, &cores.spec);
    let facts = report::facts(&args.program, &config, false);
    let (session, wake) = super::opener::open(opener, &config).map_err(refused)?;
    let (controls, heard) = channel();
    signals.send_to(controls.clone(), Arc::clone(&wake));
    let view = super::view::view(args.script.json, cores.names.clone(), queue.clone());
    let options = options(args, (prompts || web.is_some()) && !has_script);
    let to_pages = (&controls, &wake, queue.as_ref());
    let view = shown_on_pages(web.as_ref(), view, cores.names.clone(), to_pages)?;
    let mut shell = Shell::new(session, application(view, heard, queue.clone()), options);
    shell.set_report(facts, cores.names, None);
    for note in &cores.notes {
        shell.say(note);
    }
    let lines = Lines {
        script: has_script.then_some(script),
        then_prompt: interactive,
        full_screen: args.script.commands.tui,
        queue,
        web,
        controls,
        wake,
    };
    let ending = if shell.open_cores(cores.spec) {
        carry_out(&mut shell, lines)
    } else {
        Ending {
            code: NOT_STARTED,
            policy: EndPolicy::Detach,
            reason: Some("no core file could be opened".to_owned()),
        }
    };
    Ok(end(shell, opener, ending))
}

fn options(args: &CoreArgs, interactive: bool) -> Options {
    Options {
        interactive,
        query_timeout: Duration::from_secs(args.script.timeout.into()),
        attached: true,
        ..Options::default()
    }
}

/// Reads the core files' process data, and names the tasks.
///
/// # Errors
/// [`AppError`] if the program does not exist, a file is not a core file, or too many files are compressed.
fn look_up(args: &CoreArgs) -> Result<Cores, AppError> {
    let program = sdm_launch::find_program(&args.program).filter(|path| path.is_file());
    let program = program.ok_or_else(|| AppError::NoProgram(args.program.clone().into()))?;
    let of = |path: &Path| {
        let path = path.to_owned();
        move |source| AppError::File { path, source }
    };
    let absolute = |path: &Path| std::path::absolute(path).map_err(of(path));
    let mut processes = Vec::new();
    let mut unpacked = Vec::new();
    let mut paths = Vec::new();
    for path in &args.cores {
        let core = open(path, !args.hosts.is_empty()).map_err(of(path))?;
        let at = core.unpacked.as_ref().map_or(&**path, SecretFile::path);
        paths.push(absolute(at)?);
        processes.push(core.process);
        unpacked.extend(core.unpacked);
        if unpacked.len() > OPEN_MAX {
            return Err(AppError::ManyPacked { max: OPEN_MAX });
        }
    }
    let (numbers, names) = numbers(&processes);
    let paths = paths
        .into_iter()
        .map(|path| path.into_os_string().into_vec());
    let cores = numbers.into_iter().zip(paths).collect();
    let gdb = args.gdb.as_ref();
    Ok(Cores {
        notes: strangers(&program, &processes, args),
        spec: CoreSpec {
            cores,
            program: absolute(&program)?.into_os_string().into_vec(),
            gdb: gdb.map(|path| path.as_os_str().as_bytes().to_vec()),
        },
        names,
        _unpacked: unpacked,
    })
}

/// Opens a core file of this host. For a file that other hosts open (`elsewhere`), returns only the process data that
/// can be read on this host, or no data.
fn open(path: &Path, elsewhere: bool) -> io::Result<CoreFile> {
    if !elsewhere {
        return core_file::open(path);
    }
    let process = match core_file::read(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
        // The file may exist on the other hosts only.
        read => read.unwrap_or_default(),
    };
    let unpacked = None;
    Ok(CoreFile { process, unpacked })
}

/// The numbers of the tasks, and their names: distinct ranks, otherwise pids, otherwise indices in the list.
fn numbers(processes: &[CoreProcess]) -> (Vec<u32>, Names) {
    let distinct = |numbers: Option<Vec<u32>>| {
        let numbers = numbers?;
        let set: BTreeSet<_> = numbers.iter().collect();
        (set.len() == numbers.len()).then_some(numbers)
    };
    if let Some(ranks) = distinct(processes.iter().map(|it| it.rank).collect()) {
        return (ranks, Names::ranks());
    }
    let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    let places: Vec<u32> = (0..count).collect();
    match distinct(processes.iter().map(|it| it.pid).collect()) {
        Some(pids) => {
            let named = places.iter().map(|place| TaskId(*place)).zip(pids);
            (places.clone(), Names::pids(named.collect()))
        }
        None => (places, Names::cores()),
    }
}

/// Warnings about core files that seem to be of another program, which gdb would show wrongly without a
/// warning.
fn strangers(program: &Path, processes: &[CoreProcess], args: &CoreArgs) -> Vec<String> {
    let name = |path: &Path| path.file_name().map(printable_name);
    let mine = name(program);
    let said = processes.iter().zip(&args.cores).filter_map(|(it, core)| {
        let theirs = name(it.program.as_ref()?)?;
        let mine = mine.as_ref().filter(|mine| **mine != theirs)?;
        let core = printable_name(core);
        Some(format!(
            "{core} was written by `{theirs}`, which may not be `{mine}`"
        ))
    });
    said.take(8).collect()
}

/// The session configuration: one server here, or one on each host, each with its part of the files.
fn session(args: &CoreArgs, spec: &CoreSpec) -> SessionConfig {
    let hosts = args.hosts.len().clamp(1, spec.cores.len());
    let share = spec.cores.len().div_ceil(hosts);
    let tasks: Vec<IdSet> = spec
        .cores
        .chunks(share)
        .map(|part| part.iter().map(|(task, _)| TaskId(*task)).collect())
        .collect();
    let count = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let mut session = TreeArgs::default().session(count);
    if !args.hosts.is_empty() {
        "ssh".clone_into(&mut session.launcher);
        session.launcher_options.clone_from(&args.launcher_options);
        session.server_path.clone_from(&args.server_path);
        let hosts = args.hosts.iter().take(tasks.len());
        session.hosts = hosts
            .map(|host| HostShare {
                slots: Some(1),
                ..host.clone()
            })
            .collect();
    }
    session.tasks = tasks;
    session.backend = args.printers.backend();
    session
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(rank: Option<u32>, pid: Option<u32>) -> CoreProcess {
        CoreProcess {
            rank,
            pid,
            program: None,
        }
    }

    #[test]
    fn core_files_are_named_by_rank_or_pid() {
        let both = [process(Some(3), Some(9)), process(Some(1), Some(9))];
        assert_eq!(numbers(&both), (vec![3, 1], Names::ranks()));
        let pids = [process(None, Some(9)), process(Some(1), Some(7))];
        let named = Names::pids(vec![(TaskId(0), 9), (TaskId(1), 7)]);
        assert_eq!(numbers(&pids), (vec![0, 1], named));
        let alike = [process(Some(1), Some(9)), process(Some(1), Some(9))];
        assert_eq!(numbers(&alike), (vec![0, 1], Names::cores()));
    }
}
