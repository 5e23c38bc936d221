//! Tests of the answers to requests with the cookie and without it.

use std::sync::Mutex;

use super::*;
use crate::serve;

/// A site that accepts seven actions, and the list of the actions that were requested.
fn site() -> (Site, Arc<Mutex<Vec<PageAction>>>) {
    let done = Arc::<Mutex<Vec<PageAction>>>::default();
    let deeds = Arc::clone(&done);
    let gate = Gate::draw().unwrap();
    let site = Site::new(gate, Arc::new(News::new()), move |deed| {
        let mut deeds = deeds.lock().unwrap();
        deeds.push(deed);
        deeds.len() < 8
    });
    (site, done)
}

/// The response to a request of the page.
fn ask(site: &Site, what: &str, cookie: &str, body: &str) -> String {
    let length = body.len();
    let head = format!(
        "{what} HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\nCookie: {cookie}\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut response = Vec::new();
    serve(site, (head + body).as_bytes(), &mut response).unwrap();
    String::from_utf8(response).unwrap()
}

fn cookie(response: &str) -> &str {
    let (_, rest) = response.split_once("Set-Cookie: ").unwrap();
    rest.split(';').next().unwrap()
}

#[test]
fn only_a_browser_with_the_cookie_is_served() {
    let (site, done) = site();
    let path = site.gate.path();
    let entered = ask(&site, &format!("GET {path}"), "", "");
    assert!(entered.starts_with("HTTP/1.1 200 OK\r\n"), "{entered}");
    let cookie = cookie(&entered).to_owned();
    let files = FILES.iter().map(|(path, ..)| format!("GET {path}"));
    let deeds = ["/line", "/complete", "/interrupt", "/suspend"].map(|path| format!("POST {path}"));
    let others = ["GET /events", "POST /columns"].map(str::to_owned);
    for what in files.chain(deeds).chain(others) {
        for wrong in ["", "sdm=1", &cookie[..cookie.len() - 1]] {
            let refused = ask(&site, &what, wrong, "bt");
            assert!(refused.starts_with("HTTP/1.1 403 "), "{what}: {refused}");
            assert!(refused.contains("open the newest address"), "{refused}");
        }
        if !what.ends_with("/events") {
            let given = ask(&site, &what, &cookie, "bt");
            assert!(given.starts_with("HTTP/1.1 200 "), "{what}: {given}");
            assert!(given.contains("default-src 'none'; script-src 'self'"));
        }
    }
    // The same address once more.
    let replayed = ask(&site, &format!("GET {path}"), "", "");
    assert!(replayed.starts_with("HTTP/1.1 403 "), "{replayed}");
    assert!(!replayed.contains("Set-Cookie"), "{replayed}");
    let line = PageAction::Line("bt".to_owned());
    let next = site.gate.path();
    assert_ne!(next, path);
    let expect = [
        PageAction::Enter { next },
        line,
        PageAction::Complete("bt".to_owned()),
        PageAction::Interrupt,
        PageAction::Suspend,
    ];
    assert_eq!(*done.lock().unwrap(), expect);
}

#[test]
fn page_sets_the_width_of_its_text_within_bounds() {
    let (site, _) = site();
    let entered = ask(&site, &format!("GET {}", site.gate.path()), "", "");
    let cookie = cookie(&entered);
    assert_eq!(site.news.columns(), 72);
    for (told, columns) in [("96", 96), ("0", 40), ("5000", 400), ("wide", 72)] {
        let given = ask(&site, "POST /columns", cookie, told);
        assert!(given.starts_with("HTTP/1.1 200 "), "{given}");
        assert_eq!(site.news.columns(), columns, "{told}");
    }
}

#[test]
fn web_request_with_wrong_path_method_or_body_is_refused() {
    let (site, _) = site();
    let entered = ask(&site, &format!("GET {}", site.gate.path()), "", "");
    let cookie = cookie(&entered);
    for (what, body, status) in [
        ("GET /nothing", "", "404 "),
        ("GET /../Cargo.toml", "", "404 "),
        ("POST /", "", "405 "),
        ("GET /line", "bt", "405 "),
        ("GET /complete", "bt", "405 "),
        ("GET /columns", "80", "405 "),
        ("POST /complete", "b\n", "400 "),
        ("POST /events", "", "405 "),
        ("POST /line", "bt\nkill", "400 "),
        ("POST /line", "\u{1b}[2J", "400 "),
        ("POST /line", "bt", "200 "),
    ] {
        let response = ask(&site, what, cookie, body);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{what}: {response}"
        );
    }
    let busy = (0..8).map(|_| ask(&site, "POST /line", cookie, "bt"));
    assert!(busy.last().unwrap().starts_with("HTTP/1.1 429 "));
}

#[test]
fn web_page_has_no_inline_script_or_style() {
    for (path, kind, text) in FILES {
        let is_page = *kind == "text/html";
        assert!(
            !is_page || !(text.contains("style=") || text.contains("onclick")),
            "{path}"
        );
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!text.contains(word), "{path} has {word}");
        }
        assert!(
            !text.contains("http://") || text.contains("www.w3.org"),
            "{path}"
        );
        assert!(!text.contains("https://"), "{path}");
    }
}
