//! The process that looks at others for a server: it reads their files, has snapshots taken by a child, and tells of their stacks.
//!
//! It is the server's own executable in another mode ([`run`] is among the first that its `main` does), so that what a damaged
//! file does to it is its end and not the server's, and so that a server's loop never waits for a disk. It goes with whoever
//! started it: the end of its input ends it.

mod client;
mod message;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

pub use client::{Answer, Looker};
use message::{Ask, Frames, Told, frame};

use crate::stack::Inspector;

/// The first word of its command line.
const MODE: &str = "--look";
/// The second, where debug information is also looked for where systems keep it.
const OF_SYSTEM: &str = "--system-debug";
/// How long a process may take to stop.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that it keeps of what it has read, in bytes of memory that is its own; then another one takes its place.
const OWN_BYTES_MAX: u64 = 256 << 20;
/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// Looks at processes until the end of the input, where this process was started for that; `None` where it was not.
#[must_use]
pub fn run() -> Option<io::Result<()>> {
    let mut words = std::env::args_os().skip(1);
    let mode = words.next()?;
    (mode == MODE).then(|| serve(words.next().is_some_and(|word| word == OF_SYSTEM)))
}

fn serve(of_system: bool) -> io::Result<()> {
    let mut from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut to = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut inspector = Inspector::new(of_system);
    let mut frames = Frames::default();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        while let Some(ask) = frames.take()? {
            answer(&mut inspector, &ask, &mut to)?;
            if is_full() {
                return Ok(());
            }
        }
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => frames.push(&bytes[..count]),
        }
    }
}

/// Looks as often as is asked for. A look that takes longer than the period costs those that were to come meanwhile.
fn answer(inspector: &mut Inspector, ask: &Ask, to: &mut File) -> io::Result<()> {
    let began = Instant::now();
    let mut spaces = inspector.open(&ask.pids);
    let mut next = began;
    loop {
        let looked = inspector.look(&mut spaces, PATIENCE);
        let now = Instant::now();
        while next <= now && !ask.period.is_zero() {
            next += ask.period;
        }
        let is_over = ask.period.is_zero() || next >= began + ask.span;
        if is_over {
            // Who asks for more at once finds that the next look is due.
            wait_until(next);
        }
        let processor = processor()?;
        for (pid, stacks) in ask.pids.iter().copied().zip(looked) {
            let is_last = is_over || stacks.is_err();
            to.write_all(&frame(&Told {
                number: ask.number,
                pid,
                stacks,
                is_last,
                processor,
            })?)?;
        }
        if is_over {
            return Ok(());
        }
        wait_until(next);
    }
}

fn wait_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// The processor time of this process and of those that took snapshots for it.
fn processor() -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        for time in [usage.user_time(), usage.system_time()] {
            sum += Duration::from_micros(time.num_microseconds().unsigned_abs());
        }
    }
    Ok(sum)
}

/// Whether it has read so much that it shall begin anew.
fn is_full() -> bool {
    let status = sdm_system::proc::own().status();
    let own = status.ok().and_then(|status| status.bytes("RssAnon"));
    own.is_some_and(|own| own > OWN_BYTES_MAX)
}
