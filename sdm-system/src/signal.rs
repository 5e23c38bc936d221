//! Names of signals in messages.

use nix::sys::signal::Signal;

/// The signal's name; `SIG` and the number for one without a name, as in gdb.
pub fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{number}"),
    }
}
