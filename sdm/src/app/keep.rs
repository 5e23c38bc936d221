//! `--keep`, and the commands `sdm sessions`, `resume` and `detach`: sessions that continue without their terminal.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::time::Duration;

use sdm_keep::{About, KeeperOptions, KeeperState, Name, ReturnReason};
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_system::programs;
use sdm_text::record;
use serde_json::json;

use super::error::AppError;

use crate::cli::{KeeperArgs, Verb};
use crate::sink::{Sink, complain, tell};

/// Time that an ended session is kept for a client to attach and see its end.
const WAIT_AFTER_END: Duration = Duration::from_secs(600);

/// The name of `--keep`, and the word from which a missing name is generated: the program or the command. An empty name
/// stands for a generated one. None without `--keep`.
pub(super) fn wanted(verb: &Verb) -> Option<(&str, String)> {
    let (keep, about) = match verb {
        Verb::Run(args) => (
            &args.script.commands.keep,
            args.program[0].to_string_lossy().into_owned(),
        ),
        Verb::Emulate(args) => (&args.script.commands.keep, "emulate".to_owned()),
        Verb::Attach(args) | Verb::Web(args) => (&args.commands.keep, "attach".to_owned()),
        Verb::Core(args) => (&args.script.commands.keep, "core".to_owned()),
        _ => return None,
    };
    Some((keep.as_deref()?, about))
}

/// Runs this command line without `--keep` under a keeper process, and connects it to this terminal.
pub(super) fn start(name: &str, about: &str, args: &[OsString]) -> u8 {
    let name = match name {
        "" => Ok(Name::of_program(about, std::process::id())),
        name => Name::new(name),
    };
    let name = match name {
        Ok(name) => name,
        Err(error) => return say(2, &error),
    };
    if !io::stdin().is_terminal() || !Sink::Output.is_terminal() {
        return say(2, &"--keep: standard input and output must be a terminal");
    }
    say_where_not();
    match sdm_keep::sessions() {
        Ok(sessions) if sessions.iter().any(|s| s.name == name.as_str()) => {
            let name = name.as_str();
            complain(format_args!(
                "sdm: session '{name}' exists already; `sdm resume {name}` reattaches to it"
            ));
            return 2;
        }
        Ok(_) => {}
        Err(error) => return say(NOT_STARTED, &error),
    }
    let started = std::env::current_exe().and_then(|sdm| {
        let mut keeper = programs::at(sdm);
        keeper.args(["keeper", name.as_str(), "--"]);
        sdm_keep::start_keeper(keeper.args(without_keep(args)))
    });
    if let Err(error) = started {
        return say(NOT_STARTED, &error);
    }
    let name_text = name.as_str();
    complain(format_args!(
        "[session {name_text} is kept: Ctrl-\\ detaches, `sdm resume {name_text}` reattaches]"
    ));
    lend(&name)
}

/// The arguments after the program name, without `--keep`.
fn without_keep(args: &[OsString]) -> Vec<&OsString> {
    let end = args
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(args.len());
    let is_keep =
        |arg: &OsString| arg == "--keep" || arg.as_encoded_bytes().starts_with(b"--keep=");
    let (ours, rest) = args.split_at(end);
    let ours = ours.iter().skip(1).filter(|arg| !is_keep(arg));
    ours.chain(rest).collect()
}

/// Carries out `sdm keeper`. Returns the exit code.
pub(super) fn keeper(args: &KeeperArgs) -> u8 {
    let kept = Name::new(&args.name).map_err(sdm_keep::KeepError::from);
    let kept = kept.and_then(|name| {
        let mut command = vec![std::env::current_exe()?.into_os_string()];
        command.extend(args.command.iter().cloned());
        sdm_keep::keep(KeeperOptions {
            name,
            command,
            wait_after_end: WAIT_AFTER_END,
        })
    });
    match kept {
        Ok(()) => 0,
        Err(error) => say(NOT_STARTED, &error),
    }
}

/// Carries out `sdm sessions`. Returns the exit code.
pub(super) fn sessions(json: bool) -> u8 {
    say_where_not();
    let sessions = match sdm_keep::sessions() {
        Ok(sessions) => sessions,
        Err(error) => return say(2, &error),
    };
    if json {
        let one = |About { name, keeper }: &About| match keeper {
            KeeperState::Running {
                age,
                attached,
                command,
            } => json!({
                "name": name,
                "attached": attached,
                "age_seconds": age.as_secs(),
                "command": command,
            }),
            KeeperState::Stopped(pid) => json!({ "name": name, "stopped_pid": pid }),
        };
        let all: Vec<_> = sessions.iter().map(one).collect();
        let document = record(&json!({ "sessions": all }).to_string());
        return u8::from(tell(&document).is_err());
    }
    if sessions.is_empty() {
        let said = tell("no kept session on this host; `--keep` starts one");
        return u8::from(said.is_err());
    }
    let width = sessions.iter().map(|s| s.name.len()).max().unwrap_or(0);
    for About { name, keeper } in sessions {
        let line = match keeper {
            KeeperState::Running {
                age,
                attached,
                command,
            } => {
                let seconds = age.as_secs();
                let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                let state = if attached { "attached" } else { "detached" };
                format!("{name:width$}  {state}  {h}:{m:02}:{s:02}  {command}")
            }
            KeeperState::Stopped(pid) => {
                format!(
                    "{name:width$}  stopped: `kill -CONT {pid}` continues the process that keeps it"
                )
            }
        };
        if tell(&line).is_err() {
            return 1;
        }
    }
    0
}

/// Carries out `sdm resume`. Returns the exit code.
pub(super) fn resume(session: Option<&str>) -> u8 {
    match chosen(session) {
        Ok(name) => lend(&name),
        Err(error) => say(2, &error.to_string()),
    }
}

/// Carries out `sdm detach`. Returns the exit code.
pub(super) fn detach(session: Option<&str>) -> u8 {
    let told = chosen(session).and_then(|name| {
        sdm_keep::tell_to_detach(&name)?;
        let name = name.as_str();
        let line = format!("session {name} keeps running; `sdm resume {name}` reattaches to it");
        // The request has succeeded, so a failed write is ignored.
        let _ = tell(&line);
        Ok(())
    });
    match told {
        Ok(()) => 0,
        Err(error) => say(2, &error.to_string()),
    }
}

/// The kept session of this name, or the only one.
fn chosen(session: Option<&str>) -> Result<Name, AppError> {
    if let Some(session) = session {
        return Ok(Name::new(session)?);
    }
    let sessions = sdm_keep::sessions()?;
    match &sessions[..] {
        [] => Err(AppError::NoneKept),
        [one] => Ok(Name::new(&one.name)?),
        many => {
            let names = many.iter().map(|kept| kept.name.clone());
            Err(AppError::WhichKept(names.collect()))
        }
    }
}

fn lend(name: &Name) -> u8 {
    let left = sdm_keep::resume(name);
    let name = name.as_str();
    match left {
        Ok(ReturnReason::Ended(code)) => u8::try_from(code).unwrap_or(u8::MAX),
        Ok(ReturnReason::Detached) => {
            complain(format_args!(
                "\nsdm: session {name} keeps running; `sdm resume {name}` reattaches to it"
            ));
            0
        }
        Ok(ReturnReason::Taken) => {
            complain(format_args!(
                "\nsdm: session {name} was resumed at another terminal"
            ));
            0
        }
        Err(error) => say(2, &error),
    }
}

fn say(code: u8, error: &dyn std::fmt::Display) -> u8 {
    complain(format_args!("sdm: {error}"));
    code
}

/// Reports an unusable directory of kept sessions, whose sessions are not listed.
fn say_where_not() {
    if let Some(passed_by) = sdm_system::files::runtime_passed_by() {
        complain(format_args!(
            "sdm: {passed_by}: sdm uses another folder for kept sessions"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_option_is_removed_except_from_program_arguments() {
        let args = "sdm run --keep=x -n 4 --keep -- ./a --keep".split(' ');
        let args: Vec<OsString> = args.map(OsString::from).collect();
        let expect: Vec<OsString> = ["run", "-n", "4", "--", "./a", "--keep"]
            .map(OsString::from)
            .into();
        assert_eq!(without_keep(&args), expect.iter().collect::<Vec<_>>());
    }
}
