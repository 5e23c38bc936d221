//! Addresses of this machine at which `sdm` listens for an editor or a browser.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::ValueError;

/// An address of this machine alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// At this address of the loopback.
    Tcp(SocketAddr),
    /// At this socket in the file system.
    Unix(PathBuf),
}

/// Reads an address of the loopback, or `unix:PATH`.
pub(super) fn listen(text: &str) -> Result<Listen, ValueError> {
    if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(Listen::Unix(path.into()));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(Listen::Tcp(address)),
        _ => Err(ValueError::Wrong(
            "expected 127.0.0.1:PORT, [::1]:PORT or unix:PATH",
        )),
    }
}
