//! A server's announcement: one line on its stdout with its identity and address.
//!
//! ```text
//! SDM1 server=3 host=node7 port=40311 pid=1234 addresses=10.0.0.7,127.0.0.1\n
//! ```
//!
//! Or a refusal, if it cannot start:
//!
//! ```text
//! SDM1 failed=3 why=listen at tcp://[::]:7000: everything up to ... is in use\n
//! ```
//!
//! A launcher that forwards stdout may put a tag in front of the line (`[1,3]<stdout>:`), end it with `\r\n`, or append
//! it to an unfinished line of another process. The line is only a hint: the handshake of the link authenticates the
//! listener.

use std::fmt;
use std::net::IpAddr;

use sdm_core::ids::ServerId;
use sdm_core::limits::ADDRESSES_MAX;
use thiserror::Error;

use crate::joined::Joined;

/// Prefix of every announcement; the digit is the version of the format.
pub const ANNOUNCEMENT_MAGIC: &str = "SDM1 server=";
/// Prefix of every refusal.
pub const REFUSAL_MAGIC: &str = "SDM1 failed=";
/// Maximum length of the reason of a refusal, in bytes.
pub const REASON_BYTES_MAX: usize = 1024;
/// Maximum length of an announcement without its line end, in bytes. It is below `PIPE_BUF`, so one write of an
/// announcement is atomic.
pub const ANNOUNCEMENT_BYTES_MAX: usize = 2048;
/// Maximum length of a host name, in bytes.
pub const HOST_BYTES_MAX: usize = 255;

/// The identity and address of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// The server's number, at most [`ServerId::SERVER_MAX`].
    pub server: u32,
    /// The host name: letters, digits, `.`, `-` and `_`, 1 to [`HOST_BYTES_MAX`] bytes.
    pub host: String,
    /// TCP port on which the server listens; 0 if the server does not listen, but connects to its parent.
    pub port: u16,
    /// The pid of the server, never 0.
    pub pid: u32,
    /// The addresses at which the port can be reached, best first, 1 to [`ADDRESSES_MAX`] of them.
    pub addresses: Vec<IpAddr>,
}

/// A server that could not start or was killed, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The server's number, at most [`ServerId::SERVER_MAX`].
    pub server: u32,
    /// The reason in one line, at most [`REASON_BYTES_MAX`] bytes.
    pub why: String,
}

impl Refusal {
    /// A refusal with this reason, shortened and put on one line.
    #[must_use]
    pub fn new(server: u32, why: &str) -> Self {
        let why: String = why
            .chars()
            .map(|it| if it.is_control() { ' ' } else { it })
            .collect();
        let end = (0..=REASON_BYTES_MAX.min(why.len()))
            .rev()
            .find(|at| why.is_char_boundary(*at));
        let why = why[..end.unwrap_or(0)].trim().to_owned();
        Self { server, why }
    }

    /// Finds a refusal at the end of `line`; `None` if there is none, or if its number is malformed.
    #[must_use]
    pub fn find(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(REFUSAL_MAGIC)?;
        let (server, why) = rest.split_once(" why=")?;
        let server = number(server, "server number").ok()?;
        let server = u32::try_from(server)
            .ok()
            .filter(|it| *it <= ServerId::SERVER_MAX.0)?;
        Some(Self::new(server, why))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{REFUSAL_MAGIC}{} why={}", self.server, self.why)
    }
}

/// The error for an announcement that violates the format.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("invalid announcement: {what}: {text:?}")]
pub struct AnnouncementError {
    /// The fault of the text.
    pub what: String,
    /// The invalid text, cut to a printable length.
    pub text: String,
}

impl AnnouncementError {
    fn new(what: impl Into<String>, text: &str) -> Self {
        Self {
            what: what.into(),
            text: text.chars().take(80).collect(),
        }
    }
}

impl Announcement {
    /// The announcement as a line, without a line end.
    ///
    /// # Errors
    /// A field is out of its range. So [`Self::find`] accepts every line that this function returns.
    pub fn to_line(&self) -> Result<String, AnnouncementError> {
        let line = self.to_string();
        check_length(&line)?;
        match parse_exact(&line) {
            Ok(same) if same == *self => Ok(line),
            Ok(_) => Err(AnnouncementError::new(
                "the announcement, decoded again, has other values",
                &line,
            )),
            Err(error) => Err(error),
        }
    }

    /// Finds an announcement at the end of `line`. Returns the text before it, and the announcement. The text is a
    /// launcher's tag, and mostly empty. `Ok(None)` if the line has no announcement.
    ///
    /// # Errors
    /// The line contains the start of an announcement, but the announcement is malformed.
    pub fn find(line: &str) -> Result<Option<(&str, Self)>, AnnouncementError> {
        let Some(at) = line.rfind(ANNOUNCEMENT_MAGIC) else {
            return Ok(None);
        };
        let (before, text) = line.split_at(at);
        let text = text.trim_end_matches(['\r', '\n']);
        check_length(text)?;
        Ok(Some((before, parse_exact(text)?)))
    }
}

impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{ANNOUNCEMENT_MAGIC}{} host={} port={} pid={} addresses=",
            self.server, self.host, self.port, self.pid
        )?;
        for (index, address) in self.addresses.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{address}")?;
        }
        Ok(())
    }
}

fn check_length(text: &str) -> Result<(), AnnouncementError> {
    if text.len() > ANNOUNCEMENT_BYTES_MAX {
        return Err(AnnouncementError::new(
            "the announcement is longer than 2048 bytes",
            text,
        ));
    }
    Ok(())
}

fn parse_exact(text: &str) -> Result<Announcement, AnnouncementError> {
    let rest = text
        .strip_prefix(ANNOUNCEMENT_MAGIC)
        .ok_or_else(|| AnnouncementError::new("the line is not an announcement of sdm", text))?;
    let mut words = rest.split(' ');
    let server = number(words.next().unwrap_or_default(), "server number")?;
    let max = ServerId::SERVER_MAX.0;
    let server = u32::try_from(server)
        .ok()
        .filter(|it| *it <= max)
        .ok_or_else(|| AnnouncementError::new(format!("the server number is above {max}"), rest))?;
    let host = field(words.next(), "host=", text)?;
    let port = number(field(words.next(), "port=", text)?, "port")?;
    let pid = number(field(words.next(), "pid=", text)?, "pid")?;
    let addresses = field(words.next(), "addresses=", text)?;
    if let Some(word) = words.next() {
        return Err(AnnouncementError::new(
            "the announcement has words after its last field",
            word,
        ));
    }
    let max = u16::MAX;
    let port = u16::try_from(port)
        .map_err(|_| AnnouncementError::new(format!("the port is above {max}"), rest))?;
    let max = u32::MAX;
    let pid = u32::try_from(pid)
        .ok()
        .filter(|&pid| pid != 0)
        .ok_or_else(|| AnnouncementError::new(format!("the pid is 0 or above {max}"), rest))?;
    Ok(Announcement {
        server,
        host: parse_host(host)?,
        port,
        pid,
        addresses: parse_addresses(addresses)?,
    })
}

fn field<'a>(
    word: Option<&'a str>,
    name: &'static str,
    text: &str,
) -> Result<&'a str, AnnouncementError> {
    word.and_then(|word| word.strip_prefix(name))
        .ok_or_else(|| {
            AnnouncementError::new(
                "the announcement lacks a field, or its fields are in another order",
                text,
            )
        })
}

/// Parses decimal digits: no sign, no leading zero, at most ten digits. `what` names the number in the error.
fn number(text: &str, what: &'static str) -> Result<u64, AnnouncementError> {
    let digits = !text.is_empty() && text.len() <= 10 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return Err(AnnouncementError::new(what, text));
    }
    text.parse().map_err(|_| AnnouncementError::new(what, text))
}

fn parse_host(text: &str) -> Result<String, AnnouncementError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    if text.is_empty() || text.len() > HOST_BYTES_MAX || !text.bytes().all(allowed) {
        return Err(AnnouncementError::new("host name", text));
    }
    Ok(text.to_owned())
}

fn parse_addresses(text: &str) -> Result<Vec<IpAddr>, AnnouncementError> {
    let mut addresses = Vec::new();
    for word in text.split(',') {
        if addresses.len() == ADDRESSES_MAX {
            return Err(AnnouncementError::new(
                "the announcement has more than 16 addresses",
                text,
            ));
        }
        let address = word
            .parse()
            .map_err(|_| AnnouncementError::new("address", word))?;
        addresses.push(address);
    }
    Ok(addresses)
}

/// Feeds arbitrary text to the parsers of announcements. Checks that none panics, and that a parsed announcement
/// survives formatting and parsing.
///
/// # Panics
/// If a parser panics, or a parsed announcement does not survive.
pub fn fuzz_words(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(Some((before, found))) = Announcement::find(&text) {
        assert!(text.starts_with(before));
        let line = found.to_line().expect("what was read can be said");
        assert_eq!(Announcement::find(&line), Ok(Some(("", found))));
    }
    if let Some(found) = Refusal::find(&text) {
        assert!(found.why.len() <= REASON_BYTES_MAX && !found.why.contains('\n'));
        assert_eq!(Refusal::find(&found.to_string()), Some(found));
    }
    if let Some((before, found)) = Joined::find(&text) {
        assert!(text.starts_with(before));
        assert_eq!(Joined::find(&found.to_string()), Some(("", found)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refusal_line_is_parsed_back() {
        let refusal = Refusal::new(7, "listen at x:\nin use\t");
        let line = refusal.to_string();
        assert_eq!(line, "SDM1 failed=7 why=listen at x: in use");
        assert_eq!(
            Refusal::find(&format!("[1,7]<stdout>:{line}\r\n")),
            Some(refusal)
        );
        let long = Refusal::new(1, &"é".repeat(REASON_BYTES_MAX));
        assert_eq!(long.why.len(), REASON_BYTES_MAX);
        for none in [
            "",
            "SDM1 failed=",
            "SDM1 failed=x why=y",
            "SDM1 failed=4294967295 why=",
            "SDM1 server=3",
        ] {
            assert_eq!(Refusal::find(none), None, "{none}");
        }
    }

    fn example() -> Announcement {
        Announcement {
            server: 3,
            host: "node7".into(),
            port: 40311,
            pid: 1234,
            addresses: vec!["10.0.0.7".parse().unwrap(), "::1".parse().unwrap()],
        }
    }

    const LINE: &str = "SDM1 server=3 host=node7 port=40311 pid=1234 addresses=10.0.0.7,::1";

    #[test]
    fn announcement_line_has_documented_form() {
        assert_eq!(example().to_line().unwrap(), LINE);
    }

    #[test]
    fn launcher_tags_and_line_ends_are_skipped() {
        for before in ["", "[1,3]<stdout>:", "[3] ", "half a line"] {
            for after in ["", "\n", "\r\n", "\r"] {
                let line = format!("{before}{LINE}{after}");
                assert_eq!(
                    Announcement::find(&line),
                    Ok(Some((before, example()))),
                    "{line:?}"
                );
            }
        }
    }

    #[test]
    fn other_lines_contain_no_announcement() {
        for line in [
            "",
            "hello",
            "SDM1",
            "SDM1 servers",
            "SDM2 server=3",
            "server=3",
        ] {
            assert_eq!(Announcement::find(line), Ok(None), "{line:?}");
        }
    }

    #[test]
    fn broken_announcements_are_errors() {
        let check = |from: &str, to: &str| {
            let line = LINE.replacen(from, to, 1);
            assert_ne!(line, LINE, "{from:?} is not in the line");
            assert!(Announcement::find(&line).is_err(), "{line:?}");
        };
        check("server=3", "server=");
        check("server=3", "server=-3");
        check("server=3", "server=03");
        check("server=3", "server=4294967295");
        check("server=3", "server=4294967296");
        check("server=3", "server=99999999999999999999");
        check("host=node7", "host=");
        check("host=node7", "host=a/b");
        check("host=node7 ", "");
        check(" host", "  host");
        check("port=40311", "port=65536");
        check("pid=1234", "pid=0");
        check("pid=1234", "pod=1234");
        check("10.0.0.7", "10.0.0");
        check("10.0.0.7,", ",");
        check("::1", "::1 more");
        check("::1", &["::1"; 16].join(","));
        check("node7", &"n".repeat(256));
        check("::1", &" ".repeat(ANNOUNCEMENT_BYTES_MAX));
    }

    #[test]
    fn unparsable_announcement_is_not_printed() {
        let mut bad = example();
        bad.host = "a b".into();
        assert!(bad.to_line().is_err());
        let mut bad = example();
        bad.addresses.clear();
        assert!(bad.to_line().is_err());
        let mut bad = example();
        bad.server = u32::MAX;
        assert!(bad.to_line().is_err());
    }

    proptest! {
        #[test]
        fn announcement_parser_never_panics(text in any::<String>(), tail in any::<String>()) {
            let _ = Announcement::find(&text);
            let _ = Announcement::find(&format!("{ANNOUNCEMENT_MAGIC}{text}"));
            let _ = Announcement::find(&format!("{LINE}{tail}"));
        }

        #[test]
        fn printed_announcement_is_parsed_back(
            server in 0..=ServerId::SERVER_MAX.0,
            host in "[a-zA-Z0-9._-]{1,255}",
            port: u16,
            pid in 1u32..,
            addresses in proptest::collection::vec(any::<IpAddr>(), 1..=ADDRESSES_MAX),
        ) {
            let it = Announcement { server, host, port, pid, addresses };
            let line = it.to_line().unwrap();
            prop_assert_eq!(Announcement::find(&line), Ok(Some(("", it))));
        }
    }
}
