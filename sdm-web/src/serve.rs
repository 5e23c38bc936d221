//! One connection of a browser, from its first request to its end.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::request::Requests;
use crate::response;
use crate::site::{Answer, Site};

/// Time without a record after which an empty comment is sent to a page. The write fails if the page is gone.
const QUIET: Duration = Duration::from_secs(10);

/// Answers a connection's requests until it ends.
///
/// # Errors
/// The connection broke.
pub fn serve(site: &Site, input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut requests = Requests::new(input);
    while let Some(request) = requests.next()? {
        let is_last = request.as_ref().is_ok_and(|request| request.is_last);
        match request.and_then(|request| site.answer(&request)) {
            Ok(Answer::Page {
                kind,
                body,
                cookie,
                status,
            }) => response::write(&mut output, (status, kind), cookie.as_deref(), body)?,
            Ok(Answer::Events(after)) => return tell(site, after, &mut output),
            Err(error) => {
                response::refuse(&mut output, error)?;
                if error.ends_connection() {
                    return Ok(());
                }
            }
        }
        if is_last {
            return Ok(());
        }
    }
    Ok(())
}

/// Sends the session's records to a page as server-sent events, until the page disconnects or the session ends.
fn tell(site: &Site, mut after: u64, output: &mut impl Write) -> io::Result<()> {
    response::begin_events(output)?;
    let _listener = site.listen();
    while let Some((last, text)) = site.news.next(after, QUIET) {
        match text.is_empty() {
            true => output.write_all(b":\n\n")?,
            false => output.write_all(text.as_bytes())?,
        }
        output.flush()?;
        after = last;
    }
    Ok(())
}
