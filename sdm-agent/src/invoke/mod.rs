//! The invoke server ("Ninf-G Invoke Server"): a GridRPC client of Ninf-G 4 or 5 starts, watches and ends its
//! executables through it, at any resource manager that an agent knows.
//!
//! [`protocol`] parses the client's requests and [`attributes`] the description of a job. [`server`] is the state
//! machine of replies and notifications. [`target`] chooses a manager, [`manager_threads`] runs the jobs there, [`guard`] ends
//! them where the server is killed, and [`serve()`] is the event loop.

pub mod attributes;
pub mod guard;
pub mod manager_threads;
mod options;
pub mod protocol;
mod run;
pub mod server;
pub mod target;
#[cfg(test)]
mod tests;

pub use run::{NAME, serve};

/// Handles any bytes as a client's requests, as the server would; asserts that nothing panics, and that the output
/// consists of lines.
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
