//! The exec wrapper of a program: the process between gdb and the program, which sets up the program's environment and
//! executes it.
//!
//! It is the executable of the server, or shim, in another mode: [`exec_program`] is the first call of its `main`. gdb
//! runs it as `exec-wrapper`. It does little before its `exec`, as it runs once for each task.

use std::ffi::{CString, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use sdm_system::proc;
use sdm_text::{printable, printable_name};

use super::starter_args::{BadOrder, Hold, MODE, Orders, Source};
use crate::sys;

/// A shell's exit codes for a program that cannot be run, and for one that does not exist.
const CANNOT_RUN: u8 = 126;
const NOT_THERE: u8 = 127;

/// The reason why a program was not executed.
#[derive(Debug)]
pub struct ExecFailure {
    code: u8,
    text: String,
}

impl ExecFailure {
    fn new(text: String) -> Self {
        let code = CANNOT_RUN;
        Self { code, text }
    }

    /// The exit code for the failure: 127 if there is no such program, otherwise 126.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for ExecFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ExecFailure {}

impl From<BadOrder> for ExecFailure {
    fn from(error: BadOrder) -> Self {
        Self::new(error.to_string())
    }
}

/// Executes the program, if this process was started as exec wrapper, and then does not return. `None` if this process
/// is no exec wrapper; otherwise the reason of the failure. Call it first in `main`.
#[must_use]
pub fn exec_program() -> Option<ExecFailure> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != MODE {
        return None;
    }
    Some(carry_out(words).unwrap_or_else(|failure| failure))
}

/// Executes the program, and returns only the reason why that failed. `Ok` if only the final `execve` failed; `Err`
/// if a step before it did.
fn carry_out(words: impl Iterator<Item = OsString>) -> Result<ExecFailure, ExecFailure> {
    let (orders, command) = Orders::parse(words)?;
    let arguments = c_strings(command);
    let environment = c_strings(environment(orders.changes));
    let Some(program) = arguments.first() else {
        return Err(ExecFailure::new("expected a program".to_owned()));
    };
    set_streams(&orders.streams)?;
    for fd in orders.closed {
        // The descriptor may already be closed.
        let _ = nix::unistd::close(fd);
    }
    if let Some(hold) = orders.hold {
        wait_for_release(hold)?;
    }
    sys::set_signals(&orders.signals.ignored, &orders.signals.blocked);
    let Err(error) = nix::unistd::execve(program, &arguments, &environment);
    let text = format!("{}: {}", printable(program.to_bytes()), error.desc());
    let code = match error {
        Errno::ENOENT => NOT_THERE,
        _ => CANNOT_RUN,
    };
    Ok(ExecFailure { code, text })
}

/// Waits until the parent has seized this process. If the parent does not, the program is not executed.
fn wait_for_release(hold: Hold) -> Result<(), ExecFailure> {
    let failed = |error: io::Error| {
        ExecFailure::new(format!(
            "cannot wait until the parent process traces this one: {error}"
        ))
    };
    sys::fix_addresses();
    if hold.tracer > 0 {
        sys::allow_tracer(hold.tracer);
    }
    let mut release = File::from(sys::own_received(hold.release));
    let mut byte = [0];
    release.read_exact(&mut byte).map_err(failed)
}

/// This process's environment with these changes, as `NAME=VALUE`.
fn environment(changes: Vec<(OsString, Option<OsString>)>) -> impl Iterator<Item = OsString> {
    let is_changed = |name: &OsString| changes.iter().any(|(changed, _)| changed == name);
    let mut variables: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| !is_changed(name))
        .collect();
    let set = changes.into_iter();
    variables.extend(set.filter_map(|(name, value)| Some((name, value?))));
    variables.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    })
}

/// Arguments or variables of this process as C strings. The kernel passed them, so they contain no byte 0.
fn c_strings(words: impl IntoIterator<Item = OsString>) -> Vec<CString> {
    let words = words.into_iter().map(OsString::into_vec);
    words.filter_map(|word| CString::new(word).ok()).collect()
}

/// Opens all streams, and then gives them their numbers. Until then gdb's standard error is open, on which a failure is
/// reported.
fn set_streams(streams: &[Option<Source>; 3]) -> Result<(), ExecFailure> {
    let mut opened = Vec::new();
    for (number, source) in (0..).zip(streams) {
        let Some(source) = source else { continue };
        let fd = open_stream(number, source).map_err(|(name, error)| {
            let name = printable_name(&name);
            ExecFailure::new(format!("standard stream {number}: {name}: {error}"))
        })?;
        opened.push((number, fd));
    }
    for (number, fd) in opened {
        if fd != number {
            sys::duplicate_to(fd, number)
                .map_err(|error| ExecFailure::new(format!("standard stream {number}: {error}")))?;
            let _ = nix::unistd::close(fd);
        }
    }
    // The `O_PATH` descriptors of pipes are no longer needed.
    for source in streams.iter().flatten() {
        if let Source::Pipe(fd) = source {
            let _ = nix::unistd::close(*fd);
        }
    }
    Ok(())
}

/// Opens a standard stream, and returns its descriptor.
///
/// # Errors
/// The path that cannot be opened, and the system's error.
fn open_stream(number: RawFd, source: &Source) -> Result<RawFd, (std::path::PathBuf, io::Error)> {
    let path = match source {
        Source::Copy(fd) => return Ok(*fd),
        Source::Pipe(fd) => proc::own().path(&format!("fd/{fd}")),
        Source::Path(path) => path.clone(),
    };
    let mut options = File::options();
    options.read(number == 0).write(number != 0);
    options.custom_flags(OFlag::O_NOCTTY.bits());
    let file = options.open(&path);
    file.map(IntoRawFd::into_raw_fd)
        .map_err(|error| (path, error))
}

/// A descriptor that names a file without opening it (`O_PATH`). The descriptor does not count as an open end of a
/// pipe, and is close-on-exec.
///
/// # Errors
/// [`io::Error`] if there is no such file, or no descriptor is left.
pub(crate) fn name_of(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    Ok(sys::out_of_the_way(open(path, flags, Mode::empty())?))
}

/// Like `name_of`, for an end of a pipe of this process.
///
/// # Errors
/// [`io::Error`] if no descriptor is left.
pub(crate) fn name_of_pipe(end: &impl AsFd) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let fd = end.as_fd().as_raw_fd();
    name_of(&proc::own().path(&format!("fd/{fd}")))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn o_path_descriptor_of_a_pipe_keeps_neither_end_open() {
        let (mut reader, writer) = io::pipe().unwrap();
        let name = name_of_pipe(&writer).unwrap();
        let source = Source::Pipe(name.as_raw_fd());
        let opened = open_stream(1, &source).unwrap();
        drop(writer);
        File::from(sys::own_received(opened))
            .write_all(b"through")
            .unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through", "it ends although the name is there");
        let (reader, mut writer) = io::pipe().unwrap();
        let name = name_of_pipe(&reader).unwrap();
        drop(reader);
        let error = writer.write(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        drop(name);
    }

    #[test]
    fn exec_wrapper_sets_and_unsets_environment_variables() {
        let path = std::env::var_os("PATH").unwrap();
        let changes = vec![
            ("PATH".into(), None),
            ("SDM_STARTER".into(), Some("a=b".into())),
        ];
        let words: Vec<_> = environment(changes).collect();
        assert_eq!(words.last().unwrap(), "SDM_STARTER=a=b");
        assert!(
            !words
                .iter()
                .any(|word| word.as_bytes().starts_with(b"PATH="))
        );
        let mut wanted = OsString::from("PATH=");
        wanted.push(path);
        assert!(environment(Vec::new()).any(|word| word == wanted));
    }
}
