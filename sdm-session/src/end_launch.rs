//! The end of all processes that were launched for a session.

use std::time::{Duration, Instant};

use sdm_bootstrap::log::LogWriter;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::transport::tcp::TcpTransport;
use sdm_launch::{Launch, LaunchEvent};

/// Time limit for launched processes to end after a request, and again after a kill.
pub(super) const END_WAIT: Duration = Duration::from_secs(5);

/// Ends all launched processes and waits for their end. Processes that still run after `asked` are killed.
pub(super) fn end_launch(
    driver: &mut MemberDriver<TcpTransport>,
    launch: &mut Launch,
    asked: Duration,
) {
    for (end, wait) in [
        (Launch::terminate as fn(&mut Launch), asked),
        (Launch::kill, END_WAIT),
    ] {
        end(launch);
        let deadline = Instant::now() + wait;
        while !launch.is_over() {
            match driver.next(Some(deadline)) {
                Ok(Some(DriverEvent::Ready(fd))) => {
                    while launch.handle_ready(fd) {
                        while let Some(event) = launch.poll_event() {
                            if let LaunchEvent::Log(line) = event {
                                LogWriter::pass_on(&line);
                            }
                        }
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if launch.is_over() {
            return;
        }
    }
}
