//! Where a server listens, and at which of this host's addresses it says it can be reached.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, bail};
use sdm_core::limits::ADDRESSES_MAX;
use sdm_core::transport::{ConnectionString, Interface, Transport, tcp::TcpTransport};

/// An address of this host, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    interface: String,
    ip: IpAddr,
}

/// Listens; gives where, and the addresses at which others reach that, best first.
///
/// # Errors
/// No port is free, or no interface is the one that is wanted.
pub(crate) fn listen(
    transport: &mut TcpTransport,
    bind: IpAddr,
    interface: Option<&Interface>,
    (port, tries): (u16, u16),
) -> Result<(u16, Vec<IpAddr>)> {
    let reached = match bind.is_unspecified() {
        true => chosen(&own_addresses(), interface)?,
        false => vec![bind],
    };
    // Where one address is all that there is to be, nobody is to come by another.
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
    let bound = bound?.socket_addr().context("the address that was bound")?;
    Ok((bound.port(), reached))
}

/// The addresses that others may use, loopback last: it serves those on the same host.
fn chosen(own: &[Address], interface: Option<&Interface>) -> Result<Vec<IpAddr>> {
    let is_wanted = |it: &&Address| interface.is_none_or(|wanted| wanted.has(&it.interface, it.ip));
    let mut found: Vec<IpAddr> = own.iter().filter(is_wanted).map(|it| it.ip).collect();
    found.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
    found.dedup();
    found.truncate(ADDRESSES_MAX);
    if !found.is_empty() {
        return Ok(found);
    }
    if interface.is_none() {
        return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
    }
    let own: Vec<String> = own
        .iter()
        .map(|it| format!("{} ({})", it.ip, it.interface))
        .collect();
    bail!(
        "no address of this host is in --interface; it has {}",
        own.join(", ")
    )
}

/// The addresses of interfaces that are up. Those that mean another host on each link are none.
fn own_addresses() -> Vec<Address> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let addresses = interfaces.filter_map(|interface| {
        let storage = interface.address?;
        let v4 = storage.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
        let v6 = storage.as_sockaddr_in6().map(|it| it.ip());
        let v6 = v6.filter(|ip| !ip.is_unicast_link_local()).map(IpAddr::V6);
        Some(Address {
            interface: interface.interface_name,
            ip: v4.or(v6)?,
        })
    });
    addresses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Vec<Address> {
        let address = |(interface, ip): (&str, &str)| Address {
            interface: interface.to_owned(),
            ip: ip.parse().unwrap(),
        };
        [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("eth0", "192.168.3.7"),
            ("ib0", "10.1.0.7"),
            ("ib0", "fd00:1::7"),
        ]
        .map(address)
        .to_vec()
    }

    #[test]
    fn which_addresses_are_said() {
        let check = |interface: Option<&str>, expect: &[&str]| {
            let interface = interface.map(|it| it.parse::<Interface>().unwrap());
            let found = chosen(&host(), interface.as_ref()).unwrap();
            let found: Vec<String> = found.iter().map(IpAddr::to_string).collect();
            assert_eq!(found, expect, "{interface:?}");
        };
        check(
            None,
            &["192.168.3.7", "10.1.0.7", "fd00:1::7", "127.0.0.1", "::1"],
        );
        check(Some("ib0"), &["10.1.0.7", "fd00:1::7"]);
        check(Some("10.0.0.0/8"), &["10.1.0.7"]);
        check(Some("0.0.0.0/0"), &["192.168.3.7", "10.1.0.7", "127.0.0.1"]);
        check(Some("fd00:1::/64"), &["fd00:1::7"]);
        check(Some("192.168.3.7"), &["192.168.3.7"]);
        let none = chosen(&host(), Some(&Interface::Name("ib1".to_owned())));
        let why = none.unwrap_err().to_string();
        assert!(why.contains("10.1.0.7 (ib0)"), "{why}");
    }
}
