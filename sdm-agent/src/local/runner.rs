//! The runner of a job: a process that starts the ordered programs, waits for their end, and records how they ended.
//!
//! A runner belongs to no agent and no terminal: agents find the job by its record. The processes that a runner has
//! started end with it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, alarm, setsid};
use sdm_system::programs;
use sdm_text::without_numbers;

use super::record::{self, Order, Started, State};

/// Time from the signal that asks the processes to end until they are killed, in seconds.
const END_WAIT_SECONDS: u32 = 5;
/// The first argument with which `sdm-agent` becomes a job's runner.
pub const WORD: &str = "--run-job";
/// The argument after [`WORD`] in the second start of a runner, which becomes the lasting process.
pub const STAY: &str = "--stay";

/// Starts the runner of a job, which stays when this process ends.
///
/// # Errors
/// The program cannot be started, or its intermediate process fails.
pub fn start(program: &Path, folder: &Path) -> io::Result<()> {
    let mut command = programs::at(program);
    command.arg(WORD).arg(folder).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // The first process starts the second and ends, so that this process need not wait for the job.
    let status = command.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the first of its two processes failed ({status})"
        ))),
    }
}

/// Starts the lasting runner and returns; run by the intermediate process that [`start`] has started.
///
/// # Errors
/// The runner cannot be started.
pub fn detach(program: &Path, folder: &Path) -> io::Result<()> {
    // The agent has blocked the signals that it reads by other means; the job's processes must not inherit that.
    SigSet::empty().thread_set_mask()?;
    let mut command = programs::at(program);
    command.args([WORD, STAY]).arg(folder);
    command.spawn().map(drop)
}

/// Runs a job to its end.
///
/// # Errors
/// [`io::Error`] of the record or of a system call. Failures of the job itself are written into the record.
pub fn run(folder: &Path) -> io::Result<()> {
    setsid()?;
    let order = record::order(folder)?;
    let own = std::process::id().try_into().unwrap_or(0);
    let mut state = State {
        runner: own,
        runner_began: record::began(own).unwrap_or(0),
        ..State::default()
    };
    record::set_state(folder, &state)?;
    if let Err(why) = start_all(&order, folder, &mut state) {
        let program = order.words.first().map(String::as_str).unwrap_or_default();
        let why = format!("{program}: {why}");
        state.error = Some(without_numbers(&why).into_owned());
        end_all(&state, Signal::SIGKILL);
    }
    // Blocked only now, as the started processes would inherit it.
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGALRM,
    ] {
        signals.add(signal);
    }
    signals.thread_block()?;
    reap(&mut state)?;
    record::set_state(folder, &state)?;
    while state.started.iter().any(is_running) {
        match signals.wait()? {
            Signal::SIGCHLD => {
                if reap(&mut state)? {
                    record::set_state(folder, &state)?;
                }
            }
            Signal::SIGALRM => end_all(&state, Signal::SIGKILL),
            asked => {
                end_all(&state, asked);
                alarm::set(END_WAIT_SECONDS);
            }
        }
    }
    state.ended = Some(now());
    record::set_state(folder, &state)
}

fn start_all(order: &Order, folder: &Path, state: &mut State) -> io::Result<()> {
    let open = |name| {
        let mut options = File::options();
        options.append(true).create(true).open(folder.join(name))
    };
    let (out, err) = (open("out")?, open("err")?);
    let Some((program, arguments)) = order.words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let own_path = std::env::var_os("PATH").unwrap_or_default();
    let given = |pair: &String| pair.strip_prefix("PATH=").map(OsString::from);
    let path = order.environment.iter().rev().find_map(given);
    let program = programs::find(program.as_ref(), &path.unwrap_or(own_path))?;
    for index in 0..order.copies {
        let mut command = programs::at(&program);
        command.args(arguments).current_dir(&order.directory);
        command.stdin(Stdio::null());
        command.stdout(out.try_clone()?).stderr(err.try_clone()?);
        let pairs = order
            .environment
            .iter()
            .filter_map(|pair| pair.split_once('='));
        command.envs(pairs).env("SDM_JOB_INDEX", index.to_string());
        sdm_system::goes_with_its_parent(command.process_group(0));
        let child = command.spawn()?;
        state.started.push(Started {
            pid: child.id().try_into().unwrap_or(0),
            ..Started::default()
        });
    }
    Ok(())
}

fn is_running(started: &Started) -> bool {
    started.code.is_none() && started.signal.is_none()
}

/// Sends a signal to all process groups of the job that still exist.
fn end_all(state: &State, signal: Signal) {
    for started in state.started.iter().filter(|it| is_running(it)) {
        // A group that has just ended needs no signal.
        let _ = killpg(Pid::from_raw(started.pid), signal);
    }
}

/// Records the processes that have ended; true if there are any.
fn reap(state: &mut State) -> io::Result<bool> {
    let mut has_ended = false;
    loop {
        let (pid, code, signal) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                (pid, None, Some(signal.as_str().to_owned()))
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(has_ended),
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(started) = state.started.iter_mut().find(|it| it.pid == pid.as_raw()) {
            (started.code, started.signal) = (code, signal);
            has_ended = true;
            // Processes that it has left in its group are killed, too.
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

/// The present time, in seconds of Unix time.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().try_into().unwrap_or(0))
}

/// True if the path is a folder, as the working directory of a job must be.
pub(crate) fn is_folder(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_dir())
}
