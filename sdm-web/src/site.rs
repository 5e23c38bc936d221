//! The site: the page's files, its events, and what it can have done.

use std::sync::Arc;

use crate::gate::Gate;
use crate::news::{Listener, News};
use crate::request::Request;
use crate::{RequestError, response};

/// The page's own files: where, what they are, and their text.
const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html", include_str!("../page/index.html")),
    ("/page.css", "text/css", include_str!("../page/page.css")),
    (
        "/icon.svg",
        "image/svg+xml",
        include_str!("../page/icon.svg"),
    ),
    ("/main.js", SCRIPT, include_str!("../page/main.js")),
    ("/link.js", SCRIPT, include_str!("../page/link.js")),
    ("/dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("/sets.js", SCRIPT, include_str!("../page/sets.js")),
    ("/console.js", SCRIPT, include_str!("../page/console.js")),
    ("/tree.js", SCRIPT, include_str!("../page/tree.js")),
    ("/map.js", SCRIPT, include_str!("../page/map.js")),
    ("/waits.js", SCRIPT, include_str!("../page/waits.js")),
    ("/values.js", SCRIPT, include_str!("../page/values.js")),
    ("/source.js", SCRIPT, include_str!("../page/source.js")),
    ("/tabs.js", SCRIPT, include_str!("../page/tabs.js")),
];
const SCRIPT: &str = "text/javascript";

/// Leads on to the page: a request that another page has led here would not bring the cookie.
const ENTERED: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta http-equiv=\"refresh\" content=\"0;url=/\"><title>sdm</title><p><a href=\"/\">The session</a></p></html>";

/// An action that a page asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Deed {
    /// A line as at the prompt.
    Line(String),
    /// As by Ctrl-C.
    Interrupt,
    /// The command that is under way is not waited for: Ctrl-Z.
    Suspend,
    /// A browser was let in: the address that it used is worth nothing any more.
    Enter {
        /// The path of the address that lets in the next one.
        next: String,
    },
    /// A page has begun to listen.
    Listen,
}

/// Answers requests.
pub struct Site {
    gate: Gate,
    pub(crate) news: Arc<News>,
    /// False where there are too many of them.
    deeds: Box<dyn Fn(Deed) -> bool + Send + Sync>,
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A text.
    Page {
        status: &'static str,
        kind: &'static str,
        body: &'static str,
        cookie: Option<String>,
    },
    /// The events behind this one, and those to come.
    Events(u64),
}

impl Site {
    /// One that lets in by this gate, tells these news and has deeds done by `deeds`, which is false where there are too
    /// many.
    pub fn new(
        gate: Gate,
        news: Arc<News>,
        deeds: impl Fn(Deed) -> bool + Send + Sync + 'static,
    ) -> Self {
        let deeds = Box::new(deeds);
        Self { gate, news, deeds }
    }

    pub(crate) fn answer(&self, request: &Request) -> Result<Answer, RequestError> {
        Gate::check_sender(request)?;
        if let Some(token) = request.path.strip_prefix("/enter/") {
            check_method(request, "GET")?;
            let cookie = self.gate.enter(token)?;
            let next = self.gate.path();
            (self.deeds)(Deed::Enter { next });
            return Ok(page("text/html", ENTERED, Some(cookie)));
        }
        self.gate.check_cookie(request)?;
        let file = FILES.iter().find(|(path, ..)| *path == request.path);
        if let Some((_, kind, body)) = file {
            check_method(request, "GET")?;
            return Ok(page(kind, body, None));
        }
        let deed = match &*request.path {
            "/events" => {
                check_method(request, "GET")?;
                return Ok(Answer::Events(request.last_event.unwrap_or(0)));
            }
            "/line" => Deed::Line(line(&request.body)?),
            "/interrupt" => Deed::Interrupt,
            "/suspend" => Deed::Suspend,
            _ => return Err(RequestError::NoPage),
        };
        check_method(request, "POST")?;
        match (self.deeds)(deed) {
            true => Ok(page("text/plain", "", None)),
            false => Err(RequestError::Busy),
        }
    }

    pub(crate) fn listen(&self) -> Listener {
        let listener = self.news.listen();
        (self.deeds)(Deed::Listen);
        listener
    }
}

fn page(kind: &'static str, body: &'static str, cookie: Option<String>) -> Answer {
    Answer::Page {
        status: response::OK,
        kind,
        body,
        cookie,
    }
}

fn check_method(request: &Request, method: &str) -> Result<(), RequestError> {
    match request.method == method {
        true => Ok(()),
        false => Err(RequestError::Method),
    }
}

/// A line of a person: what a terminal would not pass on as text is none.
fn line(body: &[u8]) -> Result<String, RequestError> {
    let text = std::str::from_utf8(body).map_err(|_| RequestError::Line)?;
    match text.chars().any(|c| c.is_control() && c != '\t') {
        true => Err(RequestError::Line),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
