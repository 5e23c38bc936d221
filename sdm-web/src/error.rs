//! Requests that are not answered.

use thiserror::Error;

/// Why a request is not understood or not carried out; the browser is told it.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
pub enum RequestError {
    /// The bytes are no request of HTTP/1.1.
    #[error("the request is not valid HTTP/1.1")]
    Malformed,
    /// More bytes than a request of the page ever has.
    #[error("the request is too long")]
    TooLong,
    /// The name in the address is not this machine's.
    #[error("the host of the address must be 127.0.0.1 or localhost")]
    Host,
    /// Another page has sent it.
    #[error("requests of pages from other servers are refused")]
    Origin,
    /// Neither a cookie nor a token that is good.
    #[error("open the newest address that sdm has printed: each can be used once")]
    Stranger,
    /// There is nothing of that name.
    #[error("there is no such page")]
    NoPage,
    /// The page asks for this in another way.
    #[error("this address expects another HTTP method")]
    Method,
    /// A line holds what nobody types.
    #[error("a command must be one line of text without control characters")]
    Line,
    /// The session has not taken the lines before it.
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

    /// True where what follows on the connection cannot be told from this request.
    pub(crate) fn ends_connection(self) -> bool {
        matches!(self, Self::Malformed | Self::TooLong)
    }
}
