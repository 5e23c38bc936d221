//! Signals of a program that need a debugger.

use nix::libc;

/// Signals at which gdb stops no program either: they go through to it.
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
/// Signals that end no program that does not handle them.
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
/// Signals of an instruction, which it raises again when it is carried out again.
const OF_INSTRUCTIONS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// The highest signal with a name.
const NAMED_MAX: i32 = 31;

/// Signals that stop a process.
const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// True for a signal that ends a program which does not handle it, and at which gdb stops one.
pub(super) fn needs_debugger(signal: i32) -> bool {
    signal <= NAMED_MAX && !PASSED.contains(&signal) && !HARMLESS.contains(&signal)
}

/// True for a signal that an instruction raises whenever it is carried out.
pub(super) fn is_of_instruction(signal: i32) -> bool {
    OF_INSTRUCTIONS.contains(&signal)
}

/// True for a signal that stops a process.
pub(super) fn is_stop(signal: i32) -> bool {
    STOPS.contains(&signal)
}
