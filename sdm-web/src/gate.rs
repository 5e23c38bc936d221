//! Authentication of browsers by a token or a cookie.
//!
//! The printed address contains a token. The token is valid once: the browser that sends it gets a cookie, and a second
//! use is refused. The cookie's name is unique to this server, and no script can read the cookie.

use std::sync::{Mutex, PoisonError};

use subtle::ConstantTimeEq;

use crate::RequestError;
use crate::request::Request;

/// Number of random bytes in a token, and in a cookie.
const SECRET_BYTES: usize = 24;

/// Admits a browser that sends the current token or the cookie.
pub struct Gate {
    token: Mutex<String>,
    /// The name of the cookie, unique to this server. A browser sends cookies of a host to all its ports.
    cookie_name: String,
    cookie: String,
}

impl Gate {
    /// A gate with new secrets.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self {
            token: Mutex::new(secret()?),
            cookie_name: format!("sdm-{}", &secret()?[..16]),
            cookie: secret()?,
        })
    }

    /// The path of the address that admits one browser.
    #[must_use]
    pub fn path(&self) -> String {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        format!("/enter/{token}")
    }

    /// Checks a token. Replaces a valid one, and returns the `Set-Cookie` value for the browser. Any other token is an
    /// error.
    pub(crate) fn enter(&self, token: &str) -> Result<String, RequestError> {
        let mut good = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_same(&good, token) {
            return Err(RequestError::Stranger);
        }
        // If no new token can be made, no further browser is admitted.
        *good = secret().map_err(|_| RequestError::Stranger)?;
        let (name, value) = (&self.cookie_name, &self.cookie);
        Ok(format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict"))
    }

    /// Checks that the request is addressed to this machine, and that no page of another server has sent it. A link to
    /// the path of [`Gate::path`] may be on any page.
    pub(crate) fn check_sender(request: &Request) -> Result<(), RequestError> {
        let name = match request.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
            _ => &request.host,
        };
        // A foreign host name can resolve to this machine. The port differs behind `ssh -L`.
        if !["127.0.0.1", "localhost", "[::1]"].contains(&name) {
            return Err(RequestError::Host);
        }
        let own = format!("http://{}", request.host);
        let is_foreign = request.origin.as_ref().is_some_and(|it| *it != own);
        // A browser sends the `Origin` header with every request other than GET.
        let is_nameless = request.method != "GET" && request.origin.is_none();
        let site = request.site.as_deref().unwrap_or("same-origin");
        let is_other = match request.path.starts_with("/enter/") {
            // A user can follow a link in a mail to this path.
            true => false,
            false => !["same-origin", "none"].contains(&site),
        };
        match is_foreign || is_nameless || is_other {
            true => Err(RequestError::Origin),
            false => Ok(()),
        }
    }

    /// Checks that the request has the cookie.
    pub(crate) fn check_cookie(&self, request: &Request) -> Result<(), RequestError> {
        let mut cookies = request.cookies.split(';').map(str::trim);
        let knows = cookies.any(|cookie| {
            let value = cookie.strip_prefix(&*self.cookie_name);
            let value = value.and_then(|it| it.strip_prefix('='));
            value.is_some_and(|value| is_same(&self.cookie, value))
        });
        match knows {
            true => Ok(()),
            false => Err(RequestError::Stranger),
        }
    }
}

/// Compares two secrets in constant time, so that the time does not tell where they differ.
fn is_same(good: &str, given: &str) -> bool {
    good.as_bytes().ct_eq(given.as_bytes()).into()
}

fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, host: &str, origin: Option<&str>, site: Option<&str>) -> Request {
        Request {
            method: method.to_owned(),
            path: "/".to_owned(),
            host: host.to_owned(),
            origin: origin.map(str::to_owned),
            site: site.map(str::to_owned),
            ..Request::default()
        }
    }

    #[test]
    fn token_admits_one_browser_and_its_cookie_is_accepted() {
        let gate = Gate::draw().unwrap();
        let path = gate.path();
        let token = path.strip_prefix("/enter/").unwrap();
        assert_eq!(token.len(), 2 * SECRET_BYTES);
        for wrong in ["", &token[1..], &format!("{token}0")] {
            assert_eq!(gate.enter(wrong), Err(RequestError::Stranger));
        }
        let cookie = gate.enter(token).unwrap();
        assert!(cookie.ends_with("HttpOnly; SameSite=Strict"), "{cookie}");
        assert_eq!(gate.enter(token), Err(RequestError::Stranger));
        assert_ne!(gate.path(), path);
        let pair = cookie.split(';').next().unwrap();
        let with = |cookies: &str| {
            let cookies = cookies.to_owned();
            gate.check_cookie(&Request {
                cookies,
                ..Request::default()
            })
        };
        assert_eq!(with(&format!("a=b; {pair};")), Ok(()));
        for wrong in ["", "sdm-x=1;", &pair[..pair.len() - 1]] {
            assert_eq!(with(wrong), Err(RequestError::Stranger));
        }
    }

    #[test]
    fn requests_from_other_hosts_and_pages_are_refused() {
        let own = "http://127.0.0.1:80";
        for (method, host, origin, site, expect) in [
            ("GET", "127.0.0.1:80", None, None, Ok(())),
            ("GET", "localhost:81", None, Some("none"), Ok(())),
            ("GET", "[::1]:80", None, Some("same-origin"), Ok(())),
            (
                "POST",
                "127.0.0.1:80",
                Some(own),
                Some("same-origin"),
                Ok(()),
            ),
            (
                "GET",
                "evil.example:80",
                None,
                None,
                Err(RequestError::Host),
            ),
            ("GET", "127.0.0.1.evil", None, None, Err(RequestError::Host)),
            ("GET", "", None, None, Err(RequestError::Host)),
            (
                "POST",
                "127.0.0.1:80",
                None,
                None,
                Err(RequestError::Origin),
            ),
            (
                "POST",
                "127.0.0.1:80",
                Some("null"),
                None,
                Err(RequestError::Origin),
            ),
            (
                "POST",
                "127.0.0.1:80",
                Some("http://127.0.0.1:81"),
                Some("same-site"),
                Err(RequestError::Origin),
            ),
            (
                "GET",
                "127.0.0.1:80",
                None,
                Some("same-site"),
                Err(RequestError::Origin),
            ),
            (
                "GET",
                "127.0.0.1:80",
                None,
                Some("cross-site"),
                Err(RequestError::Origin),
            ),
        ] {
            let found = Gate::check_sender(&request(method, host, origin, site));
            assert_eq!(found, expect, "{method} {host} {origin:?} {site:?}");
        }
    }
}
