//! What a thread waits for outside of its process, read from the kernel's tables: who has the lock of a file, who is
//! at the other end of a pipe, which child is waited for. Nothing is opened and nothing changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sdm_debug::probe::{Holder, ResourceWait};
use sdm_system::proc;
use sdm_text::printable_name;

use crate::kernel;

/// The most holders that are named.
const HOLDERS_MAX: usize = 16;
/// The most processes that are searched for the other end of a pipe.
const PROCESSES_MAX: usize = 4096;
/// What part of the flags says whether a descriptor is for writing.
const ACCESS_MODE: u32 = 3;

/// What a thread of a process waits for.
pub(crate) fn of(pid: i32, thread: i32) -> Option<ResourceWait> {
    let process = proc::of(pid);
    let (number, arguments) = process.thread(thread).system_call_with_arguments()?;
    let call = kernel::name_of(number)?;
    let (what, holders) = match call.as_str() {
        "flock" | "fcntl" => lock(pid, arguments[0])?,
        "read" | "readv" => pipe(pid, arguments[0], PipeEnd::Write)?,
        "write" | "writev" => pipe(pid, arguments[0], PipeEnd::Read)?,
        "wait4" | "waitid" => ("a child to end".to_owned(), children(pid)),
        _ => return None,
    };
    Some(ResourceWait {
        call,
        what,
        holders,
    })
}

fn holder(pid: i32) -> Holder {
    let process = proc::of(pid);
    Holder {
        pid,
        name: process.name().unwrap_or_default(),
        letter: process.state().map_or('?', |state| state.0),
    }
}

/// Who has a lock on the file of a descriptor.
fn lock(pid: i32, descriptor: u64) -> Option<(String, Vec<Holder>)> {
    let process = proc::of(pid);
    let path = process.descriptor(descriptor).ok()?;
    // Through `/proc` it is that file, whatever has the path now.
    let file = fs::metadata(process.path(&format!("fd/{descriptor}"))).ok()?;
    let table = proc::of_machine("locks").ok()?;
    let holders = holders(&table, file.dev(), file.ino());
    let holders = holders.into_iter().filter(|it| *it != pid);
    let what = format!("the lock on {}", printable_name(&path));
    Some((what, holders.take(HOLDERS_MAX).map(holder).collect()))
}

/// The processes that hold a lock on a file, by the kernel's table: `1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0 EOF`;
/// who only waits for one has an arrow behind its number.
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
        // A lock of an open file, and one of another namespace of processes, has no process here.
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

/// Who has the other end of a pipe or FIFO, as far as that may be seen.
fn pipe(pid: i32, descriptor: u64, wanted: PipeEnd) -> Option<(String, Vec<Holder>)> {
    use std::os::unix::fs::FileTypeExt;
    let process = proc::of(pid);
    let path = process.descriptor(descriptor).ok()?;
    let file = fs::metadata(process.path(&format!("fd/{descriptor}"))).ok()?;
    if !file.file_type().is_fifo() {
        return None;
    }
    let mut holders = Vec::new();
    for other in proc::pids().ok()?.take(PROCESSES_MAX) {
        if holders.len() < HOLDERS_MAX && has_end(other, &path, file.ino(), wanted) {
            holders.push(holder(other));
        }
    }
    let end = match wanted {
        PipeEnd::Write => "what is written into",
        PipeEnd::Read => "what is read from",
    };
    let nobody = match holders.is_empty() {
        true => ", whose other end nobody has who may be seen",
        false => "",
    };
    Some((format!("{end} {}{nobody}", printable_name(&path)), holders))
}

fn has_end(pid: i32, path: &Path, inode: u64, wanted: PipeEnd) -> bool {
    let process = proc::of(pid);
    let Ok(descriptors) = process.descriptors() else {
        return false;
    };
    let mut descriptors = descriptors.filter_map(|number| u64::try_from(number).ok());
    descriptors.any(|number| {
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
    })
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
    fn the_holders_of_a_lock_are_told_from_those_who_wait_for_it() {
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
    fn the_other_end_of_a_pipe_is_found() {
        let (reader, _writer) = nix::unistd::pipe().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let number = u64::try_from(number).unwrap();
        let (what, holders) = pipe(own, number, PipeEnd::Write).unwrap();
        assert!(what.starts_with("what is written into pipe:["), "{what}");
        assert!(
            holders.iter().any(|holder| holder.pid == own),
            "{holders:?}"
        );
    }
}
