//! The resource outside its process for which a thread waits, from the kernel's tables: the holder of a file lock,
//! the other end of a pipe or connection, the awaited child. Nothing is changed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::time::TimeVal;
use sdm_debug::probe::{Holder, LOCK_ON, NOBODY_ELSE, ResourceWait, WAITS_BACK};
use sdm_system::proc::{self, Process};
use sdm_system::{copy_descriptor, sock_diag, tcp_peer};
use sdm_text::printable_name;

use crate::kernel;

/// Maximum number of holders that are named.
const HOLDERS_MAX: usize = 16;
/// Maximum number of processes that are searched for the other end of a pipe, a TCP connection or a local socket.
const PROCESSES_MAX: usize = 4096;
/// Maximum length of a path in the kernel, in bytes.
const PATH_BYTES_MAX: usize = 4096;
/// Mask of a descriptor's flags for its access mode.
const ACCESS_MODE: u32 = 3;
/// The first argument of `waitid` for one child.
const P_PID: u64 = 1;

/// The resource that a thread waits for; `None` if it is in no such system call.
pub fn of(pid: i32, thread: i32) -> Option<ResourceWait> {
    let mut wait = wait_of(pid, thread)?;
    if !wait.is_for_itself() && is_waited_back(pid, &wait.holders) {
        wait.what += WAITS_BACK;
    }
    Some(wait)
}

/// True if a process and the holders wait for each other: all holders are descendants of the process, and they can
/// continue only after it does.
fn is_waited_back(pid: i32, holders: &[Holder]) -> bool {
    if holders.is_empty() {
        return false;
    }
    let below = descendants(pid);
    let mut open: Vec<i32> = holders.iter().map(|one| one.pid).collect();
    let mut seen = vec![pid];
    while let Some(one) = open.pop() {
        if seen.contains(&one) {
            continue;
        }
        seen.push(one);
        match awaited_by(one).filter(|_| below.contains(&one)) {
            Some(more) => open.extend(more),
            None => return false,
        }
    }
    true
}

/// The processes that a single-threaded process waits for; none if it waits for another thread of its own, which it
/// does not have. `None` if it may be able to continue.
fn awaited_by(pid: i32) -> Option<Vec<i32>> {
    let threads: Vec<i32> = proc::of(pid).thread_ids().ok()?.collect();
    let [thread] = threads[..] else { return None };
    let call = proc::of(pid).thread(thread).system_call()?;
    if kernel::futex_wait(call).is_some() && kernel::waits_for_own(call) {
        return Some(Vec::new());
    }
    let holders = wait_of(pid, thread)?.holders;
    let awaited = holders.iter().map(|one| one.pid).collect();
    (!holders.is_empty()).then_some(awaited)
}

/// A process and its descendants. Only the first [`HOLDERS_MAX`] of them are searched for children.
fn descendants(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(one) = found.get(at).filter(|_| at < HOLDERS_MAX).copied() {
        found.extend(children(one).iter().map(|child| child.pid));
        at += 1;
    }
    found
}

fn wait_of(pid: i32, thread: i32) -> Option<ResourceWait> {
    let process = proc::of(pid);
    let (number, arguments) = process.thread(thread).system_call()?;
    let call = kernel::name_of(number)?;
    let (what, holders) = match call.as_str() {
        "flock" | "fcntl" => lock(pid, arguments[0])?,
        "read" | "readv" | "recvfrom" | "recvmsg" => stream(pid, arguments[0], PipeEnd::Write)?,
        "write" | "writev" | "sendto" | "sendmsg" => stream(pid, arguments[0], PipeEnd::Read)?,
        "openat" => (unopened(pid, arguments)?, Vec::new()),
        "wait4" => ("a child to end".to_owned(), child(pid, arguments[0])),
        "waitid" if arguments[0] == P_PID => {
            ("a child to end".to_owned(), child(pid, arguments[1]))
        }
        "waitid" => ("a child to end".to_owned(), children(pid)),
        _ => return None,
    };
    Some(ResourceWait {
        call,
        what,
        holders,
    })
}

/// A process with its name and state.
pub fn holder(pid: i32) -> Holder {
    let process = proc::of(pid);
    Holder {
        pid,
        name: process.name().unwrap_or_default(),
        letter: process.state().map_or('?', |state| state.0),
    }
}

/// The file of a descriptor, and the other processes that hold a lock on it. `None` if it cannot be read.
fn lock(pid: i32, descriptor: u64) -> Option<(String, Vec<Holder>)> {
    let process = proc::of(pid).living();
    let path = process.descriptor(descriptor).ok()?;
    // The path through `/proc` leads to that file, even if another file has the original path now.
    let file = fs::metadata(process.path(&format!("fd/{descriptor}"))).ok()?;
    let table = proc::of_machine("locks").ok()?;
    let holders = holders(&table, file.dev(), file.ino());
    let holders = holders.into_iter().filter(|it| *it != pid);
    let what = format!("{LOCK_ON}{}", printable_name(&path));
    Some((what, holders.take(HOLDERS_MAX).map(holder).collect()))
}

/// The processes that hold a lock on a file, from the kernel's table: `1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0 EOF`.
/// In the entry of a process that only waits for a lock an arrow follows the number.
fn holders(table: &str, device: u64, inode: u64) -> Vec<i32> {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let wanted = format!("{major:02x}:{minor:02x}:{inode}");
    let mut found = Vec::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.get(1) == Some(&"->") || words.get(5) != Some(&wanted.as_str()) {
            continue;
        }
        let pid: Option<i32> = words.get(4).and_then(|word| word.parse().ok());
        // A lock of an open file description has no pid, and neither has one from another pid namespace.
        if let Some(pid) = pid.filter(|pid| *pid > 0 && !found.contains(pid)) {
            found.push(pid);
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq)]
enum PipeEnd {
    Read,
    Write,
}

/// The data or room that a process waits for at a descriptor, as text, and the holders of the other end. `None` if the
/// descriptor is no pipe, TCP connection or local socket, or cannot be read.
fn stream(pid: i32, descriptor: u64, wanted: PipeEnd) -> Option<(String, Vec<Holder>)> {
    pipe(pid, descriptor, wanted)
        .or_else(|| connection(pid, descriptor, wanted))
        .or_else(|| local(pid, descriptor, wanted))
}

/// A local socket, such as those of `socketpair`, and the holders of its other end if the wait has no timeout. `None`
/// for other descriptors.
fn local(pid: i32, descriptor: u64, wanted: PipeEnd) -> Option<(String, Vec<Holder>)> {
    let own = proc::of(pid).living().socket(descriptor)?;
    let other = sock_diag::local_peer(own).ok()??;
    let mut holders = Vec::new();
    let mut nobody = "";
    if has_no_end(pid, descriptor, wanted) {
        holders = holders_of(|process, number| process.socket(number) == Some(other))?;
        nobody = nobody_else(pid, &holders);
    }
    let what = match wanted {
        PipeEnd::Write => "data from a local socket",
        PipeEnd::Read => "room for data in a local socket",
    };
    Some((format!("{what}{nobody}"), holders))
}

/// A TCP connection, and the holders of its other end if that is on this host and the wait has no timeout. `None` for
/// other descriptors.
fn connection(pid: i32, descriptor: u64, wanted: PipeEnd) -> Option<(String, Vec<Holder>)> {
    let process = proc::of(pid).living();
    let own = process.socket(descriptor)?;
    let tables = tcp_peer::tables(&process);
    let [ours, theirs] = tables.iter().find_map(|table| tcp_peer::ends(table, own))?;
    let mut tables = tables.iter();
    let other = tables.find_map(|table| tcp_peer::socket_of(table, [theirs, ours]));
    let mut holders = Vec::new();
    // A wait with a timeout does not depend on the peer.
    if let Some(other) = other.filter(|_| has_no_end(pid, descriptor, wanted)) {
        holders = holders_of(|process, number| process.socket(number) == Some(other))?;
    }
    let what = match wanted {
        PipeEnd::Write => format!("data from {theirs}"),
        PipeEnd::Read => format!("room for data to {theirs}"),
    };
    Some((what, holders))
}

/// True if a wait at a socket is known to have no timeout.
fn has_no_end(pid: i32, descriptor: u64, wanted: PipeEnd) -> bool {
    let Ok(number) = i32::try_from(descriptor) else {
        return false;
    };
    let timeout = copy_descriptor(pid, number).and_then(|socket| {
        Ok(match wanted {
            PipeEnd::Write => getsockopt(&socket, sockopt::ReceiveTimeout)?,
            PipeEnd::Read => getsockopt(&socket, sockopt::SendTimeout)?,
        })
    });
    timeout.is_ok_and(|timeout| timeout == TimeVal::new(0, 0))
}

/// The FIFO that a process is opening, if its other end is not open; otherwise `None`.
fn unopened(pid: i32, arguments: [u64; 6]) -> Option<String> {
    use std::os::unix::fs::{FileExt, FileTypeExt};
    let process = proc::of(pid).living();
    let memory = fs::File::open(process.path("mem")).ok()?;
    let mut text = [0; PATH_BYTES_MAX];
    let count = memory.read_at(&mut text, arguments[1]).ok()?;
    let path = text[..count].split(|byte| *byte == 0).next()?;
    let path = Path::new(OsStr::from_bytes(path));
    // The directory descriptor is 32 bits wide. A negative one stands for the working directory.
    let from = i32::try_from(arguments[0] & 0xffff_ffff).map_or_else(
        |_| process.path("cwd"),
        |folder| process.path(&format!("fd/{folder}")),
    );
    let seen = match path.is_absolute() {
        true => process.inside(path),
        false => from.join(path),
    };
    let is_fifo = fs::metadata(seen).is_ok_and(|file| file.file_type().is_fifo());
    is_fifo.then(|| {
        let path = printable_name(path);
        format!("a process to open the other end of {path}")
    })
}

/// A pipe or FIFO, and the holders of its other end, as far as they are visible to this user. `None` for other
/// descriptors.
fn pipe(pid: i32, descriptor: u64, wanted: PipeEnd) -> Option<(String, Vec<Holder>)> {
    use std::os::unix::fs::FileTypeExt;
    let process = proc::of(pid).living();
    let path = process.descriptor(descriptor).ok()?;
    let file = fs::metadata(process.path(&format!("fd/{descriptor}"))).ok()?;
    if !file.file_type().is_fifo() {
        return None;
    }
    let holders = holders_of(|process, number| is_end(process, number, &path, file.ino(), wanted))?;
    let end = match wanted {
        PipeEnd::Write => "data written to",
        PipeEnd::Read => "room for data in",
    };
    let nobody = nobody_else(pid, &holders);
    Some((format!("{end} {}{nobody}", printable_name(&path)), holders))
}

/// The remark that no process has the other end, or only the waiting process itself; empty if others have it.
fn nobody_else(pid: i32, holders: &[Holder]) -> &'static str {
    let children = children(pid);
    match holders {
        [] => ", whose other end no visible process has open",
        [own] if own.pid == pid && children.iter().any(|child| child.letter == 'Z') => {
            ", whose other end no other process has open since a child ended"
        }
        [own] if own.pid == pid => NOBODY_ELSE,
        _ => "",
    }
}

/// The processes that have a descriptor for which `is_it` is true, as far as permissions allow.
fn holders_of(is_it: impl Fn(&Process, u64) -> bool) -> Option<Vec<Holder>> {
    let has_it = |pid: &i32| {
        let process = proc::of(*pid).living();
        let descriptors = process.descriptors().into_iter().flatten();
        let mut numbers = descriptors.filter_map(|number| u64::try_from(number).ok());
        numbers.any(|number| is_it(&process, number))
    };
    let all = proc::pids().ok()?.take(PROCESSES_MAX);
    Some(all.filter(has_it).take(HOLDERS_MAX).map(holder).collect())
}

fn is_end(process: &Process, number: u64, path: &Path, inode: u64, wanted: PipeEnd) -> bool {
    if process.descriptor(number).ok().as_deref() != Some(path) {
        return false;
    }
    let same = fs::metadata(process.path(&format!("fd/{number}")));
    let mode = process
        .descriptor_flags(number)
        .map(|flags| flags & ACCESS_MODE);
    let can = match wanted {
        PipeEnd::Read => matches!(mode, Some(0 | 2)),
        PipeEnd::Write => matches!(mode, Some(1 | 2)),
    };
    can && same.is_ok_and(|file| file.ino() == inode)
}

/// The child that a process waits for. If the number is that of no child, all children.
fn child(pid: i32, number: u64) -> Vec<Holder> {
    let mut all = children(pid);
    // The number is 32 bits wide. A negative one stands for several children.
    let wanted = i32::try_from(number & 0xffff_ffff).unwrap_or_default();
    if all.iter().any(|child| child.pid == wanted) {
        all.retain(|child| child.pid == wanted);
    }
    all
}

fn children(pid: i32) -> Vec<Holder> {
    let process = proc::of(pid);
    let threads = process.thread_ids().into_iter().flatten();
    let children = threads.flat_map(|id| process.children_of_thread(id).unwrap_or_default());
    children.take(HOLDERS_MAX).map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_holders_are_distinguished_from_waiters() {
        let table = "1: FLOCK  ADVISORY  WRITE 4711 08:01:77 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 4712 08:01:77 0 EOF\n\
                     2: POSIX  ADVISORY  READ  4713 08:01:77 0 99\n\
                     3: OFDLCK ADVISORY  WRITE -1 08:01:77 0 EOF\n\
                     4: POSIX  ADVISORY  READ  4714 08:02:77 0 99\n\
                     5: POSIX  ADV";
        let device = nix::sys::stat::makedev(8, 1);
        assert_eq!(holders(table, device, 77), [4711, 4713]);
        assert_eq!(holders(table, device, 78), [0_i32; 0]);
    }

    #[test]
    fn the_other_end_of_a_local_socket_is_found() {
        use std::os::fd::AsRawFd;
        let (stream, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let number = u64::try_from(stream.as_raw_fd()).unwrap();
        let (what, holders) = super::stream(own, number, PipeEnd::Write).unwrap();
        let sends = "data from a local socket, whose other end no other process has open";
        assert!(what.starts_with(sends), "{what}");
        assert_eq!(holders.len(), 1);
        assert_eq!(holders[0].pid, own);
    }

    #[test]
    fn the_other_end_of_a_connection_is_found() {
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(address).unwrap();
        let _theirs = listener.accept().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let number = u64::try_from(stream.as_raw_fd()).unwrap();
        let (what, holders) = super::stream(own, number, PipeEnd::Write).unwrap();
        assert_eq!(what, format!("data from {address}"));
        assert!(holders.iter().any(|holder| holder.pid == own));
        let bound = std::time::Duration::from_secs(9);
        stream.set_read_timeout(Some(bound)).unwrap();
        let (_, holders) = super::stream(own, number, PipeEnd::Write).unwrap();
        assert_eq!(holders, [], "it gives up by itself");
        let file = fs::File::open("/proc/self/stat").unwrap();
        let number = u64::try_from(file.as_raw_fd()).unwrap();
        assert!(super::stream(own, number, PipeEnd::Write).is_none());
    }

    /// A child that reads what only its parent could write, and one that just runs.
    #[test]
    fn child_waiting_for_its_parent_is_distinguished_from_others() {
        use std::process::{Child, Command, Stdio};
        let own = i32::try_from(std::process::id()).unwrap();
        let start = |program: &str, argument: &str| {
            let mut command = Command::new(program);
            let command = command.arg(argument).stdin(Stdio::piped());
            command.stdout(Stdio::null()).spawn().unwrap()
        };
        let waits = |child: &Child| {
            let pid = i32::try_from(child.id()).unwrap();
            is_waited_back(own, &[holder(pid)])
        };
        let mut reads = start("cat", "-");
        let pid = i32::try_from(reads.id()).unwrap();
        // It is executed, and then in its read.
        while proc::of(pid).name().ok().as_deref() != Some("cat")
            || proc::of(pid)
                .thread(pid)
                .system_call()
                .is_none_or(|call| call.0 != 0)
        {
            std::thread::yield_now();
        }
        let mut sleeps = start("sleep", "60");
        assert!(waits(&reads));
        assert!(!waits(&sleeps));
        for child in [&mut reads, &mut sleeps] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!is_waited_back(own, &[holder(1)]));
    }

    #[test]
    fn fifo_without_another_end_is_named_by_path() {
        let own = i32::try_from(std::process::id()).unwrap();
        let folder = std::env::temp_dir().join(format!("sdm-fifo-{own}"));
        fs::create_dir(&folder).unwrap();
        let fifo = folder.join("end");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let at = |path: &Path| {
            let text = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
            let here = u64::from(u32::MAX - 99);
            unopened(
                own,
                [here, text.as_ptr().expose_provenance() as u64, 0, 0, 0, 0],
            )
        };
        let said = format!("a process to open the other end of {}", fifo.display());
        assert_eq!(at(&fifo), Some(said));
        assert_eq!(at(&folder), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_other_end_of_a_pipe_is_found() {
        let (reader, _writer) = nix::unistd::pipe().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let number = u64::try_from(number).unwrap();
        let (what, holders) = pipe(own, number, PipeEnd::Write).unwrap();
        assert!(what.starts_with("data written to pipe:["), "{what}");
        assert!(
            holders.iter().any(|holder| holder.pid == own),
            "{holders:?}"
        );
    }
}
