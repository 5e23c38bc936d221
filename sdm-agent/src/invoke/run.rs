//! The event loop of an invoke server: the client's three pipes, and the managers' threads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use sdm_system::files::{self, Writing};

use super::guard::Guard;
use super::manager_threads::{JobUpdate, ManagerThreads};
use super::server::{Action, JobState, Pipe, Server};
use super::target::Target;

/// Beginning of this program's name as an invoke server; the server's type follows.
pub const NAME: &str = "ng_invoke_server.";
/// Time limit for the jobs to end with the server. Its guard continues to end them after that.
const END_WAIT: Duration = Duration::from_secs(60);

/// Serves the client at the standard streams until it has ended the session or is gone, and its jobs have ended. For a
/// client that is gone, its jobs are waited for at most a minute.
///
/// # Errors
/// [`io::Error`] of the system: of the log, a guard that cannot be started, a thread that there is no room for.
pub fn serve(server_type: &str, log: Option<&Path>) -> io::Result<()> {
    let mut log = log
        .map(|path| files::open_to_write(path, Writing::Behind))
        .transpose()?;
    // The terminal's signals are for the client; this server sees the client's end.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGTERM] {
        signals.add(signal);
    }
    let program = std::env::current_exe()?;
    let guard = Guard::start(&program)?;
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let mut back = ManagerThreads::new(guard)?;
    let mut server = Server::new(format!("sdm-{}", std::process::id()));
    let mut input = Some(io::stdin());
    let mut ends_until = None;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let now = Instant::now();
        while let Some(action) = server.poll_action() {
            carry_out(&mut back, &mut server, server_type, action, log.as_mut());
        }
        let mut is_heard = true;
        while let Some((pipe, bytes)) = server.poll_output() {
            is_heard &= match pipe {
                Pipe::Replies => write_all(io::stdout(), &bytes),
                Pipe::Notifies => write_all(io::stderr(), &bytes),
            };
        }
        if !is_heard {
            server.closed(now);
            continue_without(&mut input, &mut ends_until, now);
        }
        let late = ends_until.is_some_and(|until| until <= now);
        if server.is_over() || late {
            return Ok(());
        }
        let until = [server.poll_timeout(), ends_until]
            .into_iter()
            .flatten()
            .min();
        let ready = wait(input.as_ref(), &back, &signals, until)?;
        let now = Instant::now();
        if ready.signal && is_to_end(&signals)? {
            server.closed(now);
            continue_without(&mut input, &mut ends_until, now);
        }
        if ready.news
            && let Some(news) = back.news()?
        {
            match news {
                JobUpdate::Job(number, state, words) => server.job_is(now, number, state, &words),
                JobUpdate::Log(line) => write_log(log.as_mut(), &line),
            }
        }
        if ready.input
            && let Some(stdin) = &mut input
        {
            match stdin.lock().read(&mut buffer) {
                Ok(0) | Err(_) => {
                    server.closed(now);
                    continue_without(&mut input, &mut ends_until, now);
                }
                Ok(count) => server.receive(now, &buffer[..count]),
            }
        }
        if server.poll_timeout().is_some_and(|at| at <= now) {
            server.handle_timeout(now);
        }
    }
}

/// True if SIGTERM has arrived.
fn is_to_end(signals: &SignalFd) -> io::Result<bool> {
    let mut is_to_end = false;
    while let Some(signal) = signals.read_signal()? {
        is_to_end |= signal.ssi_signo.cast_signed() == Signal::SIGTERM as i32;
    }
    Ok(is_to_end)
}

/// Stops reading the client; jobs then have a bounded time to end.
fn continue_without(input: &mut Option<io::Stdin>, ends: &mut Option<Instant>, now: Instant) {
    *input = None;
    ends.get_or_insert(now + END_WAIT);
}

fn carry_out(
    back: &mut ManagerThreads,
    server: &mut Server,
    server_type: &str,
    action: Action,
    log: Option<&mut File>,
) {
    match action {
        Action::Start(number, request) => {
            let started = Target::of(server_type, &request)
                .map_err(|why| why.to_string())
                .and_then(|target| {
                    let started = back.start(number, target, request);
                    started.map_err(|why| why.to_string())
                });
            if let Err(why) = started {
                write_log(log, &format!("job {number}: {why}"));
                server.job_is(Instant::now(), number, JobState::Failed, &why);
            }
        }
        Action::Cancel(number) => back.cancel(number),
        Action::Forget(number) => back.forget(number),
        Action::Log(line) => write_log(log, &line),
    }
}

/// Writes all bytes; false if the reader is gone.
fn write_all(mut to: impl Write, bytes: &[u8]) -> bool {
    to.write_all(bytes).and_then(|()| to.flush()).is_ok()
}

fn write_log(log: Option<&mut File>, line: &str) {
    let Some(log) = log else { return };
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let line = sdm_text::printable(line.as_bytes());
    // A full disk ends no job.
    let _ = writeln!(log, "{seconds} {line}");
}

/// The inputs of the event loop that are ready.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    input: bool,
    news: bool,
    signal: bool,
}

fn wait(
    input: Option<&io::Stdin>,
    back: &ManagerThreads,
    signals: &SignalFd,
    until: Option<Instant>,
) -> io::Result<Ready> {
    let mut all: Vec<BorrowedFd<'_>> = vec![back.bell().as_fd(), signals.as_fd()];
    all.extend(input.map(AsFd::as_fd));
    let mut polled: Vec<PollFd<'_>> = all
        .into_iter()
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = left.map_or(PollTimeout::NONE, |left| {
        PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut polled, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |at: usize| {
        let found = polled.get(at).and_then(PollFd::revents);
        found.is_some_and(|flags| !flags.is_empty())
    };
    Ok(Ready {
        news: is_ready(0),
        signal: is_ready(1),
        input: is_ready(2),
    })
}
