//! Removes the breakpoints that a killed gdb has left in a process.
//!
//! gdb does not publish its breakpoints (it has internal ones too), so the process itself is examined. The kernel shows
//! which pages of code were modified. If such a page has a trap instruction where the file has another instruction,
//! there is a breakpoint. This needs no bookkeeping in normal operation, and finds all breakpoints.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use sdm_system::files;
use sdm_system::pagemap::{self, page_size};
use sdm_system::proc::{self, Mapping};
use sdm_text::printable_name;

/// The trap instructions that gdb writes over code on this processor.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
const TRAPS: &[&[u8]] = &[&[0xcc]];
#[cfg(target_arch = "aarch64")]
const TRAPS: &[&[u8]] = &[&[0x00, 0x00, 0x20, 0xd4]];
#[cfg(any(target_arch = "riscv64", target_arch = "riscv32"))]
const TRAPS: &[&[u8]] = &[&[0x73, 0x00, 0x10, 0x00], &[0x02, 0x90]];
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
const TRAPS: &[&[u8]] = &[&[0x08, 0x10, 0x82, 0x7d]];
#[cfg(all(target_arch = "powerpc64", target_endian = "big"))]
const TRAPS: &[&[u8]] = &[&[0x7d, 0x82, 0x10, 0x08]];
#[cfg(target_arch = "s390x")]
const TRAPS: &[&[u8]] = &[&[0x00, 0x01]];
#[cfg(target_arch = "loongarch64")]
const TRAPS: &[&[u8]] = &[&[0x05, 0x00, 0x2a, 0x00]];
#[cfg(target_arch = "arm")]
const TRAPS: &[&[u8]] = &[
    &[0xf0, 0x01, 0xf0, 0xe7],
    &[0x01, 0x00, 0x9f, 0xef],
    &[0xf0, 0xf7, 0x00, 0xa0],
    &[0x01, 0xde],
];

/// The alignment of instructions, in bytes.
const ALIGNMENT: usize = match TRAPS {
    [first] => first.len(),
    _ => 2,
};

/// A private executable mapping of a file.
#[derive(Debug, PartialEq, Eq)]
struct Code {
    start: u64,
    end: u64,
    /// Offset of the mapping's start in the file.
    offset: u64,
    inode: u64,
    path: PathBuf,
}

/// A trap instruction in the code of a process, at a place where the file has another instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// Address of the breakpoint in the process.
    pub(crate) address: u64,
    /// The file with the code.
    pub path: PathBuf,
    /// Offset of the breakpoint in the file.
    pub offset: u64,
    /// The original bytes from the file.
    before: Vec<u8>,
}

/// Restores the file's code at each breakpoint in the process, except at `foreign` addresses; returns the breakpoints.
///
/// # Errors
/// [`io::Error`] if the process is gone or not writable for this user, or if the file of modified code is gone. All
/// other code is restored nevertheless.
pub(crate) fn remove_breakpoints(pid: i32, foreign: &[u64]) -> io::Result<Vec<Breakpoint>> {
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(proc::of(pid).path("mem"))?;
    let mut removed = Vec::new();
    each_breakpoint(pid, &memory, |found| {
        if !foreign.contains(&found.address) {
            memory.write_all_at(&found.before, found.address)?;
            removed.push(found);
        }
        Ok(())
    })?;
    Ok(removed)
}

/// Addresses of the breakpoints in the process.
///
/// # Errors
/// As [`remove_breakpoints`].
pub(crate) fn breakpoints(pid: i32) -> io::Result<Vec<u64>> {
    let memory = File::open(proc::of(pid).path("mem"))?;
    let mut found = Vec::new();
    each_breakpoint(pid, &memory, |it| {
        found.push(it.address);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `act` for each trap instruction of the process that the file of its code does not have.
fn each_breakpoint(
    pid: i32,
    memory: &File,
    mut act: impl FnMut(Breakpoint) -> io::Result<()>,
) -> io::Result<()> {
    let maps = proc::of(pid).maps()?;
    let pages = File::open(proc::of(pid).path("pagemap"))?;
    let mut gone = Ok(());
    for code in maps.iter().filter_map(code_of) {
        let places = written_to(&code, &pages).unwrap_or_default();
        if places.is_empty() {
            continue;
        }
        match open(pid, &code) {
            Ok(file) => {
                for place in places {
                    // If one page cannot be read, others may still be readable.
                    let _ = in_page(&code, place, memory, &file, &mut act);
                }
            }
            Err(error) => {
                let text = format!("{}: {error}", printable_name(&code.path));
                gone = Err(io::Error::new(error.kind(), text));
            }
        }
    }
    gone
}

/// Opens the file of some code. If it was deleted or replaced, it is read through the process's own mapping, which only
/// root may do, or as the process's executable. Another file at its path says nothing about this code.
fn open(pid: i32, code: &Code) -> io::Result<File> {
    let process = proc::of(pid);
    let mapped = process.path(&format!("map_files/{:x}-{:x}", code.start, code.end));
    if let Ok(file) = File::open(mapped) {
        return Ok(file);
    }
    let is_executed = process.program().is_ok_and(|path| path == code.path);
    let file = match is_executed {
        true => File::open(process.path("exe")),
        false => files::open(&code.path),
    }?;
    match file.metadata()?.ino() == code.inode {
        true => Ok(file),
        false => Err(io::Error::other("the file was replaced by another one")),
    }
}

/// Offsets of the modified pages of the code, from the start of the mapping. These pages no longer come from the file.
fn written_to(code: &Code, pagemap: &File) -> io::Result<Vec<u64>> {
    let is_written =
        |page: &pagemap::Page| (page.is_present() || page.is_swapped()) && !page.is_of_file();
    let pages = pagemap::pages(pagemap, (code.start, code.end))?;
    let written = pages.into_iter().filter(is_written);
    Ok(written.map(|page| page.address - code.start).collect())
}

fn in_page(
    code: &Code,
    place: u64,
    memory: &File,
    file: &File,
    act: &mut impl FnMut(Breakpoint) -> io::Result<()>,
) -> io::Result<()> {
    let (address, offset) = (code.start + place, code.offset + place);
    let mut now = vec![0; usize::try_from(page_size()).unwrap_or(4096)];
    let mut before = now.clone();
    memory.read_exact_at(&mut now, address)?;
    // The last page of a file can be incomplete.
    let length = file.read_at(&mut before, offset)?;
    for (at, bytes) in traps(&now[..length], &before[..length]) {
        act(Breakpoint {
            address: address + at as u64,
            path: code.path.clone(),
            offset: offset + at as u64,
            before: before[at..at + bytes].to_vec(),
        })?;
    }
    Ok(())
}

/// Offset and length of each place where `now` has a trap instruction and `before` has another instruction.
fn traps(now: &[u8], before: &[u8]) -> Vec<(usize, usize)> {
    let trap_at = |at: usize| {
        let found = TRAPS.iter().find(|trap| now[at..].starts_with(trap))?;
        let is_new = at + found.len() <= before.len() && !before[at..].starts_with(found);
        is_new.then_some((at, found.len()))
    };
    let places = (0..now.len()).step_by(ALIGNMENT);
    places.filter_map(trap_at).collect()
}

/// The private executable mapping of a file; `None` for any other mapping.
fn code_of(mapping: &Mapping) -> Option<Code> {
    let is_code = mapping.is_executable() && mapping.is_private() && mapping.start < mapping.end;
    let path = mapping.file().filter(|_| is_code)?;
    Some(Code {
        start: mapping.start,
        end: mapping.end,
        offset: mapping.offset,
        inode: mapping.inode,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn only_private_executable_file_mappings_count_as_code() {
        let read_code = |line: &str| {
            let maps = proc::mappings(line.as_bytes());
            maps.first().and_then(code_of)
        };
        let code = read_code("5555000-5557000 r-xp 00001000 08:01 11  /tmp/my prog").unwrap();
        assert_eq!(
            (code.start, code.end, code.offset),
            (0x555_5000, 0x555_7000, 0x1000)
        );
        assert_eq!(code.path, PathBuf::from("/tmp/my prog"));
        for other in [
            "",
            "5555000-5557000 rw-p 00001000 08:01 11 /tmp/prog",
            "5555000-5557000 r-xs 00001000 08:01 11 /tmp/prog",
            "7ffff000-7ffff200 r-xp 00000000 00:00 0 [vdso]",
            "zz-5557000 r-xp 00001000 08:01 11 /tmp/prog",
        ] {
            assert_eq!(read_code(other), None, "{other}");
        }
    }

    #[test]
    fn traps_missing_in_the_file_are_found() {
        for trap in TRAPS {
            let now: Vec<u8> = [&trap.repeat(2)[..], &[1; 4]].concat();
            let mut before = now.clone();
            assert!(traps(&now, &before).is_empty());
            before[0] = trap[0].wrapping_add(1);
            assert_eq!(traps(&now, &before), [(0, trap.len())]);
            assert!(traps(&before, &now).is_empty(), "what is no trap is left");
        }
    }

    /// Only root may open the file by its mapping.
    #[test]
    fn breakpoint_in_a_deleted_program_is_removed() {
        let name = format!("sdm-restore-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A copy by another process is never open for writing in this one, where a concurrent test could inherit it.
        let mut copy = std::process::Command::new("cp");
        let copied = copy.arg("/bin/cat").arg(&path).status().unwrap();
        assert!(copied.success());
        let mut child = std::process::Command::new(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        fs::remove_file(&path).unwrap();
        let pid = child.id().cast_signed();
        // Once the program answers, it is completely loaded.
        let (stdin, stdout) = (child.stdin.as_mut(), child.stdout.as_mut());
        stdin.unwrap().write_all(b"x").unwrap();
        stdout.unwrap().read_exact(&mut [0]).unwrap();
        let maps = proc::of(pid).maps().unwrap();
        let mut code = maps.iter().filter_map(code_of);
        let of_program = |code: &Code| code.path.starts_with(std::env::temp_dir());
        let code = code.find(of_program).unwrap();
        let memory = proc::of(pid).path("mem");
        let memory = OpenOptions::new().read(true).write(true).open(memory);
        let memory = memory.unwrap();
        let mut before = [0; TRAPS[0].len()];
        memory.read_exact_at(&mut before, code.start).unwrap();
        assert_ne!(before, TRAPS[0]);
        memory.write_all_at(TRAPS[0], code.start).unwrap();
        assert_eq!(breakpoints(pid).unwrap().len(), 1);
        let foreign = breakpoints(pid).unwrap();
        assert_eq!(remove_breakpoints(pid, &foreign).unwrap().len(), 0);
        assert_eq!(remove_breakpoints(pid, &[]).unwrap().len(), 1);
        let mut after = [0; TRAPS[0].len()];
        memory.read_exact_at(&mut after, code.start).unwrap();
        assert_eq!(after, before);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn cleanup_removes_nothing_and_fails_for_an_ended_process() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(remove_breakpoints(pid, &[]).unwrap().len(), 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(remove_breakpoints(pid, &[]).is_err());
    }
}
