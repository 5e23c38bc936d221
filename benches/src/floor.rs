//! The floor: processes that pass the same bytes over a binomial tree by blocking reads and
//! writes, and do nothing else. A debugger's tree of processes over such sockets cannot be much faster.

pub(crate) mod sockets;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

pub use sockets::Sockets;
use sockets::{FloorListener, FloorStream};

/// Time limit for the members to end once their parent is gone.
const END_WAIT: Duration = Duration::from_secs(10);

/// Maximum number of members that start at once.
const STARTING_MAX: usize = 64;

/// A tree of `floor` processes, and this process in front of its root.
pub struct Floor {
    stream: Option<FloorStream>,
    members: Vec<Child>,
    down: Vec<u8>,
    up: Vec<u8>,
}

impl Floor {
    /// Starts a root and `servers` members below it; `program` is the `floor` binary. Commands are `down_bytes`
    /// long, answers `up_bytes`.
    ///
    /// # Errors
    /// A process or a connection could not be created; no process is left.
    pub fn start(
        program: &Path,
        servers: u32,
        down_bytes: usize,
        up_bytes: usize,
        sockets: Sockets,
    ) -> Result<Self> {
        let listener = FloorListener::bind(sockets)?;
        let total = servers + 1;
        let mut floor = Self {
            stream: None,
            members: Vec::new(),
            down: vec![7; down_bytes],
            up: vec![0; up_bytes],
        };
        let mut places = Vec::new();
        for position in 0..total {
            let child = Command::new(program)
                .args([position.to_string(), total.to_string()])
                .args([down_bytes.to_string(), up_bytes.to_string()])
                .arg(sockets.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .with_context(|| format!("start {}", program.display()))?;
            floor.members.push(child);
            // A few members start at the same time; each has two descriptors here until it has reported its address.
            if floor.members.len() - places.len() == STARTING_MAX {
                floor.hear(&mut places)?;
            }
        }
        floor.hear(&mut places)?;
        floor.introduce(&places, &listener.place()?)?;
        floor.stream = Some(listener.accept().context("accept the root")?);
        Ok(floor)
    }

    /// Waits until all that have been started say where they listen.
    fn hear(&mut self, places: &mut Vec<String>) -> Result<()> {
        for child in &mut self.members[places.len()..] {
            let stdout = child.stdout.take().context("it was piped")?;
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line)?;
            places.push(line.trim().to_owned());
        }
        Ok(())
    }

    /// Sends every member the address of its parent.
    fn introduce(&mut self, places: &[String], own: &str) -> Result<()> {
        for (position, child) in (0..).zip(&mut self.members) {
            let place = parent(position).map_or(own, |parent| &places[parent as usize]);
            let mut stdin = child.stdin.take().context("it was piped")?;
            writeln!(stdin, "{place}")?;
        }
        Ok(())
    }

    /// Duration of `count` commands, of which `flight` are outstanding at a time.
    ///
    /// # Errors
    /// The tree is gone.
    pub fn flights(&mut self, count: usize, flight: usize) -> Result<Duration> {
        let began = Instant::now();
        (0..flight).try_for_each(|_| self.send())?;
        for _ in flight..count {
            self.receive()?;
            self.send()?;
        }
        (0..flight).try_for_each(|_| self.receive())?;
        Ok(began.elapsed())
    }

    /// Sends one command.
    ///
    /// # Errors
    /// The tree is gone.
    pub fn send(&mut self) -> Result<()> {
        let stream = self.stream.as_mut().context("started")?;
        stream.write_all(&self.down).context("send to the floor")
    }

    /// Waits for one answer.
    ///
    /// # Errors
    /// The tree is gone.
    pub fn receive(&mut self) -> Result<()> {
        let stream = self.stream.as_mut().context("started")?;
        stream
            .read_exact(&mut self.up)
            .context("receive from the floor")
    }

    /// The Unix process ids of the members.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().map(Child::id).collect()
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // The root reads an end, closes its own connections, and so on downwards.
        let connected = self.stream.take().is_some();
        let deadline = Instant::now() + END_WAIT;
        for child in &mut self.members {
            drop((child.stdin.take(), child.stdout.take()));
            while connected && matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            // This fails only where the process has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The life of one member: the body of the `floor` binary.
///
/// # Errors
/// A connection failed before the tree was closed.
pub fn serve(
    position: u32,
    total: u32,
    down_bytes: usize,
    up_bytes: usize,
    sockets: Sockets,
) -> Result<()> {
    // As the members of the real tree: the kernel shares its time by sessions.
    nix::unistd::setsid().context("a session of its own")?;
    let listener = FloorListener::bind(sockets)?;
    println!("{}", listener.place()?);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let mut above = FloorStream::connect(sockets, line.trim())?;
    if position > 0 {
        above.write_all(&position.to_le_bytes())?;
    }
    let mut below = accept_children(&listener, children(position, total).len())?;
    drop(listener);
    pass_on(position, &mut above, &mut below, down_bytes, up_bytes)
}

/// Passes commands down and answers up until the parent is gone.
pub(crate) fn pass_on(
    position: u32,
    above: &mut FloorStream,
    below: &mut [FloorStream],
    down_bytes: usize,
    up_bytes: usize,
) -> Result<()> {
    let mut command = vec![0; down_bytes];
    let answer = vec![1; up_bytes];
    let mut other = vec![0; up_bytes];
    while read_whole(above, &mut command)? {
        for child in &mut *below {
            child.write_all(&command)?;
        }
        for child in &mut *below {
            child.read_exact(&mut other)?;
            if other != answer {
                bail!("member {position}: an answer that differs");
            }
        }
        above.write_all(&answer)?;
    }
    Ok(())
}

/// The children's connections, that of the largest subtree first.
fn accept_children(listener: &FloorListener, count: usize) -> Result<Vec<FloorStream>> {
    let mut children = Vec::new();
    for _ in 0..count {
        let mut stream = listener.accept().context("accept a child")?;
        let mut position = [0; 4];
        stream.read_exact(&mut position)?;
        children.push((u32::from_le_bytes(position), stream));
    }
    children.sort_by_key(|(position, _)| std::cmp::Reverse(*position));
    Ok(children.into_iter().map(|(_, stream)| stream).collect())
}

/// Reads a whole command; false at the end of the stream.
fn read_whole(stream: &mut FloorStream, bytes: &mut [u8]) -> Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => {
                ensure!(filled == 0, "the parent is gone within a command");
                return Ok(false);
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("read from the parent"),
        }
    }
    Ok(true)
}

/// The parent of a position in a binomial tree with contiguous subtrees; none for the root.
fn parent(position: u32) -> Option<u32> {
    (position > 0).then(|| position & (position - 1))
}

/// The children of a position in a binomial tree of `total` members whose subtrees are contiguous.
#[must_use]
pub fn children(position: u32, total: u32) -> Vec<u32> {
    let powers = (0..u32::BITS).map(|k| 1u32 << k);
    powers
        .take_while(|&power| position == 0 || power < position & position.wrapping_neg())
        .map(|power| position.saturating_add(power))
        .take_while(|&child| child < total)
        .collect()
}

/// Number of links between the root of a binomial tree of `total` members and its lowest member.
#[must_use]
pub fn depth(total: u32) -> u32 {
    (0..total).map(u32::count_ones).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_except_root_has_one_parent() {
        for total in [1, 2, 3, 16, 17, 65, 1000, 1025] {
            let mut parents = vec![None; total as usize];
            for position in 0..total {
                for child in children(position, total) {
                    assert_eq!(parents[child as usize].replace(position), None);
                }
            }
            for position in 0..total {
                assert_eq!(parents[position as usize], parent(position), "{position}");
            }
        }
    }
}
