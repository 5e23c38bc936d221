//! Access to the page of a session by a private file, from a page of another origin, and at a folder of others.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use sdm_tests::browser::Browser;
use sdm_tests::ordinary;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;

use super::web::{SIZE, quit};

/// Serves a page at another port of this host, which is the same site to a browser: it sends the cookie of the session
/// along. Returns the address.
fn serve_foreign(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let page = page.clone();
            // A browser also connects without a request.
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let length = page.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
                );
                let _ = stream.write_all((head + &page).as_bytes());
            });
        }
    });
    format!("http://{address}/")
}

/// Has the browser, which has the cookie, visit a foreign page that tries to read the session and to give it a line.
fn check_foreign_page(page: &mut BrowserPage, session: &str) {
    page.line("print 1234");
    page.wait_text("#log", "ranks 0-1 (2): 1234");
    let attack = include_str!("web_foreign.html").replace("SESSION", session);
    page.go(&serve_foreign(attack));
    let got = page.wait("document.title.startsWith('tried') && document.title");
    assert_eq!(got, "tried; got:");
    // The browser itself gets the session again, which nobody has given a line.
    page.go(&format!("{session}/"));
    page.wait_text("#log", "ranks 0-1 (2): 1234");
    page.line("print 5678");
    page.wait_text("#log", "ranks 0-1 (2): 5678");
    let log = page.value("document.querySelector('#log').textContent");
    assert!(!log.as_str().expect("text").contains("4711"), "{log}");
    // The browser notes each refusal.
    assert!(!page.complaints.is_empty());
    page.complaints.clear();
}

#[test]
fn browser_opens_a_private_file_and_foreign_pages_get_nothing() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    // In place of the desktop's: it notes who may read the file, and keeps it for a browser without a screen.
    let keep = "stat -c %a \"$1\" > mode && echo \"$@\" > arguments && cp \"$1\" copy && mv copy page.html";
    script(place.path(), "xdg-open", keep);
    let path = format!("{}:/usr/bin:/bin", place.path().display());
    let program = place.compile("work", Compiler::C);
    let sdm = Sdm::run(&place, 2).args(["--web", "--browser"]);
    let running = sdm.env("PATH", path).program(&program, &["steps"]).spawn();
    let file = place.path().join("page.html");
    until("a browser is started", || file.exists());
    let read =
        |name: &str| std::fs::read_to_string(place.path().join(name)).expect("it was noted first");
    assert_eq!(read("mode"), "600\n");
    let kept = read("page.html");
    let (_, address) = kept.split_once("url=").expect("it leads on");
    let (address, _) = address.split_once('"').expect("it is quoted");
    let (session, token) = address.split_once("/enter/").expect("an address");
    assert!(!read("arguments").contains(token));
    let leads = format!("file://{}", file.display());
    let mut page = BrowserPage::open(&browser, place.path(), &leads, SIZE);
    page.wait_text("#states", "2 stopped");
    check_foreign_page(&mut page, session);
    // The token is used up, also in the browser that has used it.
    page.go(address);
    let refusal =
        "document.body.innerText.includes('open the newest address that sdm has printed')";
    page.wait(refusal);
    page.go(&format!("{session}/"));
    page.wait_text("#states", "2 stopped");
    page.complaints.clear();
    quit(running, page);
}

#[test]
fn socket_in_a_folder_of_others_is_refused_by_its_name() {
    let place = Place::new();
    let folder = place.path().join("open");
    std::fs::create_dir(&folder).expect("a folder in the place");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
    ordinary::give(&folder);
    let web = format!("--web=unix:{}", folder.join("page").display());
    let done = Sdm::run(&place, 1).args([web]);
    let program = place.compile("work", Compiler::C);
    let done = done.program(&program, &[]).finish().code(124);
    let said = format!(
        "--web: {} is accessible to other users: restrict it (chmod 700)",
        folder.display()
    );
    assert!(done.err.contains(&said), "{done}");
}
