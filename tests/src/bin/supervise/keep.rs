//! The keeper of a service that tests share: it starts the service, is the ancestor of all its processes, and ends
//! it when the run of tests is over.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Write, stdout};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::setsid;
use sdm_tests::leftovers::descendants_living;
use sdm_tests::service::{KEEPER, Service};

/// Runs the service NAME until the process OWNER has ended, or this process gets SIGTERM. Prints `up` once the service
/// runs.
///
/// # Errors
/// The service does not start, or already runs.
pub(crate) fn keep(mut words: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    let mut word = || words.next().and_then(|it| it.into_string().ok());
    let (Some(name), Some(owner)) = (word(), word()) else {
        bail!("usage: supervise --keep NAME OWNER");
    };
    let owner: u32 = owner.parse().context("the pid of OWNER")?;
    let service = Service::of(&name).with_context(|| format!("no service {name}"))?;
    setsid().context("leave the test's session")?;
    prctl::set_name(KEEPER).context("be known as a keeper")?;
    prctl::set_child_subreaper(true).context("take orphans")?;
    let file = File::create(service.record()).context("the record")?;
    let Ok(mut record) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
        bail!("{name} has a keeper");
    };
    run(service, "start")?;
    // Only root gets into this folder.
    let _ = std::fs::remove_file(service.socket());
    let renewals = UnixListener::bind(service.socket()).context("the socket")?;
    let signals = block()?;
    let own = descendants_living(std::process::id());
    let own: Vec<String> = own.iter().map(ToString::to_string).collect();
    let text = format!("{} {owner}\n{}\n", std::process::id(), own.join(" "));
    record.write_all(text.as_bytes()).context("the record")?;
    println!("up");
    stdout().flush().context("say that it is up")?;
    wait(owner, &signals, service, &renewals)?;
    let ended = run(service, "stop");
    super::end_leftovers(std::time::Duration::ZERO);
    // Until now, tests that need another keeper wait.
    drop(record);
    ended.map(|()| ExitCode::SUCCESS)
}

fn run(service: &Service, verb: &str) -> Result<()> {
    let mut script = service.script(verb);
    // Nothing of the test that happens to be the first one.
    script.env_clear();
    script.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    script.stdin(Stdio::null()).stdout(Stdio::null());
    let status = script.status().context("run the script")?;
    match status.success() {
        true => Ok(()),
        false => bail!("{script:?}: {status}"),
    }
}

/// Resets the service for the next test, which gets the error if that fails. The processes that the script starts
/// become this process's descendants.
fn renew(service: &Service, renewals: &UnixListener) -> Result<()> {
    let (mut test, _) = renewals.accept().context("a test")?;
    // The started script needs SIGCHLD.
    sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&signals()), None)?;
    let done = service.script("renew").stdin(Stdio::null()).output();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals()), None)?;
    let done = done.context("run the script")?;
    let mut said = [done.stdout, done.stderr].concat();
    if !done.status.success() {
        said.extend(done.status.to_string().bytes());
    }
    // The test may have been killed meanwhile.
    let _ = test.write_all(&said);
    Ok(())
}

/// Blocks the signals for which this process waits, and returns a descriptor that reports them.
fn block() -> Result<SignalFd> {
    let signals = signals();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&signals, flags).context("hear of signals")
}

fn signals() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.add(Signal::SIGTERM);
    signals
}

/// Waits for the owner's end, or for SIGTERM. Meanwhile reaps orphans, and resets the service when a test asks for it.
fn wait(owner: u32, signals: &SignalFd, service: &Service, renewals: &UnixListener) -> Result<()> {
    let owner = sdm_system::pidfd_open(owner).ok();
    loop {
        while waitpid(None, Some(WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != WaitStatus::StillAlive)
        {}
        // An owner that has already ended has no descriptor.
        let Some(owner) = &owner else { break };
        let waited = [owner.as_fd(), signals.as_fd(), renewals.as_fd()];
        let mut waited = waited.map(|it| PollFd::new(it, PollFlags::POLLIN));
        match poll(&mut waited, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("wait for the end of the run"),
        }
        let [has_ended, _, is_wanted] = waited.map(|it| it.any().unwrap_or(false));
        let signal = signals.read_signal().context("read a signal")?;
        if has_ended || signal.is_some_and(|it| it.ssi_signo == Signal::SIGTERM as u32) {
            break;
        }
        if is_wanted {
            renew(service, renewals)?;
        }
    }
    // Processes started from now on need SIGCHLD.
    sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&self::signals()), None).context("hear of children")
}
