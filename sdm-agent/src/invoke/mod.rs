//! The invoke server ("Ninf-G Invoke Server"): a GridRPC client of Ninf-G 4 or 5 starts, watches and ends its executables through
//! it, at whichever resource manager an agent knows.
//!
//! [`protocol`] reads what the client asks, [`attributes`] what a job is to be, [`server`] says what in which order; [`target`] chooses a
//! manager, [`back`] has the jobs there, [`guard`] ends them where the server is killed, and [`serve()`] waits.

pub mod attributes;
pub mod back;
pub mod guard;
mod options;
pub mod protocol;
mod run;
pub mod server;
pub mod target;
#[cfg(test)]
mod tests;

pub use run::{NAME, serve};

/// Reads any bytes as what a client asks, and does what the server would: nothing panics, and what is said are lines.
#[doc(hidden)]
pub fn fuzz_requests(bytes: &[u8]) {
    let now = std::time::Instant::now();
    let mut server = server::Server::new("j");
    for part in bytes.chunks(61) {
        server.receive(now, part);
        while let Some(action) = server.poll_action() {
            if let server::Action::Start(number, _) = action {
                server.job_is(now, number, server::JobState::Active, "");
            }
        }
    }
    server.closed(now);
    while let Some((_, said)) = server.poll_output() {
        assert!(said.ends_with(b"\r\n"), "{said:?}");
    }
}
