//! `sdm-pmix queues`: an MPI library's own debug library, loaded to read one process once.
//!
//! Its standard input is a socket with one request, over which it answers once ([`sdm_foreign::queues`]). Its
//! standard output is the memory of the process, for reading. A fault of the library costs this process and this
//! answer at most: it has limits of memory and time, and no descriptors but these two.

mod answer;
mod callbacks;
mod interface;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use sdm_foreign::queues::{
    COMMUNICATORS_MAX, CommunicatorQueues, LIBRARY_BYTES_MAX, LOOKED_AT_MAX, MESSAGES_MAX,
    ProcessQueues, QUEUES_VERSION, QueueKind, QueuedMessage, QueuesAnswer, QueuesAsk,
};
use sdm_foreign::wire::Frames;
use sdm_text::printable_name;

use answer::{begin, failed, give};
use callbacks::{BASIC, IMAGE, PROCESS, Subject};
use interface::{DebugLibrary, LibraryMessage};

/// Limit of the library's processor time, in seconds.
const PROCESSOR_SECONDS_MAX: u64 = 20;
/// Memory of this process without the library's allocations, in bytes.
const OWN_BYTES: u64 = 256 << 20;
/// Maximum number of bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// The value that a complete request of Open MPI has in place of a pointer to its waiter.
const REQUEST_COMPLETED: u64 = 1;
/// The bit of a communicator between two groups.
const BETWEEN_GROUPS: u32 = 1;

/// Answers the one request of this process, and ends.
pub(crate) fn run() -> Result<()> {
    // This process ends with the caller, which alone needs the answer, and a crash leaves no core file.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .context("cannot set this process to end with its parent")?;
    for (resource, most) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_CPU, PROCESSOR_SECONDS_MAX),
        (Resource::RLIMIT_AS, OWN_BYTES + LIBRARY_BYTES_MAX as u64),
    ] {
        setrlimit(resource, most, most).context("cannot set resource limits")?;
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    let memory = std::io::stdout().as_fd().try_clone_to_owned()?;
    let socket = begin(UnixStream::from(socket));
    let answer = match answer(socket, File::from(memory)) {
        Ok(queues) => QueuesAnswer::Known(queues),
        Err(error) => failed(&format!("{error:#}")),
    };
    give(socket, &answer)
}

fn answer(socket: &UnixStream, memory: File) -> Result<ProcessQueues> {
    let ask = take(socket)?;
    if ask.version != QUEUES_VERSION {
        bail!("sdm-server and sdm-pmix are of different versions: install one version of SDM");
    }
    let library = load(&PathBuf::from(std::ffi::OsString::from_vec(ask.library)))?;
    // The subject lives as long as this process.
    let subject: &'static Subject =
        Box::leak(Box::new(Subject::new(memory, ask.symbols, ask.types)));
    library.begin(subject.opaque(), (&IMAGE, &PROCESS))?;
    read(&library, subject)
}

fn take(mut socket: &UnixStream) -> Result<QueuesAsk> {
    let mut frames = Frames::default();
    let mut bytes = [0; READ_BYTES];
    loop {
        if let Some(ask) = frames.take()? {
            return Ok(ask);
        }
        match socket.read(&mut bytes)? {
            0 => bail!("sdm-server closed the connection before its request was complete"),
            count => frames.push(&bytes[..count]),
        }
    }
}

/// Loads the library, which only root and this user may be able to write.
fn load(path: &Path) -> Result<DebugLibrary> {
    let file = sdm_system::files::open_own(path);
    let file = file.with_context(|| {
        format!(
            "cannot load the MPI library's debug library {}",
            printable_name(path)
        )
    })?;
    // The file that was checked is loaded, even if the path names another file by now.
    let held = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    DebugLibrary::load(&held, &BASIC).with_context(|| {
        format!(
            "cannot load the MPI library's debug library {}",
            printable_name(path)
        )
    })
}

fn read(library: &DebugLibrary, subject: &'static Subject) -> Result<ProcessQueues> {
    let mut found = ProcessQueues {
        knows_unexpected: true,
        ..ProcessQueues::default()
    };
    let (mut looked_at, mut named) = (0, 0);
    let mut communicators = 0;
    let mut later = Vec::new();
    library.each_communicator(subject.opaque(), |name| {
        communicators += 1;
        let mut messages = Vec::new();
        for (number, kind) in [
            (0, QueueKind::Send),
            (1, QueueKind::Receive),
            (2, QueueKind::Unexpected),
        ] {
            if !library.begin_queue(subject.opaque(), number)? {
                found.knows_unexpected &= kind != QueueKind::Unexpected;
                continue;
            }
            while let Some(told) = library.next_message(subject.opaque())? {
                looked_at += 1;
                if looked_at > LOOKED_AT_MAX {
                    bail!(
                        "the MPI library's debug library lists more than {LOOKED_AT_MAX} messages"
                    );
                }
                let Some(message) = message(subject, kind, &told)? else {
                    continue;
                };
                match named < MESSAGES_MAX {
                    true => messages.push(message),
                    false => found.more += 1,
                }
                named += 1;
            }
        }
        if !messages.is_empty() {
            later.push(CommunicatorQueues { name, messages });
        }
        Ok(communicators < COMMUNICATORS_MAX)
    })?;
    found.communicators = later;
    Ok(found)
}

/// A message that the debug library lists; `None` if it has completed.
fn message(
    subject: &'static Subject,
    kind: QueueKind,
    told: &LibraryMessage,
) -> Result<Option<QueuedMessage>> {
    let mut is_remote = false;
    let mut is_complete = told.is_complete;
    if let Some(request) = told.request {
        // The library of Open MPI 4 takes the first byte of a pointer for the answer: a request that a thread waits for
        // would be complete.
        let state = subject.read_field(request, ("ompi_request_t", "req_complete"));
        let state = state
            .context("the MPI library's debug library returned a request that cannot be read")?;
        is_complete = u64::from_ne_bytes(state) == REQUEST_COMPLETED;
        // The library reports a rank of the remote group as one of the own group.
        let of = subject.read_field(request, ("mca_pml_base_request_t", "req_comm"));
        let of =
            of.context("the MPI library's debug library returned a request that cannot be read")?;
        let flags = subject.read_field(u64::from_ne_bytes(of), ("ompi_communicator_t", "c_flags"));
        let flags = flags.context(
            "the MPI library's debug library returned a communicator that cannot be read",
        )?;
        is_remote = u32::from_ne_bytes(flags) & BETWEEN_GROUPS != 0;
    }
    if is_complete {
        return Ok(None);
    }
    Ok(Some(QueuedMessage {
        kind,
        is_matched: told.is_matched,
        peer: told.peer,
        world_peer: told.world_peer.filter(|_| !is_remote),
        is_remote,
        tag: told.tag,
        length_bytes: told.length_bytes,
        buffer: told.buffer,
    }))
}
