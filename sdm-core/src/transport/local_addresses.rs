//! Addresses of this host that other hosts may use.

use std::net::{IpAddr, Ipv4Addr};

use super::Interface;
use crate::limits::ADDRESSES_MAX;

/// An address of this host, and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    interface: String,
    ip: IpAddr,
}

/// This host has no address in the selected interfaces.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("--interface matches no address of this host; it has {has}")]
pub struct NoAddress {
    has: String,
}

/// The addresses of this host that others may use, best first; loopback is last: it serves those on the same
/// host.
///
/// # Errors
/// This host has no address in `interface`.
pub fn own_addresses(interface: Option<&Interface>) -> Result<Vec<IpAddr>, NoAddress> {
    chosen(&all(), interface)
}

fn chosen(own: &[Address], interface: Option<&Interface>) -> Result<Vec<IpAddr>, NoAddress> {
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
    let own = own.iter().map(|it| format!("{} ({})", it.ip, it.interface));
    let has = own.collect::<Vec<_>>().join(", ");
    Err(NoAddress { has })
}

/// The addresses of all interfaces, without IPv6 link-local ones, which mean another host on each link.
fn all() -> Vec<Address> {
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
    fn announced_addresses_follow_the_interface_setting() {
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
