//! Runs a filter program, such as a decompressor, from one file into another, with a limit on the size of its output.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command};

use nix::sys::statvfs::fstatvfs;

use crate::sys;

/// Size of a block, in bytes. A block that holds only zeros becomes a hole.
const BLOCK_BYTES: usize = 64 << 10;
/// Maximum number of bytes that are read of a program's error output.
const COMPLAINT_BYTES_MAX: u64 = 1024;
/// Share of a file system's free space that stays free: one part in this number.
const ROOM_LEFT: u64 = 10;

/// Runs a program with `from` as its standard input, and writes its standard output to `to`. Blocks of zeros become
/// holes. The program is killed when its caller ends, and at its limits: `bytes_max`, and the space of the file system
/// of `to`. Returns the length of the output in bytes.
///
/// # Errors
/// The program cannot be started, fails (the error is the first line of its error output), or exceeds a limit.
pub fn pour(command: &mut Command, from: File, to: &mut File, bytes_max: u64) -> io::Result<u64> {
    sys::goes_with_its_parent(command);
    let (said, out) = io::pipe()?;
    let (complaints, err) = io::pipe()?;
    // A program that complains without an end loses complaints; it is not kept waiting until somebody reads them.
    sys::set_nonblocking(err.as_fd())?;
    let spawned = command.stdin(from).stdout(out).stderr(err).spawn();
    // The command holds our ends of its pipes.
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null());
    let mut child = spawned?;
    let written = write(said, to, bytes_max);
    if written.is_err() {
        // It has ended, or is ended by this.
        let _ = child.kill();
    }
    let complaint = complaint(&mut child, complaints)?;
    match (written, complaint) {
        (Ok(bytes), None) => Ok(bytes),
        (Ok(_), Some(complaint)) => Err(io::Error::new(io::ErrorKind::InvalidData, complaint)),
        (Err(error), _) => Err(error),
    }
}

/// Waits for the program's end. If the program has failed, returns the first line of its error output, or its exit
/// status; otherwise `None`.
fn complaint(child: &mut Child, complaints: io::PipeReader) -> io::Result<Option<String>> {
    let status = child.wait()?;
    if status.success() {
        return Ok(None);
    }
    sys::set_nonblocking(complaints.as_fd())?;
    let mut text = Vec::new();
    // Nothing may have been said.
    let _ = complaints.take(COMPLAINT_BYTES_MAX).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(Some(line.map_or_else(|| status.to_string(), str::to_owned)))
}

fn write(mut from: impl Read, to: &mut File, bytes_max: u64) -> io::Result<u64> {
    let system = fstatvfs(&*to)?;
    let free = system
        .blocks_available()
        .saturating_mul(system.fragment_size());
    let room = free - free / ROOM_LEFT;
    let mut block = vec![0; BLOCK_BYTES];
    let (mut length, mut used) = (0_u64, 0_u64);
    loop {
        let count = fill(&mut from, &mut block)?;
        if count == 0 {
            to.set_len(length)?;
            return Ok(length);
        }
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        length = length.saturating_add(bytes);
        if length > bytes_max {
            let max = bytes_max >> 30;
            let text = format!("larger than {max} GiB");
            return Err(io::Error::other(text));
        }
        if block[..count].iter().all(|byte| *byte == 0) {
            to.seek(SeekFrom::Start(length))?;
            continue;
        }
        used = used.saturating_add(bytes);
        if used > room {
            let room = room >> 20;
            let text =
                format!("the temporary folder has room for {room} MiB, and the file needs more");
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        to.write_all(&block[..count])?;
    }
}

/// Reads until the block is full or the input has ended. Returns the number of bytes read.
fn fill(from: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match from.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;
    use crate::files;

    /// Pours a text through a shell script into a file. Returns the file's contents, and the bytes that it takes on the
    /// disk.
    fn poured(script: &str, text: &[u8], bytes_max: u64) -> io::Result<(Vec<u8>, u64)> {
        let folder = files::temporary_folder();
        let word = files::random_word()?;
        let (from, to) = (
            folder.join(format!("{word}.in")),
            folder.join(format!("{word}.out")),
        );
        std::fs::write(&from, text)?;
        let mut file = files::create_new(&to)?;
        let mut shell = Command::new("/bin/sh");
        let result = pour(
            shell.args(["-c", script]),
            File::open(&from)?,
            &mut file,
            bytes_max,
        );
        let mut made = Vec::new();
        File::open(&to)?.read_to_end(&mut made)?;
        let blocks = file.metadata()?.blocks();
        std::fs::remove_file(from)?;
        std::fs::remove_file(to)?;
        result.map(|bytes| {
            assert_eq!(bytes, made.len() as u64);
            (made, blocks * 512)
        })
    }

    #[test]
    fn output_is_written_whole_with_holes_for_zeros() {
        let (made, _) = poured("cat; echo b", b"a\n", 1 << 30).unwrap();
        assert_eq!(made, b"a\nb\n");
        let zeros = "head -c 8388608 /dev/zero; cat; head -c 4194304 /dev/zero";
        let (made, used) = poured(zeros, b"x", 1 << 30).unwrap();
        assert_eq!((made.len(), made[8 << 20]), ((12 << 20) + 1, b'x'));
        assert!(used < 1 << 20, "{used} bytes on the disk");
    }

    #[test]
    fn oversized_output_or_failure_of_a_filter_is_an_error() {
        let error = poured("exec cat /dev/zero", b"", 1 << 30).unwrap_err();
        assert_eq!(error.to_string(), "larger than 1 GiB");
        let error = poured("echo; echo unexpected end >&2; exit 1", b"", 1 << 30).unwrap_err();
        assert_eq!(error.to_string(), "unexpected end");
        let endless = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; exit 1";
        let error = poured(endless, b"", 1 << 30).unwrap_err();
        assert!(error.to_string().starts_with("0123"), "{error}");
        let error = poured("kill -9 $$", b"", 1 << 30).unwrap_err();
        assert!(error.to_string().contains("signal: 9"), "{error}");
    }
}
