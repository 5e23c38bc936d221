//! What a stack waits in, told by the name of the runtime's function that its user called.

use sdm_debug::reply::{StackFrame, TaskStacks};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// All of a communicator: `MPI_Allreduce`.
    Collective,
    /// A message: `MPI_Recv`.
    Message,
    /// Something else of MPI.
    Mpi,
    /// A lock or another thread.
    Lock,
    /// A file.
    File,
    /// Another function of a runtime.
    Other,
    /// Nothing: it is in its own code.
    Running,
}

/// Where a stack waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// For what.
    pub kind: WaitKind,
    /// The runtime's function; the user's own where it waits for nothing.
    pub call: String,
    /// The user's frame.
    pub frame: StackFrame,
}

const COLLECTIVES: &[&str] = &[
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
    "comm_dup",
    "comm_split",
    "comm_create",
    "comm_free",
    "cart_create",
    "win_create",
    "win_fence",
    "win_free",
    "file_open",
    "file_close",
    "file_read_all",
    "file_write_all",
    "file_read_at_all",
    "file_write_at_all",
    "init",
    "init_thread",
    "finalize",
];

const MESSAGES: &[&str] = &[
    "recv",
    "send",
    "ssend",
    "bsend",
    "rsend",
    "sendrecv",
    "sendrecv_replace",
    "probe",
    "mprobe",
    "mrecv",
    "wait",
    "waitall",
    "waitany",
    "waitsome",
    "test",
    "testall",
    "testany",
    "testsome",
    "iprobe",
];

/// They answer at once, wherever the others are: whoever calls them is in its own code.
const LOCAL: &[&str] = &[
    "address",
    "comm_rank",
    "comm_size",
    "error_string",
    "finalized",
    "get_address",
    "get_count",
    "get_processor_name",
    "initialized",
    "type_size",
    "wtick",
    "wtime",
];

const LOCKS: &[&str] = &[
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_barrier_wait",
    "pthread_join",
    "pthread_spin_lock",
    "sem_wait",
    "sem_timedwait",
    "mtx_lock",
    "cnd_wait",
    "thrd_join",
    "std::mutex::lock",
    "std::thread::join",
    "std::condition_variable::wait",
    "omp_set_lock",
    "omp_set_nest_lock",
    "GOMP_critical_start",
    "GOMP_barrier",
    "futex",
];

const FILES: &[&str] = &[
    "close",
    "creat",
    "creat64",
    "fclose",
    "fcntl",
    "fcntl64",
    "fdatasync",
    "fflush",
    "fgetc",
    "fgets",
    "flock",
    "fopen",
    "fopen64",
    "fread",
    "fscanf",
    "fsync",
    "fwrite",
    "getc",
    "getline",
    "lockf",
    "lockf64",
    "open",
    "open64",
    "openat",
    "pread",
    "pread64",
    "pwrite",
    "pwrite64",
    "read",
    "readv",
    "rename",
    "write",
    "writev",
];

impl Wait {
    /// Where the main thread waits; the first thread where there is no main one.
    #[must_use]
    pub fn of(stacks: &TaskStacks) -> Option<Self> {
        let main = stacks.threads.iter().find(|thread| thread.main);
        let thread = main.or_else(|| stacks.threads.first())?;
        Self::of_frames(&thread.frames)
    }

    /// Where these frames wait, outermost first.
    #[must_use]
    pub fn of_frames(frames: &[StackFrame]) -> Option<Self> {
        let last = frames.last()?;
        let user = user_frame(frames)?;
        let call = plain(&last.function);
        let kind = if std::ptr::eq(last, user) && kind(call) == WaitKind::Other {
            WaitKind::Running
        } else {
            kind(call)
        };
        Some(Self {
            kind,
            call: call.to_owned(),
            frame: user.clone(),
        })
    }

    /// True where it is MPI that is waited in.
    #[must_use]
    pub fn is_mpi(&self) -> bool {
        matches!(
            self.kind,
            WaitKind::Collective | WaitKind::Message | WaitKind::Mpi
        )
    }

    /// `in MPI_Recv, called from exchange () at halo.c:60`.
    #[must_use]
    pub fn text(&self) -> String {
        let place = place(&self.frame);
        match self.kind {
            WaitKind::Running => format!("in {place}"),
            _ => format!("in {}, called from {place}", self.call),
        }
    }
}

/// A frame as text: `exchange () at halo.c:60`.
pub(super) fn place(frame: &StackFrame) -> String {
    match (frame.file.as_str(), frame.line) {
        ("", _) => format!("{} ()", frame.function),
        (file, 0) => format!("{} () at {file}", frame.function),
        (file, line) => format!("{} () at {file}:{line}", frame.function),
    }
}

/// The innermost frame that is the user's: a runtime's function is shown at the line of its call.
pub(super) fn user_frame(frames: &[StackFrame]) -> Option<&StackFrame> {
    let last = frames.last()?;
    let Some(before) = frames.len().checked_sub(2).map(|index| &frames[index]) else {
        return Some(last);
    };
    let same_line = last.file == before.file && last.line == before.line;
    let from_runtime = !last.module.is_empty() && before.module.is_empty();
    if last.function != before.function && (same_line || from_runtime) {
        return Some(before);
    }
    Some(last)
}

/// True for a function that waits for a lock or for another thread.
#[must_use]
pub fn is_lock(function: &str) -> bool {
    LOCKS.contains(&plain(function))
}

fn kind(call: &str) -> WaitKind {
    let lower = call.to_ascii_lowercase();
    let mpi = ["mpi_", "pmpi_", "mpix_", "pmpix_"];
    if let Some(name) = mpi.iter().find_map(|prefix| lower.strip_prefix(prefix)) {
        let name = name
            .trim_end_matches("_f08")
            .trim_end_matches('_')
            .trim_end_matches("_c");
        return match () {
            () if COLLECTIVES.contains(&name) || name.starts_with("neighbor_") => {
                WaitKind::Collective
            }
            () if MESSAGES.contains(&name) => WaitKind::Message,
            () if LOCAL.contains(&name) => WaitKind::Running,
            () => WaitKind::Mpi,
        };
    }
    match () {
        () if LOCKS.contains(&call) => WaitKind::Lock,
        () if FILES.contains(&call) => WaitKind::File,
        () => WaitKind::Other,
    }
}

/// Without what the C library puts in front of its names.
fn plain(function: &str) -> &str {
    let function = function.split('@').next().unwrap_or(function);
    let inner = ["__GI___libc_", "__GI___", "__GI_", "__libc_", "___", "__"];
    let stripped = inner
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix));
    stripped
        .filter(|name| LOCKS.contains(name) || FILES.contains(name))
        .unwrap_or(function)
}
