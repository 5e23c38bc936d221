//! A live page of a session: what a browser asks, who may ask it, and what it is told.
//!
//! A [`Site`] answers the requests of a connection ([`serve`]): the page's own files, the records of the session as
//! events, and the lines that a person types, which it passes on as [`Deed`]s. A [`Gate`] decides who is let in. [`News`]
//! holds the records until each page has them, and a [`WebView`] makes them of what the session shows.
//!
//! There is no socket here, no thread and no command: the caller brings streams and carries deeds out.

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
pub use site::{Deed, Site};
pub use view::WebView;

/// The decoder of requests under any bytes, and the site behind it: who has no secret gets nothing and does nothing.
///
/// # Panics
/// If somebody without a secret is answered.
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
