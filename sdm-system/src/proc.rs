//! Facts about processes from `/proc`: the only reader of those files.
//!
//! Names of processes and files need not be text, and may contain blanks, brackets and line breaks. Bytes that are
//! not text are replaced (U+FFFD) in names for display, and kept in paths and variables. Each file is read up to a
//! limit. Each answer holds for one moment: by the next one the process may have ended, and its pid may belong to
//! another.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

mod descriptors;
mod mappings;
#[cfg(test)]
mod tests;

pub use mappings::{Mapping, mappings};

/// Maximum size that is read of a file whose size no process controls, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size that is read of a command line, in bytes.
const COMMAND_BYTES_MAX: u64 = 1 << 20;
/// Maximum size that is read of an environment, in bytes.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;
/// Maximum size that is read of a list of mappings, in bytes.
const MAPS_BYTES_MAX: u64 = 64 << 20;
/// Size of one read, in bytes.
const READ_BYTES: usize = 8 << 10;
/// The type of the entry that ends the auxiliary vector.
const AT_NULL: usize = 0;

/// A directory in `/proc` of a process, or of one of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    folder: PathBuf,
}

/// The process with this pid, whether or not it exists.
#[must_use]
pub fn of(pid: i32) -> Process {
    at(format!("/proc/{pid}"))
}

/// The calling process.
#[must_use]
pub fn own() -> Process {
    at("/proc/self")
}

/// The calling thread.
#[must_use]
pub fn own_thread() -> Process {
    at("/proc/thread-self")
}

/// A process with this directory. A directory given by a descriptor keeps referring to the same process after the pid
/// is reused. Tests pass a directory of their own.
#[must_use]
pub fn at(folder: impl Into<PathBuf>) -> Process {
    let folder = folder.into();
    Process { folder }
}

/// The pids of all processes of this machine, in no order.
///
/// # Errors
/// [`io::Error`] if there is no `/proc`.
pub fn pids() -> io::Result<impl Iterator<Item = i32>> {
    pids_in(Path::new("/proc"))
}

/// The numeric names in a directory like `/proc`, in no order.
///
/// # Errors
/// [`io::Error`] if the directory cannot be read.
pub fn pids_in(folder: &Path) -> io::Result<impl Iterator<Item = i32> + use<>> {
    let entries = fs::read_dir(folder)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// The contents of a file below `/proc` about the whole machine: `loadavg`, `sys/kernel/hostname`.
///
/// # Errors
/// [`io::Error`] if the file does not exist, or may not be read.
pub fn of_machine(name: &str) -> io::Result<String> {
    of_machine_in(Path::new("/proc"), name)
}

/// Like [`of_machine`], in a directory like `/proc` that a test has made.
///
/// # Errors
/// As [`of_machine`].
pub fn of_machine_in(folder: &Path, name: &str) -> io::Result<String> {
    Ok(text(read(&folder.join(name), TEXT_BYTES_MAX)?))
}

impl Process {
    /// The path of a file in the directory that is not text: `mem`, `pagemap`, `exe`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An absolute path of the process, as other processes reach it: a process in a container has other files.
    #[must_use]
    pub fn inside(&self, path: &Path) -> PathBuf {
        let root = self.path("root");
        path.strip_prefix("/")
            .map_or_else(|_| root.join(path), |inner| root.join(inner))
    }

    /// The contents of the process's `stat` file.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or the line is malformed.
    pub fn stat(&self) -> io::Result<Stat> {
        let line = text(read(&self.path("stat"), TEXT_BYTES_MAX)?);
        Stat::parse(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The current state of the process; `None` if the process does not exist.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.stat().ok().map(|stat| stat.state())
    }

    /// The contents of the process's `status` file.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended.
    pub fn status(&self) -> io::Result<Status> {
        Ok(Status(text(read(&self.path("status"), TEXT_BYTES_MAX)?)))
    }

    /// The kernel's name for the process, at most 15 bytes.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended.
    pub fn name(&self) -> io::Result<String> {
        let name = text(read(&self.path("comm"), TEXT_BYTES_MAX)?);
        Ok(name.strip_suffix('\n').unwrap_or(&name).to_owned())
    }

    /// The non-empty words of the process's command line; none for a kernel thread and for a zombie.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or its memory may not be read.
    pub fn words(&self) -> io::Result<Vec<String>> {
        let bytes = self.read_of_memory("cmdline", COMMAND_BYTES_MAX)?;
        let words = bytes.split(|byte| *byte == 0);
        let words = words.filter(|word| !word.is_empty());
        Ok(words.map(|word| text(word.to_vec())).collect())
    }

    /// The environment variables with which the process was started, in order.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or its memory may not be read.
    pub fn environment(&self) -> io::Result<Vec<(OsString, OsString)>> {
        let bytes = self.read_of_memory("environ", ENVIRONMENT_BYTES_MAX)?;
        let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = (&variable[..at], &variable[at + 1..]);
            Some((
                OsString::from_vec(name.to_vec()),
                OsString::from_vec(value.to_vec()),
            ))
        });
        Ok(variables.collect())
    }

    /// The memory mappings of the process by ascending address. Malformed lines are left out.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or its memory may not be read.
    pub fn maps(&self) -> io::Result<Vec<Mapping>> {
        let bytes = self.read_of_memory("maps", MAPS_BYTES_MAX)?;
        Ok(mappings(&bytes))
    }

    /// Path of the process's program, as the kernel names it: followed by ` (deleted)` if the file is gone.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or may not be inspected.
    pub fn program(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path("exe")).or_else(|error| match self.living_thread() {
            Some(thread) => fs::read_link(thread.path("exe")),
            None => Err(error),
        })
    }

    /// The kernel function in which the process waits; empty if there is none, or if the kernel does not say.
    #[must_use]
    pub fn wait_channel(&self) -> String {
        let name = read(&self.path("wchan"), TEXT_BYTES_MAX).map(text);
        let name = name.unwrap_or_default();
        match name.trim() {
            "0" => String::new(),
            name => name.to_owned(),
        }
    }

    /// Time that a thread has run on a processor, in nanoseconds; `None` if the kernel does not count it.
    #[must_use]
    pub fn ran_ns(&self) -> Option<u64> {
        let line = text(read(&self.path("schedstat"), TEXT_BYTES_MAX).ok()?);
        line.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Number of the system call that a thread is in, with its arguments; -1 and zeros if it is in none. `None` if the
    /// thread runs, or if the kernel does not say.
    #[must_use]
    pub fn system_call(&self) -> Option<(i64, [u64; 6])> {
        let line = text(read(&self.path("syscall"), TEXT_BYTES_MAX).ok()?);
        let mut words = line.split_ascii_whitespace();
        let number: i64 = words.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        if number < 0 {
            return Some((-1, arguments));
        }
        for argument in &mut arguments {
            let word = words.next()?.strip_prefix("0x")?;
            *argument = u64::from_str_radix(word, 16).ok()?;
        }
        Some((number, arguments))
    }

    /// An entry of the program's auxiliary vector, by its type as in `getauxval(3)`; `None` if there is none.
    #[must_use]
    pub fn auxiliary_value(&self, wanted: u64) -> Option<u64> {
        let bytes = self.read_of_memory("auxv", TEXT_BYTES_MAX).ok()?;
        let words = bytes.chunks_exact(size_of::<usize>());
        let words: Vec<usize> = words
            .filter_map(|word| word.try_into().ok().map(usize::from_ne_bytes))
            .collect();
        let mut pairs = words.chunks_exact(2);
        let pairs = pairs.by_ref().take_while(|pair| pair[0] != AT_NULL);
        let mut values = pairs.filter(|pair| pair[0] as u64 == wanted);
        values.next().map(|pair| pair[1] as u64)
    }

    /// The ids of the process's threads, in no order.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended.
    pub fn thread_ids(&self) -> io::Result<impl Iterator<Item = i32> + use<>> {
        pids_in(&self.path("task"))
    }

    /// The id of a thread of the process that has not ended; `None` if there is none.
    #[must_use]
    pub fn living_thread_id(&self) -> Option<i32> {
        let lives = |id: &i32| self.thread(*id).state().is_some_and(|it| !it.has_ended());
        self.thread_ids().ok()?.find(lives)
    }

    /// A thread of the process that has not ended; `None` if there is none.
    #[must_use]
    pub fn living_thread(&self) -> Option<Process> {
        self.living_thread_id().map(|id| self.thread(id))
    }

    /// The process; if its main thread has ended, a thread that still lives. The kernel then shows memory and files of
    /// the process only in the directories of living threads.
    #[must_use]
    pub fn living(&self) -> Process {
        let has_ended = self.state().is_some_and(State::has_ended);
        let thread = has_ended.then(|| self.living_thread()).flatten();
        thread.unwrap_or_else(|| self.clone())
    }

    /// Reads a file about the process's memory, such as `maps`. If it is empty or cannot be read, as after the end of
    /// the main thread, the file of a living thread is read.
    fn read_of_memory(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let own = read(&self.path(name), bytes_max);
        if own.as_ref().is_ok_and(|bytes| !bytes.is_empty()) {
            return own;
        }
        match self.living_thread() {
            Some(thread) => read(&thread.path(name), bytes_max),
            None => own,
        }
    }

    /// The thread with this id.
    #[must_use]
    pub fn thread(&self, id: i32) -> Process {
        at(self.path(&format!("task/{id}")))
    }

    /// The pids of the children that the thread with this id has started.
    ///
    /// # Errors
    /// [`io::Error`] if there is no such thread, or the kernel does not list children.
    pub fn children_of_thread(&self, id: i32) -> io::Result<Vec<i32>> {
        let line = text(read(&self.thread(id).path("children"), TEXT_BYTES_MAX)?);
        let pids = line.split_ascii_whitespace();
        Ok(pids.filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Number of open descriptors of the process.
    ///
    /// # Errors
    /// [`io::Error`] if the process has ended, or its descriptors may not be read.
    pub fn descriptor_count(&self) -> io::Result<usize> {
        Ok(fs::read_dir(self.path("fd"))?.count())
    }
}

/// State of a process or thread: the kernel's letter for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(pub char);

impl State {
    /// True if the process has ended, and at most its exit code is left.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self.0, 'Z' | 'X' | 'x')
    }

    /// True if a signal has stopped the process; false if a tracer has.
    #[must_use]
    pub fn is_stopped(self) -> bool {
        self.0 == 'T'
    }

    /// True if a tracer has stopped the process.
    #[must_use]
    pub fn is_held(self) -> bool {
        self.0 == 't'
    }
}

/// The contents of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The kernel's name for the process, at most 15 bytes.
    pub name: String,
    state: State,
    /// The fields after the state.
    fields: Vec<String>,
}

impl Stat {
    /// Parses the line of a `stat` file; `None` if it is malformed.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        // The name is in parentheses and may contain any character.
        let (head, rest) = line.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Self {
            name: name.to_owned(),
            state: State(state),
            fields: fields.map(str::to_owned).collect(),
        })
    }

    /// The state of the process.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// A field by its number in `proc_pid_stat(5)`, from 4 on; `None` if the kernel does not have it.
    #[must_use]
    pub fn field<T: std::str::FromStr>(&self, number: usize) -> Option<T> {
        self.fields.get(number.checked_sub(4)?)?.parse().ok()
    }

    /// The pid of the process that has started this one, or has adopted it; `None` if it is missing in the file.
    #[must_use]
    pub fn parent(&self) -> Option<i32> {
        self.field(4)
    }

    /// The session of the process, given by the pid of the session's leader; `None` if it is missing in the file.
    #[must_use]
    pub fn session(&self) -> Option<i32> {
        self.field(6)
    }

    /// The kernel's flags of the process (`PF_` in the kernel's `sched.h`); `None` if they are missing in the file.
    #[must_use]
    pub fn flags(&self) -> Option<u32> {
        self.field(9)
    }

    /// Processor time of all threads of the process, in clock ticks; `None` if it is missing in the file.
    #[must_use]
    pub fn cpu_ticks(&self) -> Option<u64> {
        self.field::<u64>(14)?.checked_add(self.field(15)?)
    }

    /// Start time of the process, in clock ticks since boot; `None` if it is missing in the file. Together with the pid
    /// it identifies a process uniquely.
    #[must_use]
    pub fn began_ticks(&self) -> Option<u64> {
        self.field(22)
    }
}

/// The contents of `/proc/PID/status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status(String);

impl Status {
    /// Parses the text of a `status` file, which has one field per line.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The value of the field with this name, given without the colon; `None` if there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            Some(rest.strip_prefix(':')?.trim())
        });
        values.next()
    }

    /// The value of a decimal field; `None` if it is missing or malformed.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.field(name)?.parse().ok()
    }

    /// The value of a field in kB, converted to bytes; `None` if it is missing or malformed.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<u64> {
        let kilobytes = self.field(name)?.strip_suffix(" kB")?;
        kilobytes.parse::<u64>().ok()?.checked_mul(1024)
    }

    /// The value of a hexadecimal field; `None` if it is missing or malformed.
    #[must_use]
    pub fn bits(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name)?, 16).ok()
    }

    /// The signals in the bit mask of a field (`SigBlk`, `SigIgn`, `SigPnd`, `ShdPnd`), by number, rising.
    #[must_use]
    pub fn signals(&self, name: &str) -> Vec<i32> {
        let bits = self.bits(name).unwrap_or(0);
        (0..64)
            .filter(|bit| bits >> bit & 1 == 1)
            .map(|bit| bit + 1)
            .collect()
    }

    /// The user ids (`Uid`) or group ids (`Gid`): real, effective, saved, and of the file system; `None` if the field
    /// is missing or malformed.
    #[must_use]
    pub fn ids(&self, name: &str) -> Option<Vec<u32>> {
        let ids = self.field(name)?.split_ascii_whitespace();
        let ids: Option<Vec<u32>> = ids.map(|id| id.parse().ok()).collect();
        ids.filter(|ids| !ids.is_empty())
    }

    /// The pid of the tracer; `None` if there is none.
    #[must_use]
    pub fn tracer(&self) -> Option<i32> {
        self.number("TracerPid").filter(|pid| *pid != 0)
    }
}

fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // With a small buffer the kernel returns few bytes at a time, and generates its list anew for each.
    let mut bytes = Vec::with_capacity(READ_BYTES);
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}
