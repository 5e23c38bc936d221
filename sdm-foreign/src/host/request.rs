//! Requests of libpmix to its host. libpmix calls from threads of its own, so nothing is decided there. Each call
//! becomes a [`Request`] whose address goes through a pipe to the main loop.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_foreign::peer_messages::{PeerEvent, PublishedValue};

use crate::ffi::{
    ByteObject, Data, DataArray, Info, Proc, ProcInfo, Published, SUCCESS, TYPE_BYTE_OBJECT, Value,
};
use crate::host::barrier::Purpose;
use crate::host::placement::SpawnSpec;
use crate::host::queues::Queue;
use crate::host::value;

const NOT_SUPPORTED: c_int = -47;

pub(crate) type OpCallback = unsafe extern "C" fn(c_int, *mut c_void);
type Release = unsafe extern "C" fn(*mut c_void);
pub(crate) type ModexCallback =
    unsafe extern "C" fn(c_int, *const c_char, usize, *mut c_void, Option<Release>, *mut c_void);
pub(crate) type LookupCallback = unsafe extern "C" fn(c_int, *const Published, usize, *mut c_void);

pub(crate) type SpawnCallback = unsafe extern "C" fn(c_int, *const c_char, *mut c_void);
pub(crate) type ToolCallback = unsafe extern "C" fn(c_int, *mut Proc, *mut c_void);
pub(crate) type InfoCallback =
    unsafe extern "C" fn(c_int, *mut Info, usize, *mut c_void, Option<Release>, *mut c_void);

/// Completion callback of an operation, called at most once and from any thread; libpmix may have given none.
pub(crate) struct Done<F> {
    pub(crate) callback: Option<F>,
    pub(crate) data: *mut c_void,
}

// SAFETY: the library says that its callbacks may come from any thread; the pointer is only given back to it.
unsafe impl<F> Send for Done<F> {}

impl Done<OpCallback> {
    pub(crate) fn answer(self, status: c_int) {
        if let Some(callback) = self.callback {
            // SAFETY: the library gave it for this, and it is called once.
            unsafe { callback(status, self.data) };
        }
    }
}

impl Done<ModexCallback> {
    pub(crate) fn answer(self, status: c_int, bytes: Vec<u8>) {
        unsafe extern "C" fn release(bytes: *mut c_void) {
            // SAFETY: it is the vector below, which the library gives back once.
            drop(unsafe { Box::from_raw(bytes.cast::<Vec<u8>>()) });
        }
        let Some(callback) = self.callback else {
            return;
        };
        let bytes = Box::new(bytes);
        let (start, count) = (bytes.as_ptr().cast(), bytes.len());
        let kept = Box::into_raw(bytes).cast();
        // SAFETY: the bytes live until the library releases them.
        unsafe { callback(status, start, count, self.data, Some(release), kept) };
    }
}

impl Done<LookupCallback> {
    /// Passes the values to libpmix, which copies them before the callback returns.
    pub(crate) fn answer(self, status: c_int, found: &[Published]) {
        if let Some(callback) = self.callback {
            // SAFETY: the library gave it for this, and it is called once.
            unsafe { callback(status, found.as_ptr(), found.len(), self.data) };
        }
    }
}

impl Done<SpawnCallback> {
    /// Answers with the namespace of the started job. libpmix copies the name before this returns.
    pub(crate) fn answer(self, status: c_int, namespace: &str) {
        if let Some(callback) = self.callback {
            let name = Proc::new(namespace, 0).namespace;
            // SAFETY: the library gave it for this, and it is called once.
            unsafe { callback(status, name.as_ptr(), self.data) };
        }
    }
}

impl Done<ToolCallback> {
    /// Accepts a tool, under this name.
    pub(crate) fn answer(self, name: Proc) {
        if let Some(callback) = self.callback {
            // Another thread reads the name at an unknown later time. It is leaked, as tools are few.
            let name = Box::leak(Box::new(name));
            // SAFETY: the library gave it for this, and it is called once.
            unsafe { callback(SUCCESS, name, self.data) };
        }
    }
}

impl Done<InfoCallback> {
    /// Passes the answer to libpmix. Its memory is kept until libpmix releases it.
    pub(crate) fn answer(self, status: c_int, known: Known) {
        unsafe extern "C" fn release(known: *mut c_void) {
            // SAFETY: it is the box below, which the library gives back once.
            drop(unsafe { Box::from_raw(known.cast::<Known>()) });
        }
        let Some(callback) = self.callback else {
            return;
        };
        let kept = Box::into_raw(Box::new(known));
        // SAFETY: just made.
        let (start, count) = unsafe { ((*kept).infos.as_mut_ptr(), (*kept).infos.len()) };
        let start = if count == 0 {
            std::ptr::null_mut()
        } else {
            start
        };
        // SAFETY: the infos and what they point to live until the library releases them.
        unsafe { callback(status, start, count, self.data, Some(release), kept.cast()) };
    }
}

/// One key of a tool's query.
pub(crate) struct QueryItem {
    pub(crate) key: CString,
    pub(crate) about: Qualifiers,
}

/// The qualifiers of a query, which narrow it.
#[derive(Clone, Default)]
pub(crate) struct Qualifiers {
    /// Namespace of the job that the query is about; `None` if the tool names none.
    pub(crate) namespace: Option<String>,
    /// Name of the queue; `None` if the tool names none.
    pub(crate) queue: Option<String>,
    /// Ranks of the job; empty if all are meant.
    pub(crate) ranks: Vec<u32>,
    /// The nodes; empty if all are meant.
    pub(crate) nodes: Vec<NodeChoice>,
    /// True if the query is about the server's own node only.
    pub(crate) is_local: bool,
    /// True if the tool requires a qualifier that is not known here.
    pub(crate) needs_unknown: bool,
}

/// A node, as a query names it.
#[derive(Clone)]
pub(crate) enum NodeChoice {
    /// The number of the node among those of the job.
    Number(u32),
    Name(String),
}

/// An answer to a tool, with all memory that it points to.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) infos: Vec<Info>,
    pub(crate) strings: Vec<CString>,
    pub(crate) tables: Vec<Vec<ProcInfo>>,
    #[expect(clippy::vec_box, reason = "infos have their addresses")]
    pub(crate) arrays: Vec<Box<DataArray>>,
    pub(crate) processes: Vec<Vec<Proc>>,
    /// Infos that are elements of an array.
    pub(crate) elements: Vec<Vec<Info>>,
}

impl Known {
    /// Adds bytes in memory that libpmix frees itself, as it does with the data of a group's members.
    pub(crate) fn give_bytes(&mut self, key: &CStr, given: &[u8]) {
        // SAFETY: it gives that many bytes or null; nobody else has them.
        let bytes = unsafe { libc::malloc(given.len().max(1)) };
        if bytes.is_null() {
            return;
        }
        // SAFETY: just allocated, with room for all of them.
        unsafe { std::ptr::copy_nonoverlapping(given.as_ptr(), bytes.cast(), given.len()) };
        let bytes = ByteObject {
            bytes: bytes.cast(),
            size: given.len(),
        };
        self.infos
            .push(Info::new(key, TYPE_BYTE_OBJECT, Data { bytes }));
    }
}

// SAFETY: its pointers point to what it owns.
unsafe impl Send for Known {}

/// The texts of a call of `PMIx_Log`, for each channel.
#[derive(Default)]
pub(crate) struct LogTexts {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    /// True if there is text for a channel that the host does not have.
    pub(crate) is_refused: bool,
}

/// A request of libpmix to its host.
pub(crate) enum Request {
    /// The queues that the user's clusters have are known.
    Queues(Vec<Queue>),
    /// A process aborts its job (`PMIx_Abort`).
    Abort {
        process: Proc,
        status: i32,
        text: String,
        done: Done<OpCallback>,
    },
    /// All processes of this node that belong to `among` have entered a barrier; `bytes` is their data for the other
    /// nodes.
    Fence {
        among: Participants,
        bytes: Vec<u8>,
        done: Done<ModexCallback>,
    },
    /// All processes of this node that belong to `among` have entered a barrier without data.
    Meet {
        among: Participants,
        purpose: Purpose,
        done: Done<OpCallback>,
    },
    /// A process asks for the data that a process of another node has put.
    Modex {
        process: Proc,
        done: Done<ModexCallback>,
    },
    /// The data that a process of this node has put, for the node of rank `to` and its message `number`.
    Put {
        to: u32,
        number: u64,
        status: i32,
        bytes: Vec<u8>,
    },
    Publish {
        process: Proc,
        entries: Vec<(String, PublishedValue)>,
        done: Done<OpCallback>,
    },
    Lookup {
        keys: Vec<String>,
        waits: bool,
        done: Done<LookupCallback>,
    },
    Unpublish {
        process: Proc,
        keys: Vec<String>,
        done: Done<OpCallback>,
    },
    /// A process or a tool requests the start of programs, as one job.
    Spawn {
        by: Proc,
        wish: SpawnSpec,
        done: Done<SpawnCallback>,
    },
    /// A tool requests the output of processes (`PMIx_IOF_pull`).
    Pull,
    /// Standard input from a tool for processes; empty at the end of the input.
    Push {
        among: Participants,
        bytes: Vec<u8>,
        done: Done<OpCallback>,
    },
    /// A tool sends a signal to processes; to all where it names none. `None` as the signal where it asks for
    /// another control.
    Control {
        among: Participants,
        signal: Option<i32>,
        done: Done<InfoCallback>,
    },
    /// A process or a tool of this node reports an event.
    Notify(PeerEvent),
    /// Processes make a group.
    Group(GroupCall),
    /// A process asks for its text to be printed.
    Log {
        process: Proc,
        texts: LogTexts,
        done: Done<OpCallback>,
    },
    /// A tool of this user has connected; `name` is the name it asks for, if any.
    Tool {
        name: Option<Proc>,
        done: Done<ToolCallback>,
    },
    /// A tool or a process queries values.
    Query {
        wanted: Vec<QueryItem>,
        done: Done<InfoCallback>,
    },
    /// A process of the job has connected.
    Come {
        process: Proc,
        done: Done<OpCallback>,
    },
    /// A process of the job finalizes libpmix.
    Finalized {
        process: Proc,
        done: Done<OpCallback>,
    },
}

/// A call of all members on this node that makes a group.
pub(crate) struct GroupCall {
    pub(crate) members: Vec<Proc>,
    pub(crate) among: Participants,
    /// The members' endpoint data for the others.
    pub(crate) endpoints: Vec<u8>,
    /// True if the members request a numeric identifier for the group.
    pub(crate) assigns: bool,
    pub(crate) done: Done<InfoCallback>,
}

/// An event for libpmix to deliver, which lives until it is delivered.
pub(crate) struct Waking {
    pub(crate) code: i32,
    pub(crate) source: Box<Proc>,
    pub(crate) range: u8,
    pub(crate) infos: Vec<Info>,
    /// Values that the infos point to.
    pub(crate) kept: Vec<PublishedValue>,
    /// Bytes that are passed on; `object` points to them.
    pub(crate) bytes: Vec<u8>,
    pub(crate) object: ByteObject,
}

impl Waking {
    /// An event whose source is a process.
    pub(crate) fn new(code: i32, source: Proc, range: u8) -> Self {
        Self {
            code,
            source: Box::new(source),
            range,
            infos: Vec::new(),
            kept: Vec::new(),
            bytes: Vec::new(),
            object: ByteObject {
                bytes: std::ptr::null(),
                size: 0,
            },
        }
    }

    /// An event that another node has reported.
    pub(crate) fn of(told: &PeerEvent) -> Self {
        let source = Proc::new(&told.namespace, told.rank);
        let mut waking = Self::new(told.code, source, told.range);
        waking.kept = told.infos.iter().map(|(_, kept)| kept.clone()).collect();
        let infos = told.infos.iter().zip(&waking.kept);
        let info = |(key, kept): (&str, &PublishedValue)| {
            let Value { kind, data } = value::value(kept);
            let key = CString::new(key).unwrap_or_default();
            Info::new(&key, kind, data)
        };
        waking.infos = infos.map(|((key, _), kept)| info((key, kept))).collect();
        waking
    }

    /// Adds an attribute with the event's source as the affected process.
    pub(crate) fn add_source(&mut self, key: &CStr, kind: u16) {
        let process = std::ptr::from_ref(&*self.source);
        self.infos.push(Info::new(key, kind, Data { process }));
    }
}

/// The processes that take part in a barrier or a group, or that a request names.
#[derive(Default)]
pub(crate) struct Participants {
    pub(crate) parts: Vec<JobParticipants>,
}

/// Processes of one job.
pub(crate) struct JobParticipants {
    pub(crate) namespace: String,
    pub(crate) ranks: Vec<u32>,
    /// True if all processes of the job are meant.
    pub(crate) is_all: bool,
}

/// Write end of the pipe for requests; -1 before the pipe exists.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// The end of the pipe from which the main loop takes requests.
pub(crate) struct Requests(OwnedFd);

impl Requests {
    /// Opens the pipe; once in a process.
    pub(crate) fn open() -> io::Result<Self> {
        let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        PIPE.store(writer.into_raw_fd(), Ordering::SeqCst);
        Ok(Self(reader))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// True if a request is there to be taken.
    pub(crate) fn is_ready(&self) -> bool {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// Takes the next request. Called only if the descriptor is readable.
    pub(crate) fn take(&self) -> io::Result<Request> {
        let mut address = [0; size_of::<usize>()];
        let count = nix::unistd::read(&self.0, &mut address)?;
        if count != address.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let request = usize::from_ne_bytes(address) as *mut Request;
        // SAFETY: addresses are written whole, and each is one of `hand_over`'s that nobody else has.
        Ok(*unsafe { Box::from_raw(request) })
    }
}

/// Passes a request to the main loop; returns the status for libpmix.
pub(crate) fn hand_over(request: Request) -> c_int {
    let address = Box::into_raw(Box::new(request)) as usize;
    let bytes = address.to_ne_bytes();
    let pipe = PIPE.load(Ordering::SeqCst);
    // SAFETY: the descriptor is never closed. So few bytes are written whole or not at all.
    let written = unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
    match usize::try_from(written) {
        Ok(count) if count == bytes.len() => 0,
        _ => NOT_SUPPORTED,
    }
}
