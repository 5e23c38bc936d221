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
use std::time::Duration;

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
        while let Some(Ask { number, pids }) = frames.take()? {
            let stacks = inspector.stacks(&pids, PATIENCE);
            for (pid, stacks) in pids.into_iter().zip(stacks) {
                to.write_all(&frame(&Told {
                    number,
                    pid,
                    stacks,
                })?)?;
            }
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

/// Whether it has read so much that it shall begin anew.
fn is_full() -> bool {
    let status = sdm_system::proc::own().status();
    let own = status.ok().and_then(|status| status.bytes("RssAnon"));
    own.is_some_and(|own| own > OWN_BYTES_MAX)
}
