//! What the driver asks of the machine, behind a trait, so that the driver itself does no I/O.

use std::cell::RefCell;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use sdm_system::files;

use crate::child::{is_loaded, signals_of};
use crate::kernel;

/// Looks at processes and files of this host. Nothing here changes anything.
pub(crate) trait Host {
    /// The process's state letter and what it waits in, as of `/proc`.
    fn process_state(&self, pid: i32) -> Option<(char, String)>;
    /// What the process holds in memory, and the most that it has held, in bytes.
    fn memory(&self, pid: i32) -> Option<(u64, u64)>;
    /// The program that the process runs.
    fn program(&self, pid: i32) -> Option<PathBuf>;
    /// True where every thread of the process blocks the signal.
    fn blocks_signal(&self, pid: i32, signal: i32) -> bool;
    /// True where the signal waits to be delivered to the process.
    fn signal_pending(&self, pid: i32, signal: i32) -> bool;
    /// The file that is mapped at an address, and how far from its first mapping that is.
    fn place(&self, pid: i32, address: u64) -> Option<(String, u64)>;
    /// True where the process runs this program.
    fn runs(&self, pid: i32, program: &Path) -> bool;
    /// Where the program itself begins (not its dynamic linker).
    fn entry_address(&self, pid: i32) -> Option<u64>;
    /// True where gdb has loaded what completes its writes of registers. To be asked once gdb has answered something.
    fn completes_writes(&self) -> bool;
    /// The time that the process has spent on a processor, in milliseconds.
    fn cpu_ms(&self, pid: i32) -> Option<u64>;
    /// The number of the system call that a thread is in, where that may be known.
    fn system_call(&self, pid: i32, thread: i32) -> Option<i64>;
    /// One line of a source file.
    fn source_line(&self, path: &str, line: u32) -> Option<String>;
}

/// The largest source file that is read, in bytes.
const SOURCE_BYTES_MAX: u64 = 8 << 20;
/// How many source files are kept.
const SOURCES_MAX: usize = 8;
/// The longest source line that is shown, in bytes.
const LINE_BYTES_MAX: usize = 512;

/// The most scripts that gdb is started by.
const WRAPPERS_MAX: usize = 8;

/// The host that this process runs on.
#[derive(Default)]
pub(crate) struct LocalHost {
    /// The process that was started as gdb.
    gdb: i32,
    /// The source files read last, the latest at the end.
    sources: RefCell<Vec<(String, Vec<u8>)>>,
}

impl LocalHost {
    /// The host of a gdb, which was started as this process.
    pub(crate) fn of(gdb: i32) -> Self {
        Self {
            gdb,
            ..Self::default()
        }
    }
}

impl Host for LocalHost {
    fn completes_writes(&self) -> bool {
        is_loaded(last_started(self.gdb))
    }

    fn process_state(&self, pid: i32) -> Option<(char, String)> {
        let stat = files::read_lossy(format!("/proc/{pid}/stat")).ok()?;
        let letter = stat.rsplit_once(") ")?.1.chars().next()?;
        let wchan = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        let wchan = if wchan == "0" { String::new() } else { wchan };
        Some((letter, wchan))
    }

    fn memory(&self, pid: i32) -> Option<(u64, u64)> {
        let status = files::read_lossy(format!("/proc/{pid}/status")).ok()?;
        let bytes = |name| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
            kilobytes.checked_mul(1024)
        };
        Some((bytes("VmRSS:")?, bytes("VmHWM:")?))
    }

    fn program(&self, pid: i32) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{pid}/exe")).ok()
    }

    fn blocks_signal(&self, pid: i32, signal: i32) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return false;
        };
        let mut seen = false;
        for thread in threads.flatten() {
            let Ok(status) = files::read_lossy(thread.path().join("status")) else {
                continue;
            };
            seen = true;
            if !signals_of(&status, "SigBlk:").contains(&signal) {
                return false;
            }
        }
        seen
    }

    fn signal_pending(&self, pid: i32, signal: i32) -> bool {
        let status = files::read_lossy(format!("/proc/{pid}/status")).unwrap_or_default();
        signals_of(&status, "ShdPnd:").contains(&signal)
            || signals_of(&status, "SigPnd:").contains(&signal)
    }

    fn place(&self, pid: i32, address: u64) -> Option<(String, u64)> {
        let maps = files::read_lossy(format!("/proc/{pid}/maps")).ok()?;
        place_in(&maps, address)
    }

    fn runs(&self, pid: i32, program: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let running = fs::metadata(format!("/proc/{pid}/exe"));
        let (Ok(running), Ok(wanted)) = (running, fs::metadata(program)) else {
            return false;
        };
        (running.dev(), running.ino()) == (wanted.dev(), wanted.ino())
    }

    fn entry_address(&self, pid: i32) -> Option<u64> {
        const AT_ENTRY: usize = 9;
        let auxv = fs::read(format!("/proc/{pid}/auxv")).ok()?;
        let word = |bytes: &[u8]| bytes.try_into().ok().map(usize::from_ne_bytes);
        let size = size_of::<usize>();
        auxv.chunks_exact(2 * size)
            .find(|pair| word(&pair[..size]) == Some(AT_ENTRY))
            .and_then(|pair| word(&pair[size..]))
            .map(|address| address as u64)
    }

    fn cpu_ms(&self, pid: i32) -> Option<u64> {
        kernel::cpu_ms(pid)
    }

    fn system_call(&self, pid: i32, thread: i32) -> Option<i64> {
        kernel::system_call(pid, thread)
    }

    fn source_line(&self, path: &str, line: u32) -> Option<String> {
        let mut sources = self.sources.borrow_mut();
        if let Some(at) = sources.iter().position(|(known, _)| known == path) {
            let source = sources.remove(at);
            sources.push(source);
        } else {
            let bytes = read_source(path).unwrap_or_default();
            if sources.len() == SOURCES_MAX {
                sources.remove(0);
            }
            sources.push((path.to_owned(), bytes));
        }
        let (_, bytes) = sources.last().filter(|(_, bytes)| !bytes.is_empty())?;
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let line = bytes.split(|&byte| byte == b'\n').nth(index)?;
        let line = &line[..line.len().min(LINE_BYTES_MAX)];
        Some(String::from_utf8_lossy(line).trim_end().to_owned())
    }
}

/// The process that a process has become by starting another and waiting for it, as a script does that gdb is started by.
fn last_started(mut pid: i32) -> i32 {
    for _ in 0..WRAPPERS_MAX {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let Some(child) = children.split(' ').find_map(|child| child.parse().ok()) else {
            break;
        };
        pid = child;
    }
    pid
}

fn read_source(path: &str) -> Option<Vec<u8>> {
    let file = files::open(path.as_ref()).ok()?;
    if file.metadata().ok()?.len() > SOURCE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn place_in(maps: &str, address: u64) -> Option<(String, u64)> {
    let mut first: Option<(&str, u64)> = None;
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        // Permissions, offset, device, inode; then the path, which may hold blanks.
        let Some(path) = line.find(['/', '[']).map(|at| &line[at..]) else {
            continue;
        };
        if first.is_none_or(|(known, _)| known != path) {
            first = Some((path, start));
        }
        if (start..end).contains(&address) {
            let (path, base) = first?;
            return Some((path.to_owned(), address - base));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
555555554000-555555555000 r--p 00000000 08:01 11 /tmp/my prog
555555555000-555555556000 r-xp 00001000 08:01 11 /tmp/my prog
555555556000-555555557000 rw-p 00000000 00:00 0
7ffff7dd4000-7ffff7dfa000 r--p 00000000 08:01 12 /lib/libc.so.6
7ffff7dfa000-7ffff7f4f000 r-xp 00026000 08:01 12 /lib/libc.so.6
7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0 [vdso]
";

    fn check(address: u64, expect: Option<(&str, u64)>) {
        let expect = expect.map(|(path, offset)| (path.to_owned(), offset));
        assert_eq!(place_in(MAPS, address), expect, "{address:#x}");
    }

    #[test]
    fn places_in_maps() {
        check(0x5555_5555_5010, Some(("/tmp/my prog", 0x1010)));
        check(0x5555_5555_6010, None);
        check(0x7fff_f7e0_0000, Some(("/lib/libc.so.6", 0x2c000)));
        check(0x7fff_f7fc_9001, Some(("[vdso]", 1)));
        check(0x10, None);
    }

    #[test]
    fn this_process_is_seen() {
        let host = LocalHost::default();
        let pid = std::process::id().cast_signed();
        assert!(host.process_state(pid).is_some());
        assert!(host.entry_address(pid).is_some());
        assert!(!host.blocks_signal(pid, nix::libc::SIGINT));
        assert!(!host.signal_pending(pid, nix::libc::SIGINT));
        assert_eq!(host.process_state(-1), None);
    }

    #[test]
    fn lines_of_source() {
        let host = LocalHost::default();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
        let first = host.source_line(path, 1).unwrap();
        assert!(first.starts_with("//!"), "{first}");
        assert_eq!(host.source_line(path, 0), None);
        assert_eq!(host.source_line(path, 1_000_000), None);
        assert_eq!(
            host.source_line("/nosuch", 1),
            Some(String::new()).filter(|_| false)
        );
    }
}
