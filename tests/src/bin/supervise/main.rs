//! Runs one test program as an ordinary user, and checks that it leaves no process: the test runner's `runner`.
//!
//! usage: `supervise PROGRAM [ARGUMENT...]`; it starts itself again as `--inside FOLDER PROGRAM [ARGUMENT...]` in a
//! test's namespaces, and a test starts it as `--keep NAME OWNER` above a service
//!
//! Tests of launchers, and those of root that share no service, have pid namespaces and a temporary folder of their
//! own ([`namespaces`]). The costs of the test are appended to the file that `SDM_TEST_COSTS` names ([`costs`]).
//!
//! Under root the program runs as an ordinary user, with a home and a temporary folder of its own. An exception is
//! a program named `privileged-...`, whose set-up needs root, and which starts everything else as that user itself.
//! Orphans of the program become children of this process. Those that are left some time after the program's end
//! (`GONE_WITHIN`) are named, killed, and fail the test.

mod costs;
mod keep;
mod namespaces;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Gid, Pid, Uid, geteuid, setgid, setgroups, setuid};
use sdm_tests::leftovers::{GONE_WITHIN, SUPERVISOR_VARIABLE, named};
use sdm_tests::ordinary::USER;
use sdm_tests::service::{RUN_VARIABLE, descendants_but_services, is_in_group};

use crate::costs::Costs;
use crate::namespaces::Apart;

/// Interval between searches for leftovers while they end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The exit code of a test that failed.
const FAILED: u8 = 101;
/// Argument with which this program runs as the first process of a test's namespaces.
const INSIDE: &str = "--inside";

fn main() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let Some(first) = words.next() else {
        bail!("usage: supervise PROGRAM [ARGUMENT...]");
    };
    match first.to_str() {
        Some("--keep") => keep::keep(words),
        Some(INSIDE) => {
            let own = words.next().map(PathBuf::from).context("a folder")?;
            let program = words.next().map(PathBuf::from).context("a program")?;
            let code = inside(&own, &program, &words.collect::<Vec<_>>())?;
            Ok(ExitCode::from(code))
        }
        _ => supervise(&PathBuf::from(first), &words.collect::<Vec<_>>()),
    }
}

/// Runs a test program isolated as [`Apart`] says: in namespaces, under a lock, or not at all. With `--list` it only
/// executes the program.
fn supervise(program: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    if arguments.iter().any(|argument| argument == "--list") {
        let error = Command::new(program).args(arguments).exec();
        return Err(error).context(format!("{}", program.display()));
    }
    let test = test_of(arguments);
    let costs = Costs::begin(program, test)?;
    let user = ordinary_user(program);
    fixtures_folder(program, user)?;
    let own = OwnFolder::make()?;
    let apart = Apart::of(program, test)?;
    let code = match &apart {
        Apart::Namespaces => {
            let mut command = namespaces::within(&own.0, std::env::current_exe()?.as_os_str());
            command.arg(INSIDE).arg(&own.0).arg(program).args(arguments);
            run(&mut with_owner(command))?.0
        }
        Apart::No | Apart::Lock(_) => {
            own.furnish(user)?;
            become_user(user)?;
            prctl::set_child_subreaper(true).context("supervise: take orphans")?;
            test_to_its_end(&mut with_owner(command(program, arguments, &own.0)), test)?
        }
    };
    drop((own, apart));
    costs.write(code)?;
    Ok(ExitCode::from(code))
}

/// Runs a test, as the first process of its namespaces. The folder `own` is empty at the start.
fn inside(own: &Path, program: &Path, arguments: &[OsString]) -> Result<u8> {
    let user = ordinary_user(program);
    furnish(own, user)?;
    become_user(user)?;
    // A change of the user id clears the death signal.
    prctl::set_pdeathsig(Signal::SIGKILL).context("supervise: go with the test")?;
    let mut command = command(program, arguments, own);
    test_to_its_end(&mut command, test_of(arguments))
}

/// Name of the test to run: the first word that is no option, or `all`.
fn test_of(arguments: &[OsString]) -> &str {
    let mut words = arguments.iter().filter_map(|it| it.to_str());
    words.find(|it| !it.starts_with('-')).unwrap_or("all")
}

fn become_user(user: Option<(Uid, Gid)>) -> Result<()> {
    if let Some((uid, gid)) = user {
        setgroups(&[]).context("supervise: drop the groups")?;
        setgid(gid).context("supervise: become the group")?;
        setuid(uid).context("supervise: become the user")?;
    }
    Ok(())
}

/// Sets [`RUN_VARIABLE`] of a command to the pid of the test runner, unless it is set. The services end with that
/// process.
fn with_owner(mut command: Command) -> Command {
    if std::env::var_os(RUN_VARIABLE).is_none() {
        command.env(RUN_VARIABLE, nix::unistd::getppid().to_string());
    }
    command
}

/// Runs a test, and checks that no process of it is left. Returns the exit code.
fn test_to_its_end(command: &mut Command, test: &str) -> Result<u8> {
    let (code, stopped) = run(command)?;
    let left = end_leftovers(if stopped { Duration::ZERO } else { GONE_WITHIN });
    if left.is_empty() || stopped {
        return Ok(code);
    }
    eprintln!("left behind by {test}:");
    for line in left {
        eprintln!("  {line}");
    }
    Ok(FAILED)
}

/// Runs a command until it ends, or until this process gets a signal to end. Returns the exit code, and true after such
/// a signal.
fn run(command: &mut Command) -> Result<(u8, bool)> {
    // Before signals are blocked here, as a child inherits that.
    let child = command.spawn();
    let child = child.with_context(|| format!("supervise: {}", command.get_program().display()))?;
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
    ] {
        signals.add(signal);
    }
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None)?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
    let (status, stopped) = wait_for(Pid::from_raw(child.id().cast_signed()), &signals)?;
    Ok((exit_code(status), stopped))
}

/// User and group under which the program runs; `None` for this process's own.
fn ordinary_user(program: &Path) -> Option<(Uid, Gid)> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if !geteuid().is_root() || name.starts_with("privileged-") {
        return None;
    }
    Some((Uid::from_raw(USER), Gid::from_raw(USER)))
}

/// A folder with a home and a temporary folder. Drop removes it.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn make() -> Result<Self> {
        // Short: names of sockets lie in it. One that was killed may have left a folder of this name.
        let name = |letter: &str| format!("sdm-t{}{letter}", std::process::id());
        let own = ["", "a", "b", "c"]
            .map(name)
            .into_iter()
            .map(|name| std::env::temp_dir().join(name))
            .find(|path| !path.exists())
            .context("supervise: folders of killed ones are in the way")?;
        fs::create_dir(&own).with_context(|| format!("supervise: {}", own.display()))?;
        Ok(Self(own))
    }

    fn furnish(&self, user: Option<(Uid, Gid)>) -> Result<()> {
        furnish(&self.0, user)
    }
}

/// Creates a home and a temporary folder in the test's folder.
fn furnish(own: &Path, user: Option<(Uid, Gid)>) -> Result<()> {
    // Files that root prepares for the ordinary user, and files of that user's programs, are in root's folder.
    let (mode, temporary) = match user {
        None if geteuid().is_root() => (0o755, 0o1777),
        _ => (0o700, 0o700),
    };
    for (path, mode) in [
        (own.to_owned(), mode),
        (own.join("home"), mode),
        (own.join("tmp"), temporary),
    ] {
        let made = match path == own {
            true => Ok(()),
            false => fs::create_dir(&path),
        };
        let made = made.and_then(|()| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            match user {
                Some((uid, gid)) => chown(&path, Some(uid.as_raw()), Some(gid.as_raw())),
                None => Ok(()),
            }
        });
        made.with_context(|| format!("supervise: {}", path.display()))?;
    }
    Ok(())
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // The user cannot remove the folder itself if its parent is root's; then the empty folder stays.
        for inner in ["home", "tmp"] {
            let _ = fs::remove_dir_all(self.0.join(inner));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Creates the folder of compiled programs, owned by the user.
fn fixtures_folder(program: &Path, user: Option<(Uid, Gid)>) -> Result<()> {
    let Some(target) = program.ancestors().nth(3) else {
        return Ok(());
    };
    let folder = target.join("fixtures");
    fs::create_dir_all(&folder).with_context(|| format!("supervise: {}", folder.display()))?;
    if let Some((uid, gid)) = user {
        chown(&folder, Some(uid.as_raw()), Some(gid.as_raw()))?;
    }
    Ok(())
}

fn command(program: &Path, arguments: &[OsString], own: &Path) -> Command {
    // A shell's background processes ignore SIGINT from their start.
    let mut command = Command::new("/usr/bin/env");
    command
        .args(["--default-signal=INT,QUIT", "--"])
        .arg(program)
        .args(arguments)
        .env("HOME", own.join("home"))
        .env("TMPDIR", own.join("tmp"))
        .env(SUPERVISOR_VARIABLE, std::process::id().to_string());
    for variable in [
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "USER",
        "LOGNAME",
    ] {
        command.env_remove(variable);
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // The tests that have other hosts have devices that come and go, and need them.
    let has_hosts = name.starts_with("privileged-") && is_in_group("hosts", true);
    if !has_hosts {
        // MPICH's UCX lists all devices first and opens them then. For a device that was removed in between it prints
        // "No such device".
        command.env("UCX_NET_DEVICES", "lo");
    }
    command
}

/// Waits for the program's end, and reaps orphans. A signal to this process kills the program; the result is then true.
fn wait_for(program: Pid, signals: &SignalFd) -> Result<(WaitStatus, bool)> {
    let mut stopped = false;
    loop {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => break,
                Ok(status) if status.pid() == Some(program) => return Ok((status, stopped)),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno).context("supervise: wait"),
            }
        }
        let signal = signals.read_signal().context("supervise: read a signal")?;
        let number = signal.and_then(|signal| i32::try_from(signal.ssi_signo).ok());
        if number != Some(Signal::SIGCHLD as i32) {
            stopped = true;
            let _ = kill(program, Signal::SIGKILL);
        }
    }
}

/// Waits until no process of the test is left. Kills those that are left after `within`, and returns a line about each.
fn end_leftovers(within: Duration) -> Vec<String> {
    let deadline = Instant::now() + within;
    let mut named_left = Vec::new();
    loop {
        while waitpid(None, Some(WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != WaitStatus::StillAlive)
        {}
        let left = descendants_but_services(std::process::id());
        if left.is_empty() {
            return named_left;
        }
        if Instant::now() >= deadline {
            for pid in left {
                let line = named(pid);
                if !named_left.contains(&line) {
                    named_left.push(line);
                }
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        _ => FAILED.into(),
    };
    u8::try_from(code).unwrap_or(FAILED)
}
