//! What holds a server's connection open where this process dies in the middle of it.
//!
//! OpenPMIx (4 and 5, as of Open MPI 5.0.11) does not survive a tool that hangs up between its connection message
//! and the server's last reply to it: the server takes a namespace off a list that it is not on, and
//! `prterun` dies, and the user's job with it. Whoever kills this process at that moment (a time-out, the death of
//! who asks, a person) would kill the job. So a second process, the *keeper*, shares this one's descriptor table from
//! before the library is loaded. It does nothing while this process lives. Once that has ended, the keeper closes
//! everything but connected sockets, and holds those until the server has hung up or ended, or nothing more comes
//! from it: it sends its replies in one go. Where there is none, as after a goodbye, it ends at once. It holds no longer than
//! it must, as `prterun` does not end as long as a tool is connected.
//!
//! A server that is stopped gives no replies for as long as it is: it is not asked at all, and the keeper does
//! not count that time.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::libc;

use crate::sys;

/// The name of the keeper's process: at most 15 bytes.
const NAME: &std::ffi::CStr = c"sdm-pmix-hold";
/// How long a server that runs takes at most until it begins to reply.
const REPLIES_TAKE: Duration = Duration::from_secs(10);
/// How long a server that runs may pause between two of its replies, some hundred bytes in all.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often it is looked whether the server runs.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The most descriptors that this process has: one for the answer, and a few of the library's.
const DESCRIPTORS_MAX: RawFd = 1024;

/// Refuses a server that is stopped.
pub(crate) fn check_runs(server: i32) -> Result<()> {
    let path = stat_path(server)?;
    let Some(state) = state(&path).filter(|state| is_stopped(*state)) else {
        return Ok(());
    };
    let program = std::fs::read_link(format!("/proc/{server}/exe")).unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let how = match state {
        b't' => "stopped by a debugger",
        _ => "stopped",
    };
    bail!(
        "{program} (pid {server}) is {how} and cannot answer: have it go on (kill -CONT {server}) and try again"
    );
}

/// Starts the keeper of this process's connections to a server. This process must have one thread.
///
/// `held` is kept open as long as the keeper lives: others wait for it.
pub(crate) fn start(server: i32, held: Option<RawFd>) -> Result<()> {
    let (own, path) = (std::process::id().cast_signed(), stat_path(server)?);
    // Both are opened here, so that neither number can be another process's by then.
    let own = sys::pidfd_open(own).context("watch this process")?;
    let server = sys::pidfd_open(server).with_context(|| format!("process {server}"))?;
    let forked = sys::fork_sharing_descriptors();
    if forked.context("start what holds the connection")? == sys::Forked::Child {
        keep(own, server, held, &path);
    }
    Ok(())
}

/// The keeper's life. It allocates nothing.
fn keep(parent: RawFd, server: RawFd, held: Option<RawFd>, stat: &std::ffi::CStr) -> ! {
    sys::detach(NAME);
    sys::wait_readable(&mut [poll_of(parent, libc::POLLIN)], None);
    // From here on the table is the keeper's own: nobody waits for what it will not write.
    let mut sockets: [libc::pollfd; 16] = [poll_of(-1, 0); 16];
    let (server_at, mut count) = (0, 1);
    sockets[server_at] = poll_of(server, libc::POLLIN);
    for fd in 0..DESCRIPTORS_MAX {
        if fd == server || Some(fd) == held {
            continue;
        }
        if count < sockets.len() && sys::is_connected(fd) {
            // What the server still sends is not read: only the end counts.
            sockets[count] = poll_of(fd, libc::POLLRDHUP);
            count += 1;
        } else {
            sys::close(fd);
        }
    }
    let mut ran = Duration::ZERO;
    let mut received = 0;
    while count > 1 {
        let begun = Instant::now();
        if sys::wait_readable(&mut sockets[..count], Some(LOOK_EVERY)) {
            if sockets[server_at].revents != 0 {
                break;
            }
            for index in (1..count).rev() {
                if sockets[index].revents != 0 {
                    sys::close(sockets[index].fd);
                    count -= 1;
                    sockets[index] = sockets[count];
                }
            }
        }
        let before = received;
        received = sockets[1..count]
            .iter()
            .map(|it| sys::received(it.fd))
            .sum();
        // A server that stopped in between may not have run at all.
        ran = match received != before || state(stat).is_some_and(is_stopped) {
            true => Duration::ZERO,
            false => ran + begun.elapsed().min(2 * LOOK_EVERY),
        };
        if ran
            >= if received > 0 {
                PAUSE_MAX
            } else {
                REPLIES_TAKE
            }
        {
            break;
        }
    }
    sys::exit(0)
}

fn poll_of(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

fn stat_path(pid: i32) -> Result<std::ffi::CString> {
    std::ffi::CString::new(format!("/proc/{pid}/stat")).context("a path")
}

/// The letter of a process's state; absent where it cannot be read. It allocates nothing.
fn state(path: &std::ffi::CStr) -> Option<u8> {
    let mut text = [0; 256];
    let text = sys::read(path, &mut text)?;
    // The name is in brackets, and may hold some.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    text.get(end + 2).copied()
}

fn is_stopped(state: u8) -> bool {
    matches!(state, b'T' | b't')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_behind_whatever_a_name_holds() {
        let own = stat_path(std::process::id().cast_signed()).unwrap();
        assert!(matches!(state(&own), Some(b'R' | b'S')));
        let folder = std::env::temp_dir().join(format!("sdm-pmix-{}", std::process::id()));
        std::fs::write(&folder, "7 (a) T (b) t 1 2 3").unwrap();
        let path = std::ffi::CString::new(folder.to_str().unwrap()).unwrap();
        assert_eq!(state(&path), Some(b't'));
        std::fs::write(&folder, "7 (a)").unwrap();
        assert_eq!(state(&path), None);
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(state(&path), None);
    }
}
