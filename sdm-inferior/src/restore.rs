//! Takes out the breakpoints that a killed gdb has left in a process.
//!
//! gdb keeps to itself what it has inserted where (its own internal breakpoints too), so this looks
//! at the process instead: pages of code that were written to are no longer the file's, and where one
//! holds a trap instruction and the file another one, a breakpoint stands. Nothing has to be kept
//! while all is well, and none is missed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use sdm_system::files;
use sdm_system::pagemap::{self, page_size};
use sdm_system::proc::{self, Mapping};
use sdm_text::printable_name;

/// What gdb writes over an instruction.
#[cfg(target_arch = "aarch64")]
const TRAP: &[u8] = &[0x00, 0x00, 0x20, 0xd4];
/// What gdb writes over the first byte of an instruction.
#[cfg(not(target_arch = "aarch64"))]
const TRAP: &[u8] = &[0xcc];

/// Code of a file, mapped.
#[derive(Debug, PartialEq, Eq)]
struct Code {
    start: u64,
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    path: PathBuf,
}

/// Puts back what stands in the files wherever the process has a breakpoint, but for those at `foreign` addresses;
/// gives how many.
///
/// # Errors
/// [`io::Error`] where the process is gone, or is not ours to write to, or a file of its code is gone and code of it was written to. What
/// can be restored is.
pub(crate) fn remove_breakpoints(pid: i32, foreign: &[u64]) -> io::Result<usize> {
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(proc::of(pid).path("mem"))?;
    let mut count = 0;
    each_breakpoint(pid, &memory, |address, before| {
        if !foreign.contains(&address) {
            memory.write_all_at(before, address)?;
            count += 1;
        }
        Ok(())
    })?;
    Ok(count)
}

/// Where the process has breakpoints now.
///
/// # Errors
/// As [`remove_breakpoints`].
pub(crate) fn breakpoints(pid: i32) -> io::Result<Vec<u64>> {
    let memory = File::open(proc::of(pid).path("mem"))?;
    let mut found = Vec::new();
    each_breakpoint(pid, &memory, |address, _| {
        found.push(address);
        Ok(())
    })?;
    Ok(found)
}

/// Gives each address where the process has a trap instruction and the file of its code has not, and what that has.
fn each_breakpoint(
    pid: i32,
    memory: &File,
    mut act: impl FnMut(u64, &[u8]) -> io::Result<()>,
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
                    let (address, offset) = (code.start + place, code.offset + place);
                    // Another page may be readable where this one is not.
                    let _ = in_page(address, offset, memory, &file, &mut act);
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

/// The file that code is of. One that is gone or was replaced is seen through the process's own mapping, where that is
/// allowed (it is root's), or as what it executes.
fn open(pid: i32, code: &Code) -> io::Result<File> {
    let process = proc::of(pid);
    let mapped = process.path(&format!("map_files/{:x}-{:x}", code.start, code.end));
    let executed = process.path("exe");
    let is_executed = process.program().is_ok_and(|path| path == code.path);
    File::open(mapped).or_else(|_| match is_executed {
        true => File::open(executed),
        false => files::open(&code.path),
    })
}

/// Which pages of the code are no longer the file's: where they begin in it.
fn written_to(code: &Code, pagemap: &File) -> io::Result<Vec<u64>> {
    let is_written =
        |page: &pagemap::Page| (page.is_present() || page.is_swapped()) && !page.is_of_file();
    let pages = pagemap::pages(pagemap, (code.start, code.end))?;
    let written = pages.into_iter().filter(is_written);
    Ok(written.map(|page| page.address - code.start).collect())
}

fn in_page(
    address: u64,
    offset: u64,
    memory: &File,
    file: &File,
    act: &mut impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut now = vec![0; usize::try_from(page_size()).unwrap_or(4096)];
    let mut before = now.clone();
    memory.read_exact_at(&mut now, address)?;
    // The last page of a file can be cut.
    let length = file.read_at(&mut before, offset)?;
    for at in traps(&now[..length], &before[..length]) {
        act(address + at as u64, &before[at..at + TRAP.len()])?;
    }
    Ok(())
}

/// Where `now` has a trap instruction and `before` another one.
fn traps(now: &[u8], before: &[u8]) -> Vec<usize> {
    let pairs = now
        .chunks_exact(TRAP.len())
        .zip(before.chunks_exact(TRAP.len()));
    let found = pairs
        .enumerate()
        .filter(|(_, (now, before))| *now == TRAP && *before != TRAP);
    found.map(|(index, _)| index * TRAP.len()).collect()
}

/// A mapping that is private code of a file.
fn code_of(mapping: &Mapping) -> Option<Code> {
    let is_code = mapping.is_executable() && mapping.is_private() && mapping.start < mapping.end;
    let path = mapping.file().filter(|_| is_code)?;
    Some(Code {
        start: mapping.start,
        end: mapping.end,
        offset: mapping.offset,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn code_among_mappings() {
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
    fn traps_that_the_file_does_not_have() {
        let trap = TRAP[0];
        let now: Vec<u8> = [&TRAP.repeat(2)[..], &[1; 4]].concat();
        let mut before = now.clone();
        assert!(traps(&now, &before).is_empty());
        before[0] = trap.wrapping_add(1);
        assert_eq!(traps(&now, &before), [0]);
        assert!(traps(&before, &now).is_empty(), "what is no trap is left");
    }

    /// Nobody but root may open it by its mapping.
    #[test]
    fn a_program_whose_file_is_gone_is_restored_too() {
        let name = format!("sdm-restore-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Whoever another test starts meanwhile would have it open for writing.
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
        // It is there as a whole when it does something.
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
        let mut before = [0; TRAP.len()];
        memory.read_exact_at(&mut before, code.start).unwrap();
        assert_ne!(before, TRAP);
        memory.write_all_at(TRAP, code.start).unwrap();
        assert_eq!(breakpoints(pid).unwrap().len(), 1);
        let foreign = breakpoints(pid).unwrap();
        assert_eq!(remove_breakpoints(pid, &foreign).unwrap(), 0);
        assert_eq!(remove_breakpoints(pid, &[]).unwrap(), 1);
        let mut after = [0; TRAP.len()];
        memory.read_exact_at(&mut after, code.start).unwrap();
        assert_eq!(after, before);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_without_breakpoints_is_left_as_it_is() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(remove_breakpoints(pid, &[]).unwrap(), 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(remove_breakpoints(pid, &[]).is_err());
    }
}
