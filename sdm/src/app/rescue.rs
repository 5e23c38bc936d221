//! `sdm rescue`: removal of breakpoints and other traces that a killed debugger left in processes.

use std::io;

use sdm_inferior::{Rescue, Stay};
use sdm_text::printable_name;

use crate::sink::{Sink, complain};

/// The exit code of a failure.
const FAILED: u8 = 2;
/// Maximum number of breakpoints of a process that are listed.
const NAMED_MAX: usize = 8;

/// Carries out `sdm rescue`. Returns the exit code.
pub(super) fn rescue(pids: &[i32]) -> u8 {
    let mut code = 0;
    for pid in pids {
        let told = match sdm_inferior::rescue(*pid) {
            Ok(done) => tell(*pid, &done),
            Err(error) => {
                complain(format_args!("sdm: process {pid}: {error}"));
                code = FAILED;
                Ok(())
            }
        };
        if told.is_err() {
            return FAILED;
        }
    }
    code
}

fn tell(pid: i32, done: &Rescue) -> io::Result<()> {
    let mut text = format!("process {pid}: ");
    let count = done.removed.len();
    match count {
        0 => text.push_str("no leftover breakpoint was found"),
        1 => text.push_str("removed a breakpoint that the debugger had left: "),
        _ => text.push_str(&format!("removed {count} breakpoints: ")),
    }
    let places = done.removed.iter().take(NAMED_MAX);
    let places = places.map(|it| format!("{}+{:#x}", printable_name(&it.path), it.offset));
    text.push_str(&places.collect::<Vec<_>>().join(", "));
    if count > NAMED_MAX {
        text.push_str(", ...");
    }
    text.push_str(&match done.stays {
        Some(Stay::By(signal)) => {
            format!("; stays stopped by {signal}, which debuggers do not send (`kill -CONT {pid}` continues the process)")
        }
        Some(Stay::Unknown(errno)) => format!(
            "; stays stopped, because the signal cannot be read: {errno} (`kill -CONT {pid}` continues the process)"
        ),
        None if done.goes_on => "; was stopped, and was continued by sdm".to_owned(),
        None => "; keeps running".to_owned(),
    });
    text.push('\n');
    Sink::Output.show(&text)
}
