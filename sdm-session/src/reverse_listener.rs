//! The master's listening socket for servers that cannot be connected to. It is opened here, so that
//! servers can get its address before the master runs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use sdm_core::transport::{ConnectionString, own_addresses, tcp};

use super::config::Network;
use super::error::SessionError;

/// The socket, with its addresses.
pub(super) struct ReverseListener {
    pub(super) socket: TcpListener,
    /// The addresses for the servers, separated by commas.
    pub(super) places: String,
}

impl ReverseListener {
    /// Listens on the network interfaces, or on loopback if all servers are on this host.
    pub(super) fn open(network: &Network, for_others: bool) -> Result<Self, SessionError> {
        let addresses = match for_others {
            true => own_addresses(network.interface.as_ref())?,
            false => vec![Ipv4Addr::LOCALHOST.into()],
        };
        let bind = match (&addresses[..], for_others) {
            ([only], _) => *only,
            _ => Ipv6Addr::UNSPECIFIED.into(),
        };
        let (port, tries) = network.ports.search(0);
        let listen = |ip: IpAddr| tcp::listener(&SocketAddr::new(ip, port).into(), tries);
        // A kernel without IPv6.
        let socket = match listen(bind) {
            Err(_) if bind == Ipv6Addr::UNSPECIFIED => listen(Ipv4Addr::UNSPECIFIED.into()),
            listening => listening,
        };
        let (socket, at) = socket.map_err(|source| SessionError::Io {
            what: "cannot listen for the servers".to_owned(),
            source,
        })?;
        let place = |ip: &IpAddr| ConnectionString::from(SocketAddr::new(*ip, at.port()));
        let places: Vec<String> = addresses.iter().map(|ip| place(ip).to_string()).collect();
        Ok(Self {
            socket,
            places: places.join(","),
        })
    }
}
