//! A live page of a session: the requests of browsers, the check of their permission, and the events that they get.
//!
//! A [`Site`] answers the requests of a connection ([`serve`]). It serves the page's own files, and the session's
//! records as server-sent events. It passes the lines that a user types on as [`PageAction`]s. A [`Gate`] decides which
//! browsers are admitted. [`News`] keeps the newest records for the pages, up to a size limit. A [`WebView`] makes the
//! records from the items that the session shows.
//!
//! This crate opens no socket, starts no thread and runs no command. The caller provides the streams, and carries out
//! the actions.

mod error;
mod gate;
mod news;
mod request;
mod response;
mod serve;
mod site;
mod view;

pub use error::RequestError;
pub use gate::Gate;
pub use news::News;
pub use serve::serve;
pub use site::{FILES, PageAction, Site, is_line};
pub use view::WebView;

/// Feeds arbitrary bytes to the request parser and to a site. A client without a secret gets only errors and causes no
/// action.
///
/// # Panics
/// If a request without a secret causes an action, or has another response than an error.
pub fn fuzz_request(bytes: &[u8]) {
    request::fuzz(bytes);
    let gate = Gate::draw().expect("the kernel has random numbers");
    let site = Site::new(gate, News::new().into(), |deed| {
        panic!("done for a stranger: {deed:?}")
    });
    let mut told = Vec::new();
    serve(&site, bytes, &mut told).expect("slices can be read and written");
    let told = String::from_utf8_lossy(&told);
    let mut heads = told.lines().filter(|line| line.starts_with("HTTP/1.1 "));
    assert!(heads.all(|head| head.starts_with("HTTP/1.1 4")), "{told}");
}
