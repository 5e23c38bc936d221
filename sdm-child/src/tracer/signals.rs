//! Signals of a program that need a debugger.

use nix::libc;

/// Signals that gdb passes on to a program without a stop.
const PASSED: [i32; 10] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];
/// Signals whose default action does not terminate a program.
const HARMLESS: [i32; 8] = [
    libc::SIGCHLD,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGCONT,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];
/// Signals raised by an instruction, which raises the signal again when it is executed again.
const OF_INSTRUCTIONS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// Highest signal number that is not a real-time signal.
const NAMED_MAX: i32 = 31;

/// Signals that stop a process.
const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// True for a signal whose default action terminates a program, and at which gdb stops.
pub(super) fn needs_debugger(signal: i32) -> bool {
    signal <= NAMED_MAX && !PASSED.contains(&signal) && !HARMLESS.contains(&signal)
}

/// True for a signal that an instruction raises each time it is executed.
pub(super) fn is_of_instruction(signal: i32) -> bool {
    OF_INSTRUCTIONS.contains(&signal)
}

/// True for a signal of a crash.
pub(super) fn is_crash(signal: i32) -> bool {
    is_of_instruction(signal) || signal == libc::SIGABRT
}

/// True for a signal that stops a process.
pub(super) fn is_stop(signal: i32) -> bool {
    STOPS.contains(&signal)
}
