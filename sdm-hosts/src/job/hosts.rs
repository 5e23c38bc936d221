//! Recognition of this machine's names, and of two names of one host.

use std::net::{IpAddr, ToSocketAddrs};

/// True if a host's name means this machine: its own name, with or without a domain, a loopback
/// name, or an address of one of its interfaces. An empty name means it too.
#[must_use]
pub fn is_this_host(name: &str) -> bool {
    if name.is_empty() || name == "localhost" {
        return true;
    }
    let own = nix::unistd::gethostname().unwrap_or_default();
    if is_same(name, &own.to_string_lossy()) {
        return true;
    }
    resolve(name).iter().any(is_own)
}

/// True if `name` is a name of the host that calls itself `host` and has these
/// addresses.
#[must_use]
pub fn is_host(name: &str, host: &str, addresses: &[IpAddr]) -> bool {
    // Every host has a loopback address.
    let here = is_this_host(host) || addresses.iter().all(IpAddr::is_loopback);
    is_same(name, host)
        || (here && is_this_host(name))
        || resolve(name)
            .iter()
            .any(|address| !address.is_loopback() && addresses.contains(address))
}

fn resolve(name: &str) -> Vec<IpAddr> {
    match name.parse() {
        Ok(address) => vec![address],
        Err(_) => (name, 0)
            .to_socket_addrs()
            .map(|found| found.map(|it| it.ip()).collect())
            .unwrap_or_default(),
    }
}

/// True if two names mean the same host, judged by the names alone: equal apart from case, and from a domain that only
/// one of them has.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    let short = |name: &str| {
        // The part after the first dot of an address is no domain.
        let is_address = name.parse::<IpAddr>().is_ok();
        let first = name.split('.').next().unwrap_or(name);
        if is_address { name } else { first }.to_ascii_lowercase()
    };
    let bare = |name: &str| name.contains('.');
    // Two full names must be equal; a short one matches any domain.
    if bare(a) && bare(b) {
        return a.eq_ignore_ascii_case(b);
    }
    short(a) == short(b)
}

fn is_own(address: &IpAddr) -> bool {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    address.is_loopback()
        || interfaces
            .filter_map(|interface| interface.address)
            .any(|own| {
                let v4 = own.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
                let v6 = own.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip()));
                v4.or(v6) == Some(*address)
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_host_names_are_recognized() {
        let own = nix::unistd::gethostname().unwrap();
        let own = own.to_string_lossy();
        for name in ["", "localhost", "127.0.0.1", "127.3.2.1", "::1", &*own] {
            assert!(is_this_host(name), "{name}");
        }
        for name in ["192.0.2.1", "no-such-host.invalid"] {
            assert!(!is_this_host(name), "{name}");
        }
    }

    #[test]
    fn host_names_are_compared_by_short_form() {
        for (a, b, expect) in [
            ("n1", "n1", true),
            ("n1", "N1.cluster", true),
            ("n1.a", "n1.b", false),
            ("n1", "n2", false),
            ("10.0.0.1", "10.0.0.2", false),
            ("10", "10.0.0.2", false),
        ] {
            assert_eq!(is_same(a, b), expect, "{a} {b}");
        }
    }
}
