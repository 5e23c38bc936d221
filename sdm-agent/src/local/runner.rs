//! The runner of a job: a process that starts the ordered programs, waits for their end, and records how they ended.
//!
//! A runner belongs to no agent and no terminal: agents find the job by its record. The processes that a runner has
//! started end with it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{AccessFlags, Pid, access, alarm, setsid};
use sdm_system::programs;
use sdm_text::without_numbers;

use super::output::{self, Collector};
use super::record::{self, Order, Started, State};

/// Time from the signal that asks the processes to end until they are killed, in seconds.
const END_WAIT_SECONDS: u32 = 5;
/// Interval at which the processes' output is collected in the job's own files.
const COLLECT_PERIOD: Duration = Duration::from_millis(250);
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
        state.error = Some(without_numbers(&why.to_string()).into_owned());
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
    let collector = collect(&order, folder);
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
    if let Some(collector) = collector {
        let mut collector = collector.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be copied stays in the files of its process.
        let _ = collector.collect(true);
    }
    state.ended = Some(now());
    record::set_state(folder, &state)
}

/// Starts a thread that collects the output of a job of several processes.
fn collect(order: &Order, folder: &Path) -> Option<Arc<Mutex<Collector>>> {
    let collector = (order.copies > 1).then(|| Collector::new(folder, order.copies))?;
    let collector = Arc::new(Mutex::new(collector));
    let own = Arc::clone(&collector);
    // The thread ends with the process.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(COLLECT_PERIOD);
            let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = own.collect(false);
        }
    });
    Some(collector)
}

fn start_all(order: &Order, folder: &Path, state: &mut State) -> io::Result<()> {
    let Some((program, arguments)) = order.words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let failed =
        |program: &str, why: &io::Error| io::Error::new(why.kind(), format!("{program}: {why}"));
    for path in output::paths(folder, 0, 1) {
        output::open(&path)?;
    }
    for needed in &order.needs {
        is_startable(needed, order).map_err(|why| failed(needed, &why))?;
    }
    let found = programs::find(program.as_ref(), &path_of(order));
    let found = found.map_err(|why| failed(program, &why))?;
    for index in 0..order.copies {
        let [out, err] = output::paths(folder, index, order.copies);
        let mut command = programs::at(&found);
        command.args(arguments).current_dir(&order.directory);
        command.stdin(Stdio::null());
        command
            .stdout(output::open(&out)?)
            .stderr(output::open(&err)?);
        let pairs = order
            .environment
            .iter()
            .filter_map(|pair| pair.split_once('='));
        command.envs(pairs).env("SDM_JOB_INDEX", index.to_string());
        sdm_system::goes_with_its_parent(command.process_group(0));
        let child = command.spawn().map_err(|why| failed(program, &why))?;
        state.started.push(Started {
            pid: child.id().try_into().unwrap_or(0),
            ..Started::default()
        });
    }
    Ok(())
}

/// The `PATH` of a job.
fn path_of(order: &Order) -> OsString {
    let given = |pair: &String| pair.strip_prefix("PATH=").map(OsString::from);
    let given = order.environment.iter().rev().find_map(given);
    given.unwrap_or_else(|| std::env::var_os("PATH").unwrap_or_default())
}

/// Checks that a program of the job's command line can be executed: a launcher, a kept session or a debugger would
/// report a failed start in its own way, or not at all.
fn is_startable(program: &str, order: &Order) -> io::Result<()> {
    let found = programs::find(program.as_ref(), &path_of(order))?;
    let path = order.directory.join(found);
    access(&path, AccessFlags::X_OK)?;
    match fs::metadata(&path)?.is_file() {
        true => Ok(()),
        false => Err(Errno::EACCES.into()),
    }
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
