//! Messages between a looker and its server, each preceded by its length.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::FoldRules;
use sdm_debug::probe::TaskProbe;
use sdm_debug::reply::TaskStacks;

use crate::snapshot::Refusal;
use crate::stack::{ProcessStacks, StoppedThread};

/// Maximum length of a message, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// Size of the length prefix, in bytes.
const LENGTH_BYTES: usize = 4;

/// A request to the looker.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LookRequest {
    /// The number of the request.
    pub(super) number: u64,
    /// The processes to inspect.
    pub(super) pids: Vec<i32>,
    pub(super) question: Question,
}

/// The kind of result that is wanted of the processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// The stacks, once.
    Stacks,
    /// The folded stacks with the interpreter's frames replaced by the functions that it runs.
    Woven(FoldRules),
    /// The stacks at once, and again after each period.
    Samples {
        /// Duration of the sampling.
        span: Duration,
        /// Time from one sample to the next.
        period: Duration,
        /// Rules to fold the stacks of an interpreter, as by [`Question::Woven`]. `None` for the stacks as they are.
        woven: Option<FoldRules>,
    },
    /// A probe of each process; the rules name the frames of runtimes.
    Probe(ProbeSpec, FoldRules),
    /// One thread of each process, with its variables and registers: the one among these.
    Thread(Vec<i32>),
}

/// The looker's answer about one process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LookAnswer {
    /// The number of the request that this answers.
    pub(super) number: u64,
    /// Pid of the inspected process.
    pub(super) pid: i32,
    /// The result, or the reason why there is none.
    pub(super) seen: Result<View, Refusal>,
    /// True for the last answer about this process.
    pub(super) is_last: bool,
    /// Processor time that the looker has used so far.
    pub(super) processor: Duration,
}

/// The result of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum View {
    /// The stacks.
    Stacks(ProcessStacks),
    /// The folded stacks with an interpreter's functions: see [`Question::Woven`].
    Woven {
        /// The stacks.
        stacks: TaskStacks,
        /// Time that the process was stopped for them.
        stood: Duration,
    },
    /// The stacks, changes and waits of one process for a diagnosis: see [`Question::Probe`].
    Probe(LookedProbe),
    /// A thread of the process: see [`Question::Thread`].
    Thread(Box<StoppedThread>),
}

/// The facts of a probe without a debugger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedProbe {
    /// The probe itself.
    pub probe: Box<TaskProbe>,
    /// The process's rank in `MPI_COMM_WORLD` and the number of ranks, if they are not those that the launcher
    /// assigned; otherwise `None`.
    pub stray_world: Option<(u32, u32)>,
}

/// Encodes a message, with its length in front.
pub(super) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LENGTH_BYTES];
    bytes = postcard::to_extend(message, bytes).map_err(io::Error::other)?;
    let length = bytes.len() - LENGTH_BYTES;
    if length > BYTES_MAX {
        return Err(io::Error::other(format!(
            "a message to or from the sampling process has {length} bytes: the maximum is {BYTES_MAX}"
        )));
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Received bytes, from which complete messages are taken.
#[derive(Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` until it is complete.
    ///
    /// # Errors
    /// [`io::Error`] if the message is too long, or invalid.
    pub(super) fn take<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(io::Error::other)?;
        if length > BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        let message = postcard::from_bytes(message).map_err(io::Error::other)?;
        self.bytes.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_decoded_from_pieces() {
        let ask = |number| LookRequest {
            number,
            pids: vec![1, -1],
            question: Question::Samples {
                span: Duration::ZERO,
                period: Duration::from_millis(100),
                woven: None,
            },
        };
        let bytes = [frame(&ask(1)).unwrap(), frame(&ask(2)).unwrap()].concat();
        let mut frames = Frames::default();
        let mut taken = Vec::new();
        for byte in &bytes {
            frames.push(&[*byte]);
            taken.extend(frames.take::<LookRequest>().unwrap());
        }
        assert_eq!(taken, [ask(1), ask(2)]);
        frames.push(&[255; 4]);
        assert!(frames.take::<LookRequest>().is_err());
    }
}
