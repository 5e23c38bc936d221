//! Listening for the members of the tree, and the addresses that a server announces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result};
use sdm_core::transport::{ConnectionString, Interface, Transport, own_addresses};

/// Listens for connections of members. Returns the port, and the addresses at which other members reach it, best first.
///
/// # Errors
/// No port is free, or no interface matches.
pub(crate) fn listen(
    transport: &mut impl Transport,
    bind: IpAddr,
    interface: Option<&Interface>,
    (port, tries): (u16, u16),
) -> Result<(u16, Vec<IpAddr>)> {
    let reached = match bind.is_unspecified() {
        true => own_addresses(interface)?,
        false => vec![bind],
    };
    // If an interface has exactly one address, the server listens only there.
    let bind = match (&reached[..], interface) {
        ([only], Some(_)) => *only,
        _ => bind,
    };
    let mut try_at = |ip| {
        let wanted = ConnectionString::from(SocketAddr::new(ip, port));
        transport.listen(&wanted, tries)
    };
    let bound = match try_at(bind) {
        // A kernel without IPv6.
        Err(error) if bind == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse => {
            try_at(Ipv4Addr::UNSPECIFIED.into())
        }
        bound => bound,
    };
    let bound = bound?
        .socket_addr()
        .context("cannot get the address of the listening socket")?;
    Ok((bound.port(), reached))
}
