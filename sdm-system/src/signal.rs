//! Names of signals.

use nix::sys::signal::Signal;

/// What a signal is called; gdb's word for those that have no name of their own.
pub fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{number}"),
    }
}
