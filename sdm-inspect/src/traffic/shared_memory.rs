//! The memory that a process shares with others, by which MPI ranks of one host exchange messages.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sdm_system::pagemap;
use sdm_system::proc::{self, Mapping};
use xxhash_rust::xxh3::Xxh3Default;

/// Maximum number of bytes of shared memory that are examined. The smallest mappings are first, because MPI's own
/// segments are smaller than those that programs share.
const BYTES_MAX: usize = 64 << 20;
/// Number of pages read at once.
const CHUNK: usize = 16;

/// Adds at most [`BYTES_MAX`] bytes of shared memory to the hash, smallest mappings first. Only resident pages of
/// writable mappings are read, and no page is paged in. A page that the process has not touched is left out, as the
/// process has not seen what others have written to it.
///
/// # Errors
/// [`io::Error`] if the process has ended, or may not be read.
pub(super) fn add(pid: i32, hash: &mut Xxh3Default) -> io::Result<()> {
    let process = proc::of(pid).living();
    let memory = File::open(process.path("mem"))?;
    let pagemap = File::open(process.path("pagemap"))?;
    let page_bytes = usize::try_from(pagemap::page_size()).unwrap_or(4096);
    let mut shared = process.maps()?;
    shared.retain(is_shared);
    shared.sort_by_key(|mapping| mapping.end - mapping.start);
    let mut pages_left = BYTES_MAX / page_bytes;
    let mut bytes = vec![0; CHUNK * page_bytes];
    for mapping in shared {
        if pages_left == 0 {
            break;
        }
        let pages = pagemap::pages(&pagemap, (mapping.start, mapping.end))?;
        let runs = pages.chunk_by(|one, next| one.is_present() == next.is_present());
        let present = runs.filter(|run| run.iter().all(|page| page.is_present()));
        for chunk in present.flat_map(|run| run.chunks(CHUNK)) {
            let chunk = &chunk[..chunk.len().min(pages_left)];
            pages_left -= chunk.len();
            let bytes = &mut bytes[..chunk.len() * page_bytes];
            // Memory beyond the end of the mapped file cannot be read.
            let read = chunk
                .first()
                .map(|page| memory.read_exact_at(bytes, page.address));
            if let Some(Ok(())) = read {
                hash.update(bytes);
            }
        }
    }
    Ok(())
}

/// True for memory that only processes write to. Reading a device's memory can have side effects, and the kernel writes
/// to the memory of `/proc` and `/sys`.
fn is_shared(mapping: &Mapping) -> bool {
    const MEMORY: [&str; 3] = ["/dev/shm/", "/dev/zero", "/dev/hugepages/"];
    const DEVICES: [&str; 3] = ["/dev/", "/sys/", "/proc/"];
    let name = mapping.name.to_string_lossy();
    let begins = |names: [&str; 3]| names.iter().any(|begin| name.starts_with(begin));
    let is_memory = match name.chars().next() {
        Some('/') => begins(MEMORY) || !begins(DEVICES),
        Some(_) => name.starts_with("[anon_shmem:"),
        None => true,
    };
    is_memory && mapping.is_writable() && !mapping.is_private()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    fn check(line: &str, expect: bool) {
        let maps = proc::mappings(line.as_bytes());
        assert_eq!(maps.first().is_some_and(is_shared), expect, "{line}");
    }

    #[test]
    fn shared_memory_mappings_are_recognized() {
        check("7f00-8f00 rw-s 00000000 00:01 11 /dev/shm/vader.1", true);
        check(
            "7f00-8f00 rw-s 00000000 00:01 11 /SYSV00000000 (deleted)",
            true,
        );
        check("7f00-8f00 rw-s 00000000 00:01 11 /dev/zero (deleted)", true);
        check("7f00-8f00 rw-s 00000000 08:01 11 /tmp/segment", true);
        check(
            "7f00-8f00 r--s 00000000 08:01 11 /usr/lib/gconv.cache",
            false,
        );
        check("7f00-8f00 rw-p 00000000 00:00 0", false);
        check(
            "7f00-8f00 rw-s 00000000 00:01 11 /dev/infiniband/uverbs0",
            false,
        );
    }

    #[test]
    fn writes_to_shared_memory_are_detected() {
        const PROGRAM: &str = "\
import mmap, sys
shared = mmap.mmap(-1, 1 << 20)
own = bytearray(1 << 20)
shared[0] = 1
print(flush=True)
for place in sys.stdin:
    where = shared if place == 'shared\\n' else own
    where[9] += 1
    print(flush=True)
";
        let mut python = Command::new("python3");
        python.args(["-c", PROGRAM]);
        python.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        let pid = python.id().cast_signed();
        let mut input = python.stdin.take().unwrap();
        let mut lines = BufReader::new(python.stdout.take().unwrap()).lines();
        let mut seen = || {
            lines.next().unwrap().unwrap();
            let mut hash = Xxh3Default::new();
            add(pid, &mut hash).unwrap();
            hash.digest128()
        };
        let mut before = seen();
        for place in ["own", "shared", "own", "shared"] {
            writeln!(input, "{place}").unwrap();
            let now = seen();
            assert_eq!(now != before, place == "shared");
            before = now;
        }
        drop(input);
        python.wait().unwrap();
        assert!(add(-1, &mut Xxh3Default::new()).is_err());
    }
}
