//! Messages between SDM's PMIx server and the servers of a session, and the frames that they travel in.
//!
//! A frame is its length (4 bytes, little-endian, at most [`FRAME_BYTES_MAX`]) and a message in postcard's bytes. Both
//! sides begin with a message that has the [`VERSION`]; only [`FromHost::Failed`] has none.

use std::path::PathBuf;

use sdm_idset::IdSet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::table::HostTable;

/// The version of these messages: both sides must have the same.
pub const VERSION: u16 = 8;
/// Maximum size of a frame, in bytes, without the length in front of it.
pub const FRAME_BYTES_MAX: usize = 4 << 20;
/// Maximum number of nodes of a job.
pub const NODES_MAX: usize = 1 << 16;
/// Maximum number of bytes of a peer message: one from the PMIx server of one node to that of another.
pub const LETTER_BYTES_MAX: usize = 60 << 10;
/// Maximum length of one part of a barrier's data, in bytes.
pub const PART_BYTES_MAX: usize = 1 << 20;
/// The longest name of a node or a job, in bytes: PMIx has room for 255.
pub const NAME_BYTES_MAX: usize = 200;
/// Beginning of the name of a PMIx server's folder, below the temporary one.
pub const FOLDER_PREFIX: &str = "sdm-pmix-";
/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

/// A node of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostNode {
    /// Name of the node.
    pub name: String,
    /// The ranks that run on the node.
    pub ranks: IdSet,
}

/// Description of a job for a PMIx server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostJob {
    /// Namespace of the job. Processes that are not to connect cannot guess it.
    pub namespace: String,
    /// All nodes of the job.
    pub nodes: Vec<HostNode>,
    /// Index in `nodes` of the node that the PMIx server runs on.
    pub own: u32,
    /// True if tools are to find this server as the system server of its node (`pmix.sys.HOST`), unless the node has
    /// one already.
    pub is_system: bool,
}

/// A message of a session's server to its PMIx server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToHost {
    /// The first message: the server's identity and the job. If several servers send it, all describe the same job.
    Hello {
        /// The version of the messages: [`VERSION`].
        version: u16,
        /// The job to serve.
        job: HostJob,
        /// Ranks of this node that the server owns.
        ranks: IdSet,
        /// Task numbers for processes that this server starts later.
        spare: IdSet,
    },
    /// A part of the data of all nodes for a barrier; in order.
    FenceData {
        /// The barrier's number, as received.
        number: u64,
        /// The bytes of the part.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A barrier is over.
    Fenced {
        /// The barrier's number.
        number: u64,
        /// True if all nodes have entered the barrier.
        is_met: bool,
    },
    /// A peer message from another node, or one of this node that could not be delivered.
    Letter(PeerMessage),
    /// The server's processes, in answer to [`FromHost::WantProcesses`].
    Processes(HostTable),
    /// Processes have ended.
    Ended {
        /// Tasks of the processes.
        tasks: IdSet,
        /// Exit code of the processes, or 128 plus the number of the signal that ended them.
        status: i32,
        /// True if a process that has not finalized libpmix ends its job.
        ends_job: bool,
    },
    /// Output of a process; sent after [`FromHost::WantOutput`].
    Output {
        /// Task of the process.
        task: u32,
        /// True for standard error.
        is_error: bool,
        /// The output.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The result of [`FromHost::Spawn`].
    Spawned {
        /// Number of the request, as received.
        number: u64,
        /// True if all programs run.
        is_started: bool,
    },
}

/// A program that a process asks to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostProgram {
    /// The program as the requesting process gave it: an absolute or relative path, or a name.
    pub program: Vec<u8>,
    /// Arguments of the program, without the program itself.
    pub arguments: Vec<Vec<u8>>,
    /// Additional environment variables: `NAME=VALUE`.
    pub environment: Vec<Vec<u8>>,
    /// Working directory of the program; `None` if the request names none.
    pub directory: Option<Vec<u8>>,
    /// Number of processes that run it.
    pub count: u32,
}

/// A peer message: from one node's PMIx server to that of another. The servers of the session do not read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerMessage {
    /// A rank of the receiving node.
    pub to: u32,
    /// A rank of the sending node.
    pub from: u32,
    /// Number of the message at its sender.
    pub number: u64,
    /// False for a message that returns to its sender because it could not be delivered.
    pub is_brought: bool,
    /// Contents, at most [`LETTER_BYTES_MAX`]; empty if the message returns.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// A message of a PMIx server to the servers of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromHost {
    /// The first message where the PMIx server runs.
    Ready {
        /// The version of the messages: [`VERSION`].
        version: u16,
        /// Name and version of the loaded library.
        library: String,
        /// Environment variables for every process of the job; each process gets `PMIX_RANK` with its rank as well.
        environment: Vec<(String, String)>,
    },
    /// The first message where the PMIx server cannot run.
    Failed {
        /// The reason, on one line.
        text: String,
    },
    /// A notice for the user.
    Notice {
        /// The notice, on one line.
        text: String,
    },
    /// A process aborts its job (`MPI_Abort`), or has ended without `MPI_Init` or `MPI_Finalize` while other ranks run.
    Aborted {
        /// Task number of the process.
        rank: u32,
        /// Exit status that the process gave.
        status: i32,
        /// The message that the process gave, on one line; may be empty.
        text: String,
    },
    /// Text that a process or a tool logs (`PMIx_Log`).
    Log {
        /// Task number of the process; `None` for a tool.
        rank: Option<u32>,
        /// True for standard error.
        is_error: bool,
        /// The text.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// A part of this node's data for a barrier, to one of its servers; in order, before the barrier itself.
    FenceData {
        /// The barrier's number.
        number: u64,
        /// The bytes of the part.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// All of this node's ranks are at a barrier of several nodes.
    Fence {
        /// The barrier's number, for the answer.
        number: u64,
        /// Task numbers of the processes that take part, on all nodes.
        ranks: IdSet,
        /// Number of earlier barriers of these processes for the same purpose; the two highest bits are the purpose.
        count: u32,
        /// True for the one server of the node that had the data and is to answer.
        is_speaker: bool,
    },
    /// A peer message for another node.
    Letter(PeerMessage),
    /// Asks each server for its processes, on behalf of a tool.
    WantProcesses,
    /// Asks for the output of processes from now on.
    WantOutput,
    /// A signal for processes: each server sends it to its own.
    Signal {
        /// Tasks of the processes.
        tasks: IdSet,
        /// The signal's number.
        signal: i32,
    },
    /// Standard input for processes.
    Input {
        /// Tasks of the processes.
        tasks: IdSet,
        /// The input; empty at the end of the input.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Requests the start of programs; sent to the server that owns the task numbers for them.
    Spawn {
        /// Number of the request, which the answer repeats.
        number: u64,
        /// Task that requested the start; `None` for a tool.
        by: Option<u32>,
        /// Task numbers of the new processes, consecutive.
        tasks: IdSet,
        /// Ranks of the new processes in their job, in the order of the task numbers; one for each.
        ranks: IdSet,
        /// Number of the job's processes on all nodes.
        size: u32,
        /// The programs of the processes, in the order of the task numbers.
        programs: Vec<HostProgram>,
        /// Environment variables for all new processes; each also gets `PMIX_RANK` with its rank.
        environment: Vec<(String, String)>,
    },
}

/// Error in received bytes: no valid frame or message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A frame longer than [`FRAME_BYTES_MAX`].
    #[error("a frame of {0} bytes exceeds the maximum of {FRAME_BYTES_MAX}")]
    TooLong(usize),
    /// A frame that does not decode to a message.
    #[error("a frame of {0} bytes is not a message")]
    NoMessage(usize),
    /// An invalid job description, with the part that is invalid.
    #[error("sdm-server described a job with a fault in its {0}")]
    NoJob(&'static str),
}

impl HostJob {
    /// The folder of this node's PMIx server, below the folder for temporary files. The process that has started the
    /// server removes the folder if the server could not.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        sdm_system::files::temporary_folder()
            .join(format!("{FOLDER_PREFIX}{}-{}", self.namespace, self.own))
    }

    /// Checks the parts of the description in which the sender can be wrong.
    ///
    /// # Errors
    /// [`WireError::NoJob`]: names that PMIx cannot carry, more than [`NODES_MAX`] nodes, an `own` outside the nodes,
    /// or ranks that are not each on exactly one node and consecutive from 0.
    pub fn check(&self) -> Result<(), WireError> {
        let plain = |name: &str| {
            let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
            fits && name
                .bytes()
                .all(|it| it.is_ascii_graphic() && !b",;:".contains(&it))
        };
        if !plain(&self.namespace) {
            return Err(WireError::NoJob("name"));
        }
        if self.nodes.len() > NODES_MAX || self.own as usize >= self.nodes.len() {
            return Err(WireError::NoJob("nodes"));
        }
        if !self.nodes.iter().all(|node| plain(&node.name)) {
            return Err(WireError::NoJob("node names"));
        }
        let all = self.ranks();
        let sum: u64 = self.nodes.iter().map(|node| node.ranks.len()).sum();
        let last = all.last().map_or(0, |last| u64::from(last.0) + 1);
        if all.is_empty() || sum != all.len() || last != all.len() {
            return Err(WireError::NoJob("ranks"));
        }
        Ok(())
    }

    /// The ranks of all nodes.
    #[must_use]
    pub fn ranks(&self) -> IdSet {
        IdSet::union_all(self.nodes.iter().map(|node| &node.ranks))
    }

    /// The node that the PMIx server runs on.
    ///
    /// # Panics
    /// If [`HostJob::check`] fails.
    #[must_use]
    pub fn own_node(&self) -> &HostNode {
        &self.nodes[self.own as usize]
    }
}

/// The bytes of a frame around a message.
///
/// # Errors
/// [`WireError::TooLong`]: the message does not fit into a frame.
pub fn frame<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = postcard::to_extend(message, vec![0; LENGTH_BYTES])
        .expect("plain data serialises into memory");
    let length = bytes.len() - LENGTH_BYTES;
    match u32::try_from(length) {
        Ok(known) if length <= FRAME_BYTES_MAX => {
            bytes[..LENGTH_BYTES].copy_from_slice(&known.to_le_bytes());
            Ok(bytes)
        }
        _ => Err(WireError::TooLong(length)),
    }
}

/// Finds the messages in bytes that come in any pieces.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Number of bytes of the buffer that have been read.
    read: usize,
}

impl Frames {
    /// Appends received bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`WireError`]: the rest of the stream cannot be read.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let left = &self.bytes[self.read..];
        let Some((length, rest)) = left.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(WireError::TooLong(length));
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        let read = || postcard::take_from_bytes::<T>(message);
        let Ok((message, [])) = sdm_idset::bounded(sdm_idset::SETS_BYTES_MAX, read) else {
            return Err(WireError::NoMessage(length));
        };
        self.read += LENGTH_BYTES + length;
        Ok(Some(message))
    }
}

/// Decodes arbitrary bytes as messages of both sides. Checks that nothing panics, that a decoded message survives
/// encoding and decoding, and that a job that passes the check can be queried.
pub fn fuzz_frames(bytes: &[u8]) {
    let messages = fuzz_as::<ToHost>(bytes);
    for message in messages {
        if let ToHost::Hello { job, .. } = message
            && job.check().is_ok()
        {
            assert!(job.own_node().ranks.is_subset(&job.ranks()));
        }
    }
    fuzz_as::<FromHost>(bytes);
}

fn fuzz_as<T>(bytes: &[u8]) -> Vec<T>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let (mut whole, mut single) = (Frames::default(), Frames::default());
    whole.push(bytes);
    let mut found = Vec::new();
    while let Ok(Some(message)) = whole.take::<T>() {
        found.push(message);
    }
    let mut again = Vec::new();
    for byte in bytes {
        single.push(&[*byte]);
        while let Ok(Some(message)) = single.take::<T>() {
            again.push(message);
        }
    }
    assert_eq!(found, again, "whole and byte by byte");
    let mut back = Frames::default();
    for message in &found {
        if let Ok(bytes) = frame(message) {
            back.push(&bytes);
            assert_eq!(back.take::<T>().as_ref(), Ok(&Some(again.remove(0))));
        }
    }
    found
}

/// Decodes arbitrary bytes as messages of type `T`. Checks that each decoded message survives encoding and decoding.
pub(crate) fn fuzz<T>(bytes: &[u8])
where
    T: Serialize + DeserializeOwned,
{
    let mut frames = Frames::default();
    frames.push(bytes);
    while let Ok(Some(message)) = frames.take::<T>() {
        if let Ok(bytes) = frame(&message) {
            let mut back = Frames::default();
            back.push(&bytes);
            assert!(matches!(back.take::<T>(), Ok(Some(_))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> HostJob {
        let node = |name: &str, ranks: &str| HostNode {
            name: name.to_owned(),
            ranks: ranks.parse().expect("ranks"),
        };
        HostJob {
            namespace: "sdm-1".to_owned(),
            nodes: vec![node("a", "0-1"), node("b", "2")],
            own: 1,
            is_system: false,
        }
    }

    #[test]
    fn message_that_arrives_in_two_pieces_is_decoded() {
        let hello = ToHost::Hello {
            version: VERSION,
            job: job(),
            ranks: "2".parse().expect("ranks"),
            spare: "3-9".parse().expect("ranks"),
        };
        let bytes = [frame(&hello).unwrap(), frame(&hello).unwrap()].concat();
        fuzz_frames(&bytes);
        let mut frames = Frames::default();
        frames.push(&bytes[..7]);
        assert_eq!(frames.take::<ToHost>(), Ok(None));
        frames.push(&bytes[7..]);
        assert_eq!(frames.take(), Ok(Some(hello.clone())));
        assert_eq!(frames.take(), Ok(Some(hello)));
        assert_eq!(frames.take::<ToHost>(), Ok(None));
    }

    #[test]
    fn too_long_or_undecodable_message_is_refused() {
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        let too_long = WireError::TooLong(u32::MAX as usize);
        assert_eq!(frames.take::<ToHost>(), Err(too_long));
        let mut frames = Frames::default();
        frames.push(&[1, 0, 0, 0, 99]);
        assert_eq!(frames.take::<ToHost>(), Err(WireError::NoMessage(1)));
        let long = FromHost::Failed {
            text: "x".repeat(FRAME_BYTES_MAX),
        };
        assert!(matches!(frame(&long), Err(WireError::TooLong(_))));
    }

    #[test]
    fn job_with_invalid_node_name_or_ranks_is_refused() {
        let no = |change: &dyn Fn(&mut HostJob)| {
            let mut job = job();
            change(&mut job);
            job.check().unwrap_err()
        };
        assert_eq!(job().check(), Ok(()));
        assert_eq!(no(&|it| it.own = 2), WireError::NoJob("nodes"));
        assert_eq!(no(&|it| it.namespace.clear()), WireError::NoJob("name"));
        let name = WireError::NoJob("node names");
        assert_eq!(no(&|it| it.nodes[0].name = "a,b".to_owned()), name);
        let ranks = WireError::NoJob("ranks");
        assert_eq!(no(&|it| it.nodes[1].ranks = "1-2".parse().unwrap()), ranks);
        assert_eq!(no(&|it| it.nodes[1].ranks = "3".parse().unwrap()), ranks);
    }
}
