//! The report of a host about itself (`sdm-server --doctor`): one finding, version or address per line, and the end.

use std::net::SocketAddr;

use sdm_text::printable;

use crate::Finding;

/// Prefix of the lines that are not findings.
const MARK: &str = "sdm-doctor-";

/// One line of a host's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportLine {
    /// The version of SDM on the host.
    Version {
        /// The version of SDM.
        version: String,
        /// The version of the members' wire protocol.
        wire: u8,
    },
    /// Connections are accepted at this address until the reporter's input ends.
    Listens(SocketAddr),
    /// A finding.
    Found(Finding),
    /// The end of the report.
    End,
}

impl ReportLine {
    /// The line of the report, without a newline.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Version { version, wire } => format!("{MARK}version\t{version}\t{wire}"),
            Self::Listens(address) => format!("{MARK}listens\t{address}"),
            Self::Found(finding) => finding.line(),
            Self::End => format!("{MARK}end"),
        }
    }

    /// Parses a line; `None` if it is another program's, or of a newer version.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        let line = line.trim_end();
        let Some(rest) = line.strip_prefix(MARK) else {
            return Finding::of_line(line).map(Self::Found);
        };
        let mut fields = rest.split('\t');
        match (fields.next()?, fields.next(), fields.next()) {
            ("version", Some(version), Some(wire)) => Some(Self::Version {
                version: printable(version.as_bytes()),
                wire: wire.parse().ok()?,
            }),
            ("listens", Some(address), None) => Some(Self::Listens(address.parse().ok()?)),
            ("end", None, None) => Some(Self::End),
            _ => None,
        }
    }
}

/// Feeds arbitrary bytes to the parser of reports: a parsed line can be written and parsed again.
pub fn fuzz_told(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        if let Some(told) = ReportLine::of_line(line) {
            let again = ReportLine::of_line(&told.line());
            assert!(again.is_some(), "{line:?} is read, and {told:?} is not");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Check;

    #[test]
    fn doctor_report_line_of_a_remote_host_is_parsed_back() {
        let version = "1.2.3".to_owned();
        for told in [
            ReportLine::Version { version, wire: 7 },
            ReportLine::Listens("10.1.2.3:7000".parse().unwrap()),
            ReportLine::Listens("[fe80::1]:7000".parse().unwrap()),
            ReportLine::Found(Finding::good(Check::Gdb, "gdb 13.1")),
            ReportLine::End,
        ] {
            assert_eq!(ReportLine::of_line(&told.line()), Some(told));
        }
        for line in [
            "Last login: Mon",
            "sdm-doctor-",
            "sdm-doctor-moon\tfull",
            "sdm-doctor-listens\there",
        ] {
            assert_eq!(ReportLine::of_line(line), None, "{line}");
        }
    }
}
