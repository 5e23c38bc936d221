//! Names of signals in messages.

use nix::sys::signal::Signal;

/// The name of a signal; `SIG` and the number for a signal without a name, as in gdb.
pub fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{number}"),
    }
}
