//! The page of a session on a login node, by the `ssh -L` line that `sdm` prints.

use std::fs::Permissions;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use sdm_tests::browser::Browser;
use sdm_tests::ordinary;
use sdm_tests::page::BrowserPage;
use sdm_tests::parts::Part;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::until;
use sdm_tests::sdm::{Sdm, command};

use crate::ssh::CONFIG;

const _: () = sdm_tests::run::test_group("hosts", "hosts in namespaces, with one sshd each");

/// A process that is killed when this goes.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn printed_ssh_line_leads_to_a_page_at_a_unix_socket() {
    let Some(_hosts) = Part::hosts() else { return };
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let folder = place.path().join("private");
    std::fs::create_dir(&folder).expect("a folder in the place");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("it is ours");
    ordinary::give(&folder);
    let web = format!("--web=unix:{}", folder.join("page").display());
    let sdm = Sdm::run(&place, 2).args([web]);
    let running = sdm.program(&work, &["steps"]).spawn();
    let line = running.err.wait_line(0, "[web] run on your machine: ");
    let (_, ssh) = line.split_once("ssh -N -L 8080:").expect("the line");
    let (socket, _) = ssh.rsplit_once(' ').expect("the host is last");
    // The line's port may be taken here, and its host is this one.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.expect("a free port").port();
    let mut tunnel = command(&place, "ssh");
    tunnel.args(["-F", CONFIG, "-N", "-L", &format!("{port}:{socket}"), "h1"]);
    tunnel.stdout(Stdio::null()).stderr(Stdio::null());
    let tunnel = Killed(tunnel.spawn().expect("it is installed"));
    until("the tunnel stands", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let line = running.err.wait_line(0, "/enter/");
    let (_, address) = line.rsplit_once(' ').expect("the address is last");
    let address = address.replace(":8080/", &format!(":{port}/"));
    let mut page = BrowserPage::open(&browser, place.path(), &address, (1280, 800));
    page.wait_text("#states", "2 stopped");
    page.line("print rank");
    page.wait_text("#log", "ranks 0-1 (2): 0");
    page.line("quit");
    page.wait_text("#prompt", "ranks started here?");
    page.line("y");
    page.wait_text("#link", "The session is over.");
    assert_eq!(page.complaints, Vec::<String>::new());
    drop(page);
    drop(tunnel);
    let _done = running.finish().code(0);
}
