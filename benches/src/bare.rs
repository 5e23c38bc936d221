//! Lower bound of starting, asking and ending a tree of many processes: as many forked processes over Unix sockets
//! that do nothing else, without encryption, plan or checks.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;

use crate::floor::pass_on;
use crate::floor::sockets::{FloorListener, FloorStream, Sockets};
use crate::sys::fork_off;

/// Number of children of a member, as by default in the real tree.
const FANOUT: u32 = 32;
/// Number of members that one process forks, as in the real tree.
const FORKED: u32 = 64;
/// Time limit for a member to find its parent.
const PARENT_WAIT: Duration = Duration::from_secs(120);
/// The length of a command and of its answer.
const BYTES: usize = 64;

/// Duration of each phase of a tree's life.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// From the first process until all are connected.
    pub start: Duration,
    /// Time for two commands to all members and their answers.
    pub answers: Duration,
    /// Time until all members have ended.
    pub end: Duration,
}

/// Starts, uses and ends a tree of `members` members; `program` is the `bare` binary.
///
/// # Errors
/// A process or a connection could not be created.
pub fn live(program: &Path, members: u32) -> Result<Life> {
    let run = std::process::id();
    let listener = FloorListener::named(&place(run, None))?;
    let began = Instant::now();
    let mut forkers: Vec<Child> = Vec::new();
    for first in (0..members).step_by(FORKED as usize) {
        let numbers = [run, first, FORKED.min(members - first), members];
        let forker = Command::new(program)
            .arg("fork")
            .args(numbers.map(|number| number.to_string()))
            .spawn();
        forkers.push(forker.with_context(|| format!("start {}", program.display()))?);
    }
    let mut root = listener.accept().context("accept the root")?;
    root.read_exact(&mut [0])
        .context("hear that all are there")?;
    let start = began.elapsed();
    let began = Instant::now();
    for _ in 0..2 {
        root.write_all(&[7; BYTES])?;
        root.read_exact(&mut [0; BYTES])?;
    }
    let answers = began.elapsed();
    let began = Instant::now();
    drop(root);
    for forker in &mut forkers {
        let status = forker.wait().context("wait for the members")?;
        ensure!(status.success(), "a bare tree's processes: {status}");
    }
    let end = began.elapsed();
    Ok(Life {
        start,
        answers,
        end,
    })
}

/// The name of a member's socket; without a position, that of the process above the root.
fn place(run: u32, position: Option<u32>) -> String {
    position.map_or_else(|| run.to_string(), |position| format!("{run}-{position}"))
}

/// Forks `count` members from `first` on and waits for their end: the work of the started `bare` process.
///
/// # Errors
/// A process could not be created, or failed.
pub fn fork_members(run: u32, first: u32, count: u32, members: u32) -> Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).context("end with the bench")?;
    let mut forked = Vec::new();
    for position in first..first + count {
        match fork_off()? {
            Some(child) => forked.push(child),
            None => return serve(run, position, members),
        }
    }
    for child in forked {
        waitpid(child, None).context("wait for a member")?;
    }
    Ok(())
}

/// The life of one member.
fn serve(run: u32, position: u32, members: u32) -> Result<()> {
    nix::unistd::setsid().context("a session of its own")?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).context("end with the bench")?;
    let below = position.saturating_mul(FANOUT).saturating_add(1);
    let count = members.saturating_sub(below).min(FANOUT);
    let own = place(run, Some(position));
    let listener = (count > 0)
        .then(|| FloorListener::named(&own))
        .transpose()?;
    let parent = position.checked_sub(1).map(|before| before / FANOUT);
    let mut above = reach(&place(run, parent))?;
    let mut children = Vec::new();
    if let Some(listener) = &listener {
        for _ in 0..count {
            children.push(listener.accept().context("accept a child")?);
        }
    }
    for child in &mut children {
        child.read_exact(&mut [0]).context("hear of a child")?;
    }
    above.write_all(&[1])?;
    pass_on(position, &mut above, &mut children, BYTES, BYTES)
}

/// Connects to the parent, which may not have been forked yet.
fn reach(place: &str) -> Result<FloorStream> {
    let until = Instant::now() + PARENT_WAIT;
    loop {
        match FloorStream::connect(Sockets::Unix, place) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > until => bail!("the parent: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
