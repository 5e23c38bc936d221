//! The site: the files of the page, its events, and the actions that the page can request.

use std::sync::Arc;

use crate::gate::Gate;
use crate::news::{COLUMNS, Listener, News};
use crate::request::Request;
use crate::{RequestError, response};

/// The page's own files: path, media type and content.
pub const FILES: &[(&str, &str, &str)] = &[
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
    ("/flame.js", SCRIPT, include_str!("../page/flame.js")),
    ("/values.js", SCRIPT, include_str!("../page/values.js")),
    ("/arrays.js", SCRIPT, include_str!("../page/arrays.js")),
    ("/source.js", SCRIPT, include_str!("../page/source.js")),
    ("/tabs.js", SCRIPT, include_str!("../page/tabs.js")),
];
const SCRIPT: &str = "text/javascript";

/// The page after a token was accepted, which loads `/` by itself. With an HTTP redirect, the browser would not send
/// the new cookie if a link on another page has led here.
const ENTERED: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta http-equiv=\"refresh\" content=\"0;url=/\"><title>sdm</title><p><a href=\"/\">The session</a></p></html>";

/// An action that a page asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum PageAction {
    /// Carry out this line, as if it was typed at the prompt.
    Line(String),
    /// Find the words that can complete this partly typed line, as Tab does.
    Complete(String),
    /// Interrupt, as Ctrl-C does.
    Interrupt,
    /// Stop waiting for the current command, as Ctrl-Z does.
    Suspend,
    /// A browser was admitted. The address that it used is no longer valid.
    Enter {
        /// The path of the address that admits the next browser.
        next: String,
    },
    /// A page has begun to listen.
    Listen,
}

/// The web server of the page, without its socket: answers requests of admitted browsers.
pub struct Site {
    gate: Gate,
    pub(crate) news: Arc<News>,
    /// Carries out an action of a page. Returns false if too many actions wait.
    deeds: Box<dyn Fn(PageAction) -> bool + Send + Sync>,
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A complete response: a file of the page, or the result of an action.
    Page {
        status: &'static str,
        kind: &'static str,
        body: &'static str,
        cookie: Option<String>,
    },
    /// The records after this number, and all later ones, as server-sent events.
    Events(u64),
}

impl Site {
    /// A site with this gate and these records. `deeds` carries out the actions of pages, and returns false if too many
    /// wait.
    pub fn new(
        gate: Gate,
        news: Arc<News>,
        deeds: impl Fn(PageAction) -> bool + Send + Sync + 'static,
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
            (self.deeds)(PageAction::Enter { next });
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
            "/line" => PageAction::Line(line(&request.body)?),
            "/complete" => PageAction::Complete(line(&request.body)?),
            "/interrupt" => PageAction::Interrupt,
            "/suspend" => PageAction::Suspend,
            "/columns" => {
                check_method(request, "POST")?;
                let columns = line(&request.body)?.parse().unwrap_or(COLUMNS);
                self.news.set_columns(columns);
                return Ok(page("text/plain", "", None));
            }
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
        (self.deeds)(PageAction::Listen);
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

/// The line in the body of a request. Text with control characters other than tabs is refused.
fn line(body: &[u8]) -> Result<String, RequestError> {
    match std::str::from_utf8(body) {
        Ok(text) if is_line(text) => Ok(text.to_owned()),
        _ => Err(RequestError::Line),
    }
}

/// True for a text without control characters other than tabs.
#[must_use]
pub fn is_line(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\t')
}

#[cfg(test)]
mod tests;
