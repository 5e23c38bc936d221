//! Facts about a process and its threads from `/proc`, which gdb does not provide.

use nix::libc;
use nix::unistd::{SysconfVar, sysconf};
use sdm_system::proc;

/// Total processor time of all threads of a process, in milliseconds; `None` if the process has ended.
pub fn cpu_ms(pid: i32) -> Option<u64> {
    let ticks = proc::of(pid).stat().ok()?.cpu_ticks()?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let per_second = u64::try_from(per_second).ok().filter(|ticks| *ticks > 0)?;
    Some(ticks.saturating_mul(1000) / per_second)
}

/// Display name of a futex wait with a timeout.
pub const TIMED_FUTEX: &str = "timed futex";
/// Index of the timeout among the arguments of `futex`.
const TIME_LIMIT: usize = 3;

/// The name of the system call that a thread is in, where a futex wait with a timeout has a name of its own. `None` in
/// the cases of [`name_of`].
pub fn name_with((number, arguments): (i64, [u64; 6])) -> Option<String> {
    let is_timed = number == libc::SYS_futex && arguments[TIME_LIMIT] != 0;
    match is_timed {
        true => Some(TIMED_FUTEX.to_owned()),
        false => name_of(number),
    }
}

/// The address of a futex wait without a timeout, and the value that it expects there. `None` for any other call, also
/// for `futex` calls that wake threads.
pub fn futex_wait((number, arguments): (i64, [u64; 6])) -> Option<(u64, u64)> {
    let [address, operation, value, ..] = arguments;
    let operation = i32::try_from(operation).ok()? & libc::FUTEX_CMD_MASK;
    let waits = [
        libc::FUTEX_WAIT,
        libc::FUTEX_WAIT_BITSET,
        libc::FUTEX_LOCK_PI,
    ];
    let is_wait =
        number == libc::SYS_futex && arguments[TIME_LIMIT] == 0 && waits.contains(&operation);
    is_wait.then_some((address, value))
}

/// True for a `futex` call without a timeout on a private futex. If the call waits, only threads of the same process
/// can end the wait.
pub fn waits_for_own((number, arguments): (i64, [u64; 6])) -> bool {
    let private = u64::from(libc::FUTEX_PRIVATE_FLAG.cast_unsigned());
    number == libc::SYS_futex && arguments[TIME_LIMIT] == 0 && arguments[1] & private != 0
}

/// The name of a system call in which a thread can wait; `number N` for any other. `None` for no call, and for
/// `restart_syscall`, which does not name the interrupted call.
pub fn name_of(number: i64) -> Option<String> {
    if number < 0 || number == libc::SYS_restart_syscall {
        return None;
    }
    let known = NAMES.iter().find(|(known, _)| *known == number);
    Some(known.map_or_else(
        || format!("number {number}"),
        |(_, name)| (*name).to_owned(),
    ))
}

const NAMES: &[(i64, &str)] = &[
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_io_getevents, "io_getevents"),
    (libc::SYS_mq_timedreceive, "mq_timedreceive"),
    (libc::SYS_mq_timedsend, "mq_timedsend"),
    (libc::SYS_msgrcv, "msgrcv"),
    (libc::SYS_msgsnd, "msgsnd"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_read, "read"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_sched_yield, "sched_yield"),
    (libc::SYS_semop, "semop"),
    (libc::SYS_semtimedop, "semtimedop"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll_wait"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_pause, "pause"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_for_existing_processes() {
        assert!(cpu_ms(std::process::id().cast_signed()).is_some());
        assert_eq!(cpu_ms(-1), None);
    }

    #[test]
    fn current_system_call_of_a_thread_is_named() {
        // This thread queries its own state, and so is in a read of the answer.
        let (pid, thread) = (nix::unistd::getpid(), nix::unistd::gettid());
        let number = proc::of(pid.as_raw()).thread(thread.as_raw()).system_call();
        assert_eq!(
            number.and_then(|(number, _)| name_of(number)).as_deref(),
            Some("read")
        );
        assert_eq!(name_of(9999).as_deref(), Some("number 9999"));
        assert_eq!(name_of(libc::SYS_restart_syscall), None);
        assert_eq!(name_of(-1), None);
        let wait = |limit| name_with((libc::SYS_futex, [0x1000, 0, 2, limit, 0, 0]));
        assert_eq!(wait(0).as_deref(), Some("futex"));
        assert_eq!(wait(0x2000).as_deref(), Some(TIMED_FUTEX));
    }

    #[test]
    fn futex_call_that_wakes_threads_is_no_wait() {
        let private = libc::FUTEX_PRIVATE_FLAG;
        let call = |operation: i32, limit| {
            let operation = u64::from(operation.cast_unsigned());
            futex_wait((libc::SYS_futex, [0x1000, operation, 2, limit, 0, 0]))
        };
        let realtime = libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME;
        for operation in [libc::FUTEX_WAIT, libc::FUTEX_WAIT | private, realtime] {
            assert_eq!(call(operation, 0), Some((0x1000, 2)), "{operation:#x}");
            assert_eq!(call(operation, 0x2000), None, "{operation:#x}");
        }
        assert_eq!(call(libc::FUTEX_WAKE | private, 0), None);
        assert_eq!(futex_wait((libc::SYS_read, [0x1000, 0, 2, 0, 0, 0])), None);
        assert_eq!(futex_wait((-1, [0x1000, 0, 2, 0, 0, 0])), None);
    }
}
