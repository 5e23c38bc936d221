//! Names of hosts that the user gives, each with its number of servers: parsing and checks.

use std::str::FromStr;

/// A host, and the maximum number of its servers: `node7` or `node7:4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// Name or address of the host, as `ssh` takes it, also `user@node7`.
    pub host: String,
    /// Maximum number of servers, or of processes if several share a server; `None` for an even share.
    pub slots: Option<u32>,
}

/// Maximum length of a host's name, in bytes: no resolver accepts more.
const NAME_BYTES_MAX: usize = 255;
/// Maximum length of an invalid name that is shown, in characters.
const QUOTED_CHARS_MAX: usize = 64;

/// Checks that a text can be the name or address of a host, whatever its source.
///
/// # Errors
/// The reason for which the text cannot be a host's name or address.
pub(crate) fn check_name(text: &str) -> Result<(), &'static str> {
    let plain = |it: char| it.is_ascii_alphanumeric() || ".-_@:%".contains(it);
    match text {
        _ if text.len() > NAME_BYTES_MAX => Err("the host name is longer than 255 bytes"),
        // The name would be an option of ssh or srun, and such an option can execute commands.
        _ if text.starts_with('-') => Err("a host name cannot begin with a dash"),
        _ if text.is_empty() || !text.chars().all(plain) => Err("not a host name or address"),
        _ => Ok(()),
    }
}

/// A host's name for display. An invalid name is escaped and cut, as by [`quoted`].
pub(crate) fn shown(text: &str) -> String {
    match check_name(text) {
        Ok(()) => text.to_owned(),
        Err(_) => quoted(text),
    }
}

/// The beginning of an untrusted text, escaped for display.
pub(crate) fn quoted(text: &str) -> String {
    let begin: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let dots = if begin.len() < text.len() { "..." } else { "" };
    format!("{begin:?}{dots}")
}

/// A text that is not a valid host or share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostShareError {
    /// The text is not the name or address of a host.
    #[error("host {}: {what}", quoted(text))]
    Name {
        /// The text that did not parse.
        text: String,
        /// The fault of the text.
        what: &'static str,
    },
    /// The text after the colon is not a number of servers.
    #[error("host {text:?}: expected a number from 1 after the colon")]
    Slots {
        /// The text that did not parse.
        text: String,
    },
    /// A word of a line in a host file is not known.
    #[error("host file: unknown word {word:?} after {host}: only slots=N is supported")]
    Word {
        /// The word that is not known.
        word: String,
        /// The host that the line begins with.
        host: String,
    },
}

impl FromStr for HostShare {
    type Err = HostShareError;

    fn from_str(text: &str) -> Result<Self, HostShareError> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|slots| *slots > 0);
        let (host, slots) = match text.rsplit_once(':') {
            // More than one colon is an IPv6 address, unless the address is in brackets.
            Some((host, _)) if host.contains(':') && !host.ends_with(']') => (text, None),
            Some((host, slots)) => {
                let slots = number(slots);
                let wrong = || HostShareError::Slots {
                    text: text.to_owned(),
                };
                (host, Some(slots.ok_or_else(wrong)?))
            }
            None => (text, None),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        if let Err(what) = check_name(host) {
            let text = text.to_owned();
            return Err(HostShareError::Name { text, what });
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
    /// [`HostShareError`] for the first item that is not a host or a share.
    pub fn list(text: &str) -> Result<Vec<Self>, HostShareError> {
        text.split(',').map(str::parse).collect()
    }

    /// The hosts of a host file, one on each line: `node7`, `node7:4` or `node7 slots=4`; `#` begins a comment. The
    /// shares of a host on several lines are added. A line without a number counts 1 then.
    ///
    /// # Errors
    /// [`HostShareError`] for the first line that is not a host with a share.
    pub fn file(text: &str) -> Result<Vec<Self>, HostShareError> {
        let mut hosts: Vec<Self> = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("");
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            let mut share: Self = first.parse()?;
            for word in words {
                let slots = word.strip_prefix("slots=").and_then(|it| it.parse().ok());
                let wrong = || HostShareError::Word {
                    word: word.to_owned(),
                    host: first.to_owned(),
                };
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
    fn host_names_with_slot_counts_are_parsed() {
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
            "(null)",
            &"n".repeat(256),
        ] {
            assert!(wrong.parse::<HostShare>().is_err(), "{wrong:?}");
            assert!(HostShare::file(wrong).is_ok_and(|hosts| hosts.is_empty()) == wrong.is_empty());
        }
        assert!(check_name(&"n".repeat(255)).is_ok());
        let long = check_name(&"n".repeat(256)).unwrap_err();
        assert_eq!(long, "the host name is longer than 255 bytes");
        assert_eq!(
            quoted(&"\x1b\n".repeat(99)),
            format!("\"{}\"...", "\\u{1b}\\n".repeat(32))
        );
        assert_eq!(HostShare::list("a,b:4").unwrap().len(), 2);
        let file = HostShare::file("# mine\na slots=2\nb:1 # two\n\na slots=3\n").unwrap();
        let shares: Vec<_> = file.iter().map(|it| (&*it.host, it.slots)).collect();
        assert_eq!(shares, [("a", Some(5)), ("b", Some(1))]);
        assert!(HostShare::file("a max=2").is_err());
    }
}
