//! The hosts that a person names.

use std::str::FromStr;

/// A host, and how many servers it may have: `node7` or `node7:4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// Its name or address, as `ssh` takes it; `user@node7` too.
    pub host: String,
    /// How many servers; an even share where absent.
    pub slots: Option<u32>,
}

impl FromStr for HostShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|slots| *slots > 0);
        let (host, slots) = match text.rsplit_once(':') {
            // More than one colon is an IPv6 address, unless it stands in brackets.
            Some((host, _)) if host.contains(':') && !host.ends_with(']') => (text, None),
            Some((host, slots)) => {
                let slots = number(slots);
                let wrong =
                    || format!("host {text:?}: a number from 1 is expected behind the colon");
                (host, Some(slots.ok_or_else(wrong)?))
            }
            None => (text, None),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let plain = |it: char| it.is_ascii_alphanumeric() || ".-_@:%".contains(it);
        // A name that begins with a dash would be an option of ssh.
        if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
            return Err(format!("host {text:?}: no host name or address"));
        }
        Ok(Self {
            host: host.to_owned(),
            slots,
        })
    }
}

impl HostShare {
    /// The hosts of a list with commas in between.
    ///
    /// # Errors
    /// What is no host.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').map(str::parse).collect()
    }

    /// The hosts of a host file: one a line, `node7`, `node7:4` or `node7 slots=4`; `#` begins a
    /// comment. A host that comes again adds to its share.
    ///
    /// # Errors
    /// The first line that is none.
    pub fn file(text: &str) -> Result<Vec<Self>, String> {
        let mut hosts: Vec<Self> = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("");
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            let mut share: Self = first.parse()?;
            for word in words {
                let slots = word.strip_prefix("slots=").and_then(|it| it.parse().ok());
                let wrong = || format!("host file: {word:?} behind {first}: only slots=N is known");
                share.slots = Some(slots.filter(|slots| *slots > 0).ok_or_else(wrong)?);
            }
            match hosts.iter_mut().find(|known| known.host == share.host) {
                Some(known) => {
                    known.slots = Some(known.slots.unwrap_or(1) + share.slots.unwrap_or(1));
                }
                None => hosts.push(share),
            }
        }
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_their_shares() {
        let check = |text: &str, host: &str, slots| {
            let share: HostShare = text.parse().unwrap();
            assert_eq!((&*share.host, share.slots), (host, slots), "{text}");
        };
        check("a", "a", None);
        check("me@node7.x:4", "me@node7.x", Some(4));
        check("10.0.0.1:2", "10.0.0.1", Some(2));
        check("fe80::1", "fe80::1", None);
        check("[fe80::1]:3", "fe80::1", Some(3));
        for wrong in [
            "",
            ":4",
            "a:",
            "a:0",
            "a:x",
            "-oProxyCommand=x",
            "a b",
            "a;b",
        ] {
            assert!(wrong.parse::<HostShare>().is_err(), "{wrong:?}");
        }
        assert_eq!(HostShare::list("a,b:4").unwrap().len(), 2);
        let file = HostShare::file("# mine\na slots=2\nb:1 # two\n\na slots=3\n").unwrap();
        let shares: Vec<_> = file.iter().map(|it| (&*it.host, it.slots)).collect();
        assert_eq!(shares, [("a", Some(5)), ("b", Some(1))]);
        assert!(HostShare::file("a max=2").is_err());
    }
}
