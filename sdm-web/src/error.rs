//! Reasons for which the server refuses a request of a browser.

use thiserror::Error;

/// The reason why a request is not understood or not carried out. The browser gets it as the text of the response.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
pub enum RequestError {
    /// The bytes are no request of HTTP/1.1.
    #[error("the request is not valid HTTP/1.1")]
    Malformed,
    /// The request is longer than any request of the page.
    #[error("the request is too long")]
    TooLong,
    /// The `Host` header names another host than this machine's loopback.
    #[error("the host of the address must be 127.0.0.1 or localhost")]
    Host,
    /// A page of another server has sent the request.
    #[error("requests of pages from other servers are refused")]
    Origin,
    /// The request has neither a valid token nor the cookie.
    #[error("open the newest address that sdm has printed: each can be used once")]
    Stranger,
    /// The site has neither a file nor an action at this path.
    #[error("there is no such page")]
    NoPage,
    /// The path needs another HTTP method.
    #[error("this address expects another HTTP method")]
    Method,
    /// The line contains control characters, or is not UTF-8.
    #[error("a command must be one line of text without control characters")]
    Line,
    /// Too many earlier lines wait for the session.
    #[error("too many commands wait to be executed: try again when they are done")]
    Busy,
}

impl RequestError {
    /// The status of the response.
    pub(crate) fn status(self) -> &'static str {
        match self {
            Self::Malformed | Self::Line => "400 Bad Request",
            Self::TooLong => "413 Content Too Large",
            Self::Host => "421 Misdirected Request",
            Self::Origin | Self::Stranger => "403 Forbidden",
            Self::NoPage => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::Busy => "429 Too Many Requests",
        }
    }

    /// True if the end of the request is unknown, so that no further request can be read from the connection.
    pub(crate) fn ends_connection(self) -> bool {
        matches!(self, Self::Malformed | Self::TooLong)
    }
}
