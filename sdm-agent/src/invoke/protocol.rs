//! Parser of the client's requests, the lines of the invoke server protocol ("Ninf-G Invoke Server", Protocol).

/// Maximum length of a line, in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of attributes of a job.
pub const ATTRIBUTES_MAX: usize = 4096;
/// Maximum size of all attributes of a job together, in bytes.
pub const ATTRIBUTE_BYTES_MAX: usize = 4 << 20;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    /// QUERY_FEATURES, of Ninf-G 5.
    QueryFeatures,
    /// JOB_CREATE with all its lines, up to JOB_CREATE_END or JOB_CREATE_DONE.
    Create {
        /// The client's number for the request.
        id: String,
        /// Pairs of name and value, in the order of the lines. A value may be empty.
        attributes: Vec<(String, String)>,
    },
    /// JOB_STATUS of a job.
    Status(String),
    /// JOB_DESTROY of a job.
    Destroy(String),
    /// EXIT.
    Exit,
    /// An invalid request, with its fault.
    Wrong(WrongRequest),
}

/// Fault of a line that is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongRequest {
    /// No request of this name.
    #[error("Unknown Request")]
    Unknown,
    /// A request without its argument.
    #[error("{request}: an argument is missing", request = .0)]
    NoArgument(&'static str),
    /// A line is longer than [`LINE_BYTES_MAX`].
    #[error("the client sent a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// A job has too many attributes, or too many bytes of attributes.
    #[error(
        "the job has more than {ATTRIBUTES_MAX} attributes, or more than {ATTRIBUTE_BYTES_MAX} bytes of attributes"
    )]
    TooMany,
    /// A line is not UTF-8, or has a zero byte.
    #[error("the client sent a line that is not UTF-8, or contains a zero byte")]
    NoText,
}

/// Decodes requests from bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Number of bytes at the front that are known to have no line end.
    searched: usize,
    /// True while the rest of a line that is too long is skipped.
    skips: bool,
    creating: Option<Creating>,
}

/// A JOB_CREATE that has not ended yet.
#[derive(Debug, Default)]
struct Creating {
    id: String,
    attributes: Vec<(String, String)>,
    bytes: usize,
    wrong: Option<WrongRequest>,
}

impl Decoder {
    /// Appends bytes of the client.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next request; `None` until its last line has arrived.
    pub fn poll(&mut self) -> Option<ClientRequest> {
        loop {
            let end = self.bytes[self.searched..]
                .iter()
                .position(|it| *it == b'\n');
            let Some(end) = end else {
                self.searched = self.bytes.len();
                if self.bytes.len() > LINE_BYTES_MAX {
                    self.skips = true;
                    self.bytes.clear();
                    self.searched = 0;
                }
                return None;
            };
            let rest = self.bytes.split_off(self.searched + end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            self.searched = 0;
            let is_long = std::mem::take(&mut self.skips) || line.len() > LINE_BYTES_MAX;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = match std::str::from_utf8(line) {
                _ if is_long => Err(WrongRequest::TooLong),
                Ok(text) if !text.contains('\0') => Ok(text),
                _ => Err(WrongRequest::NoText),
            };
            if let Some(request) = self.take(text) {
                return Some(request);
            }
        }
    }

    fn take(&mut self, line: Result<&str, WrongRequest>) -> Option<ClientRequest> {
        let Some(creating) = &mut self.creating else {
            return match line {
                Ok(line) => self.begin(line),
                Err(wrong) => Some(ClientRequest::Wrong(wrong)),
            };
        };
        let line = match line {
            Ok(line) => line,
            Err(wrong) => {
                creating.wrong.get_or_insert(wrong);
                return None;
            }
        };
        // The document calls the last line once so, once otherwise.
        if ["JOB_CREATE_END", "JOB_CREATE_DONE"].contains(&line.trim_end()) {
            let Creating {
                id,
                attributes,
                wrong,
                ..
            } = self.creating.take().unwrap_or_default();
            return Some(match wrong {
                Some(wrong) => ClientRequest::Wrong(wrong),
                None => ClientRequest::Create { id, attributes },
            });
        }
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        creating.bytes += line.len();
        if creating.attributes.len() >= ATTRIBUTES_MAX || creating.bytes > ATTRIBUTE_BYTES_MAX {
            creating.wrong.get_or_insert(WrongRequest::TooMany);
            creating.attributes.clear();
        } else if !name.is_empty() {
            creating
                .attributes
                .push((name.to_owned(), value.to_owned()));
        }
        None
    }

    /// Parses the first line of a request. Returns `None` if more lines of the request follow, or the line is empty.
    fn begin(&mut self, line: &str) -> Option<ClientRequest> {
        let mut words = line.split_ascii_whitespace();
        let word = words.next()?;
        let argument = words.next().map(str::to_owned);
        let needed = |name, make: fn(String) -> ClientRequest| match argument.clone() {
            Some(argument) => make(argument),
            None => ClientRequest::Wrong(WrongRequest::NoArgument(name)),
        };
        Some(match word {
            "QUERY_FEATURES" => ClientRequest::QueryFeatures,
            "JOB_CREATE" => {
                let wrong = argument
                    .is_none()
                    .then_some(WrongRequest::NoArgument("JOB_CREATE"));
                let id = argument.unwrap_or_default();
                self.creating = Some(Creating {
                    id,
                    wrong,
                    ..Creating::default()
                });
                return None;
            }
            "JOB_STATUS" => needed("JOB_STATUS", ClientRequest::Status),
            "JOB_DESTROY" => needed("JOB_DESTROY", ClientRequest::Destroy),
            "EXIT" => ClientRequest::Exit,
            _ => ClientRequest::Wrong(WrongRequest::Unknown),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], cut: usize) -> Vec<ClientRequest> {
        let mut decoder = Decoder::default();
        let mut requests = Vec::new();
        for part in bytes.chunks(cut) {
            decoder.push(part);
            requests.extend(std::iter::from_fn(|| decoder.poll()));
        }
        requests
    }

    #[test]
    fn requests_are_parsed_at_any_chunk_size() {
        let text = b"QUERY_FEATURES\r\n\r\nJOB_CREATE 1\r\nhostname h\r\nflag\r\nargument --a=b  c \r\nJOB_CREATE_END\r\n\
            JOB_STATUS J1\nJOB_DESTROY J1\r\nJOB_DESTROY\r\nEXIT\r\nNONSENSE x\r\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = vec![
            ClientRequest::QueryFeatures,
            ClientRequest::Create {
                id: "1".to_owned(),
                attributes: vec![
                    pair("hostname", "h"),
                    pair("flag", ""),
                    pair("argument", "--a=b  c "),
                ],
            },
            ClientRequest::Status("J1".to_owned()),
            ClientRequest::Destroy("J1".to_owned()),
            ClientRequest::Wrong(WrongRequest::NoArgument("JOB_DESTROY")),
            ClientRequest::Exit,
            ClientRequest::Wrong(WrongRequest::Unknown),
        ];
        for cut in [1, 3, 7, text.len()] {
            assert_eq!(all(text, cut), expected, "{cut}");
        }
    }

    #[test]
    fn oversized_request_is_refused_once_and_next_is_read() {
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        let text = format!("{long}\r\nEXIT\r\n");
        let expected = [
            ClientRequest::Wrong(WrongRequest::TooLong),
            ClientRequest::Exit,
        ];
        assert_eq!(all(text.as_bytes(), 1000), expected);
        let many = "argument a\r\n".repeat(2 * ATTRIBUTES_MAX);
        let text = format!("JOB_CREATE 1\r\n{many}JOB_CREATE_END\r\nEXIT\r\n");
        let expected = [
            ClientRequest::Wrong(WrongRequest::TooMany),
            ClientRequest::Exit,
        ];
        assert_eq!(all(text.as_bytes(), 4096), expected);
        let text = b"JOB_CREATE 1\r\na \xff\r\nJOB_CREATE_END\r\nJOB_CREATE\r\nJOB_CREATE_END\r\n";
        let expected = [
            ClientRequest::Wrong(WrongRequest::NoText),
            ClientRequest::Wrong(WrongRequest::NoArgument("JOB_CREATE")),
        ];
        assert_eq!(all(text, 5), expected);
    }
}
