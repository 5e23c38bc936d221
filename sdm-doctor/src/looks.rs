//! Checks whether the kernel allows reading the stacks of processes without gdb, by a trial on a process started for
//! it.

use std::io::{self, IoSliceMut};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use sdm_system::proc;

use crate::gdb::Waiting;
use crate::{Check, Finding};

/// The failed step of the trial, with its error.
type Failed = (&'static str, io::Error);

/// Tries to read the memory of a child process without gdb; the finding about it.
#[must_use]
pub fn looks() -> Finding {
    let check = Check::Looks;
    match Waiting::start().map_err(|error| ("cannot start a process to test with", error)) {
        Ok(mut waiting) => {
            let tried = look(waiting.pid());
            waiting.end();
            tried.map_or_else(bad, |()| {
                Finding::good(check, "stacks can be read without gdb")
            })
        }
        Err(failed) => bad(failed),
    }
}

fn bad((step, error): Failed) -> Finding {
    Finding::bad(
        Check::Looks,
        format!("stacks cannot be read without gdb: {step}: {error}"),
        "see the check `ptrace-scope`; in a container, allow ptrace and process_vm_readv (--cap-add SYS_PTRACE, or a seccomp profile with them); if gdb can attach, use `--by gdb`",
    )
}

/// Stops the child, reads its memory, and detaches, as SDM does to read a stack without gdb.
fn look(child: i32) -> Result<(), Failed> {
    let pid = Pid::from_raw(child);
    let failed = |step| move |errno: Errno| (step, io::Error::from(errno));
    ptrace::seize(pid, Options::empty()).map_err(failed("ptrace"))?;
    let stopped = ptrace::interrupt(pid).and_then(|()| waitpid(pid, None));
    let read = stopped.map_err(failed("ptrace")).and_then(|_| read(child));
    // The child ends in any case.
    let _ = ptrace::detach(pid, None);
    read
}

fn read(child: i32) -> Result<(), Failed> {
    let step = "process_vm_readv";
    let mappings = proc::of(child).maps().map_err(|error| (step, error))?;
    let base = mappings.first().map_or(0, |it| it.start);
    let base = usize::try_from(base).unwrap_or(0);
    let from = [RemoteIoVec { base, len: 1 }];
    let mut byte = [0];
    let to = &mut [IoSliceMut::new(&mut byte)];
    let read = process_vm_readv(Pid::from_raw(child), to, &from);
    read.map(drop).map_err(|errno| (step, errno.into()))
}
