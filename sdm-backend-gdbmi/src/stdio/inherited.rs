//! This process's own standard streams, for programs to have as theirs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::stat::{SFlag, fstat};

/// The descriptors that every shell can name.
const NAMEABLE_MAX: RawFd = 9;

/// This process's standard streams, as a program that gdb starts can have them.
///
/// They are handed down under other numbers, as gdb has standard streams of its own; the shell that gdb starts
/// gives them their own numbers back. So a program has what it would have without gdb: the same open file, of
/// whatever kind and whoever's it is.
#[derive(Clone, Debug)]
pub struct InheritedStreams {
    stdin: String,
    /// In place of `stdin` for a program that is not to read it.
    no_stdin: String,
    others: String,
}

impl InheritedStreams {
    /// Those that this process has now. To be called early: they need numbers that a shell can
    /// name, below 10.
    ///
    /// # Errors
    /// [`io::Error`] where a stream is closed, or is a socket for which no such number is free.
    pub fn take() -> io::Result<Self> {
        let stdin = io::stdin();
        let stdout = io::stdout();
        let stderr = io::stderr();
        let mut streams = Self {
            stdin: String::new(),
            no_stdin: String::new(),
            others: String::new(),
        };
        for (number, arrow, fd) in [
            (0, "<", stdin.as_fd()),
            (1, ">", stdout.as_fd()),
            (2, "2>", stderr.as_fd()),
        ] {
            let copy = hand_down(fd).map_err(|error| {
                io::Error::new(error.kind(), format!("standard stream {number}: {error}"))
            })?;
            if number == 0 {
                streams.stdin = redirect(arrow, copy);
                streams.no_stdin = no_redirect(arrow, copy);
            } else {
                streams.others.push_str(&redirect(arrow, copy));
            }
        }
        Ok(streams)
    }

    /// For a shell; one that does not read has an empty standard input.
    pub(crate) fn redirects(&self, reads: bool) -> String {
        let stdin = if reads { &self.stdin } else { &self.no_stdin };
        format!("{stdin}{}", self.others)
    }
}

/// Copies a descriptor to a number from 3 on that children have, too.
fn hand_down(fd: BorrowedFd<'_>) -> io::Result<RawFd> {
    let mode = fstat(fd)?.st_mode;
    let is_socket = SFlag::from_bits_truncate(mode) & SFlag::S_IFMT == SFlag::S_IFSOCK;
    let copy = fcntl(fd, FcntlArg::F_DUPFD(3))?;
    if is_socket && copy > NAMEABLE_MAX {
        let _ = nix::unistd::close(copy);
        let why = "is a socket, and no descriptor from 3 to 9 is free for it";
        return Err(io::Error::other(why));
    }
    Ok(copy)
}

/// What gives it its number back. What a shell cannot name it opens anew; files are added to then, as others write
/// there too.
fn redirect(arrow: &str, copy: RawFd) -> String {
    if copy <= NAMEABLE_MAX {
        return format!(" {arrow}&{copy} {copy}>&-");
    }
    let twice = if arrow == "<" { "" } else { ">" };
    format!(" {arrow}{twice}/proc/self/fd/{copy}")
}

/// The same for who is to have nothing there, nor the copy.
fn no_redirect(arrow: &str, copy: RawFd) -> String {
    let closed = match copy {
        ..=NAMEABLE_MAX => format!(" {copy}{arrow}&-"),
        _ => String::new(),
    };
    format!(" {arrow}/dev/null{closed}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_handed_down_has_its_number_back() {
        for lowest in [3, 40] {
            let mut files = ["in\n", "", ""].map(|text| {
                let name = format!("sdm-inherited-{}-{lowest}", std::process::id());
                let path = std::env::temp_dir().join(name);
                let mut options = std::fs::File::options();
                let file = options.read(true).write(true).create_new(true).open(&path);
                let mut file = file.unwrap();
                std::fs::remove_file(path).unwrap();
                file.write_all(text.as_bytes()).unwrap();
                file.rewind().unwrap();
                file
            });
            let copies = files.each_ref().map(|file| {
                let copy = fcntl(file.as_fd(), FcntlArg::F_DUPFD(lowest));
                copy.unwrap()
            });
            let arrows = ["<", ">", "2>"];
            let redirects = arrows.iter().zip(copies);
            let redirects = redirects.map(|(arrow, copy)| redirect(arrow, copy));
            let words: String = redirects.collect();
            let script = format!("exec sh -c 'cat; echo first; echo second >&2'{words}");
            let status = Command::new("/bin/sh").args(["-c", &script]).status();
            assert!(status.unwrap().success(), "{script}");
            let [_, out, err] = &mut files;
            for (file, wanted) in [(out, "in\nfirst\n"), (err, "second\n")] {
                let mut text = String::new();
                file.rewind().unwrap();
                file.read_to_string(&mut text).unwrap();
                assert_eq!(text, wanted, "{script}");
            }
            for copy in copies {
                nix::unistd::close(copy).unwrap();
            }
        }
    }

    #[test]
    fn what_cannot_be_named_is_opened_anew() {
        assert_eq!(redirect("<", 9), " <&9 9>&-");
        assert_eq!(redirect("2>", 10), " 2>>/proc/self/fd/10");
        assert_eq!(no_redirect("<", 9), " </dev/null 9<&-");
        assert_eq!(no_redirect("<", 10), " </dev/null");
    }
}
