//! The line that a rank's process prints on its stdout once a server of its host has accepted it.
//!
//! ```text
//! SDM1 rank=5 server=4 pid=1234\n
//! ```
//!
//! As with an [announcement](crate::announce), a launcher may put a tag in front of it.

use std::fmt;

use sdm_core::ids::ServerId;

/// Prefix of every such line.
const JOINED_MAGIC: &str = "SDM1 rank=";

/// A rank that a server has accepted, with its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The rank, at most [`ServerId::SERVER_MAX`].
    pub rank: u32,
    /// The server's number, at most [`ServerId::SERVER_MAX`].
    pub server: u32,
    /// The pid of the rank's process, never 0.
    pub pid: u32,
}

impl Joined {
    /// Finds the line of a joined rank at the end of `line`. Returns the text before it, and the rank. `None` if there
    /// is none, or if a number is malformed.
    #[must_use]
    pub fn find(line: &str) -> Option<(&str, Self)> {
        let at = line.rfind(JOINED_MAGIC)?;
        let (before, text) = line.split_at(at);
        let text = text
            .trim_end_matches(['\r', '\n'])
            .strip_prefix(JOINED_MAGIC)?;
        let (rank, rest) = text.split_once(" server=")?;
        let (server, pid) = rest.split_once(" pid=")?;
        let [rank, server, pid] = [rank, server, pid].map(number);
        let (rank, server, pid) = (rank?, server?, pid?);
        let max = ServerId::SERVER_MAX.0;
        let is_one = rank <= max && server <= max && pid > 0;
        is_one.then_some((before, Self { rank, server, pid }))
    }
}

/// Parses decimal digits; `None` for any other text, or a number above 32 bits.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, server, pid } = self;
        write!(f, "{JOINED_MAGIC}{rank} server={server} pid={pid}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_joined_server_line_is_parsed_back() {
        let joined = Joined {
            rank: 5,
            server: 4,
            pid: 77,
        };
        let line = joined.to_string();
        assert_eq!(line, "SDM1 rank=5 server=4 pid=77");
        let tagged = format!("[1,5]<stdout>:{line}\r\n");
        assert_eq!(Joined::find(&tagged), Some(("[1,5]<stdout>:", joined)));
        for none in [
            "",
            "SDM1 rank=5",
            "SDM1 rank=5 server=4 pid=0",
            "SDM1 rank=+5 server=4 pid=7",
            "SDM1 rank=5 server=4294967295 pid=7",
            "SDM1 rank=5 server=4 pid=7 more",
        ] {
            assert_eq!(Joined::find(none), None, "{none}");
        }
    }
}
