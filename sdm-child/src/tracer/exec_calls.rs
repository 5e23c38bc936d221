//! The first system calls of a new process are examined: a process that executes a privileged program must not be
//! traced.
//!
//! The kernel denies a traced process the privileges of a set-user-ID program, and a file's capabilities. Wrappers such
//! as a container's start-up need them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::{Pid, geteuid};
use sdm_system::proc;

/// Number of stops at system calls of a new process. Each call has a stop at its beginning and one at its end.
const STOPS_MAX: u16 = 512;
/// Maximum length of a path in the kernel, in bytes.
const PATH_BYTES_MAX: u64 = 4096;
/// Bits of a file's mode that give its program another user or group.
const PRIVILEGED: u32 = libc::S_ISUID | libc::S_ISGID;

/// Number of system-call stops at which a new process is checked for the execution of a privileged program. 0 if this
/// process is root: the kernel then keeps the program's privileges under the tracer.
pub(super) fn limit() -> u16 {
    match geteuid().is_root() {
        true => 0,
        false => STOPS_MAX,
    }
}

/// True if a thread, which is stopped at a system call, is about to execute a privileged program.
pub(super) fn executes_privileged(id: i32) -> bool {
    let Ok(registers) = ptrace::getregs(Pid::from_raw(id)) else {
        return false;
    };
    // At the beginning of a call the kernel has put an error number where the result will be.
    let is_begin = registers.rax.cast_signed() == -i64::from(libc::ENOSYS);
    let path = match registers.orig_rax.cast_signed() {
        libc::SYS_execve if is_begin => registers.rdi,
        libc::SYS_execveat if is_begin => registers.rsi,
        _ => return false,
    };
    let process = proc::of(id);
    let path = PathBuf::from(OsString::from_vec(text(id, path)));
    let file = match path.is_absolute() {
        true => process.inside(&path),
        false => process.path("cwd").join(path),
    };
    let mode = std::fs::metadata(&file).map(|it| it.mode());
    mode.is_ok_and(|mode| mode & PRIVILEGED != 0) || sdm_system::has_capabilities(&file)
}

/// The text at an address of a stopped thread, up to its zero byte. Whole words are read, because the page after the
/// text may be unmapped.
fn text(id: i32, address: u64) -> Vec<u8> {
    const WORD: u64 = size_of::<u64>() as u64;
    let mut text = Vec::new();
    let mut skipped = usize::try_from(address % WORD).unwrap_or_default();
    let first = address - address % WORD;
    for at in (first..first.saturating_add(PATH_BYTES_MAX)).step_by(size_of::<u64>()) {
        let at = std::ptr::without_provenance_mut(usize::try_from(at).unwrap_or_default());
        let Ok(word) = ptrace::read(Pid::from_raw(id), at) else {
            break;
        };
        let bytes = &word.to_ne_bytes()[std::mem::take(&mut skipped)..];
        let end = bytes.iter().position(|byte| *byte == 0);
        text.extend(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() {
            break;
        }
    }
    text
}
