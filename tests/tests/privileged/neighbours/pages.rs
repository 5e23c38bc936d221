//! Pages of a session for a browser: another user of the machine gets nothing of them, whatever that user knows.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use sdm_tests::neighbour::{Neighbour, Who};
use sdm_tests::run::BOUND;

/// A client in three lines: `HOST:PORT` or a path, and the request.
const CLIENT: &str = "import socket, sys
where, request = sys.argv[1:3]
it = socket.socket(socket.AF_UNIX if '/' in where else socket.AF_INET)
it.settimeout(60)
try:
    it.connect(where if '/' in where else (where.split(':')[0], int(where.split(':')[1])))
    it.sendall(request.encode())
    while part := it.recv(65536):
        sys.stdout.write(part.decode())
except (ConnectionError, PermissionError) as error:
    sys.stdout.write(type(error).__name__)
";

/// A session with a page, of the user.
struct Served<'a> {
    neighbour: &'a Neighbour,
    child: Child,
    /// Lines of its standard error.
    told: Receiver<String>,
    /// The lines of its standard error that were taken so far.
    lines: Vec<String>,
}

impl<'a> Served<'a> {
    fn start(neighbour: &'a Neighbour, web: &str) -> Self {
        let mut command = neighbour.sdm(Who::User, ["emulate", "-n", "3", web]);
        command.env("SDM_LOG", "trace").stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let told = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let told = told.lines().map_while(Result::ok);
            told.into_iter().all(|line| sender.send(line).is_ok());
        });
        Self {
            neighbour,
            child,
            told: receiver,
            lines: Vec::new(),
        }
    }

    /// The next line that holds this.
    fn wait_line(&mut self, part: &str) -> String {
        loop {
            let line = self.told.recv_timeout(BOUND);
            let line = line.unwrap_or_else(|_| panic!("no {part:?} in {:#?}", self.lines));
            self.lines.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits for a line with `before` and an address; returns the secret of the address.
    fn token(&mut self, before: &str) -> String {
        let line = self.wait_line(before);
        let (_, token) = line.rsplit_once("/enter/").expect("an address");
        token.to_owned()
    }

    /// Sends a request as a user: the response.
    fn ask(&self, who: Who, place: &str, request: &str) -> String {
        let mut command: Command = self.neighbour.command(who, "python3");
        let output = command.args(["-c", CLIENT, place, request]).output();
        let output = output.expect("python3 is there");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Ends the session by requests of the page, and checks that only the line with an address has a secret.
    fn finish(mut self, place: &str, host: &str, (cookie, secrets): (&str, &[&str])) {
        for line in ["quit", "y"] {
            let length = line.len();
            let request = format!(
                "POST /line HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{line}"
            );
            let answer = self.ask(Who::User, place, &request);
            // The session ends by the second line, before its answer or after it.
            let is_answered = answer.starts_with("HTTP/1.1 200 OK\r\n");
            assert!(is_answered || line == "y", "{answer}");
        }
        assert!(self.child.wait().expect("it is a child").success());
        self.lines.extend(self.told.iter());
        for secret in secrets {
            // The line that tells the address is for the user alone; the log has nothing of it.
            let holding = self.lines.iter().filter(|line| line.contains(secret));
            let holding: Vec<_> = holding.collect();
            let is_told = |line: &&&String| line.starts_with("[web] ");
            assert!(
                holding.len() <= 1 && holding.iter().all(|it| is_told(&it)),
                "{holding:?}"
            );
        }
        assert!(self.lines.len() > 50, "it logs: {:#?}", self.lines);
        self.neighbour.assert_gone();
    }
}

fn enter(host: &str, token: &str) -> String {
    format!("GET /enter/{token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Checks that no process has the secret in its command line or environment.
fn assert_on_no_command_line(secret: &str) {
    let holds = |name: &str, entry: &fs::DirEntry| {
        let text = fs::read(entry.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(secret)
    };
    let processes = fs::read_dir("/proc").expect("there is one").flatten();
    for process in processes {
        for file in ["cmdline", "environ"] {
            assert!(!holds(file, &process), "{:?} {file}", process.path());
        }
    }
}

/// The cookie that a response gives.
fn cookie_of(answer: &str) -> String {
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (_, cookie) = answer.split_once("Set-Cookie: ").expect("a cookie");
    cookie.split(';').next().expect("a pair").to_owned()
}

#[test]
fn neighbour_with_token_and_cookie_gets_no_page() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let mut served = Served::start(&neighbour, "--web");
    let line = served.wait_line("/enter/");
    let address = line
        .strip_prefix("[web] open http://")
        .expect("it is first");
    let (host, token) = address.split_once("/enter/").expect("an address");
    assert_on_no_command_line(token);
    let told = "[web] a client was disconnected: the connection belongs to user 65533, but this process runs as user 65534";
    // The token that was stolen lets nobody else in, and is not used up by that.
    let stolen = served.ask(Who::Neighbour, host, &enter(host, token));
    assert!(!stolen.contains("HTTP"), "{stolen}");
    let reported = served.wait_line("a client was disconnected");
    assert_eq!(reported, told);
    let cookie = cookie_of(&served.ask(Who::User, host, &enter(host, token)));
    let next = served.token("[web] address for another browser: ");
    let page =
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
    let stolen = served.ask(Who::Neighbour, host, &page);
    assert!(!stolen.contains("HTTP"), "{stolen}");
    let own = served.ask(Who::User, host, &page);
    assert!(own.starts_with("HTTP/1.1 200 OK\r\n"), "{own}");
    let (_, value) = cookie.split_once('=').expect("a pair");
    served.finish(host, host, (&cookie, &[token, &next, value]));
}

#[test]
fn page_socket_refuses_other_users_by_mode_and_by_peer() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    // Where others can put files no socket is made.
    let open = neighbour.shared().join("page");
    let mut refused = neighbour.sdm(Who::User, ["emulate", "-n", "1"]);
    let refused = refused.arg(format!("--web=unix:{}", open.display()));
    let refused = refused.output().expect("it starts");
    assert_eq!(refused.status.code(), Some(124), "{refused:?}");
    assert!(!open.exists());
    let folder = neighbour.home(Who::User).join("pages");
    let socket = folder.join("page");
    let place = socket.to_str().expect("a plain name").to_owned();
    let mut served = Served::start(&neighbour, &format!("--web=unix:{place}"));
    let line = served.wait_line("ssh -N -L");
    let wanted = format!("[web] run on your machine: ssh -N -L 8080:{place} ");
    assert!(line.starts_with(&wanted), "{line}");
    let host = "127.0.0.1:8080";
    let token = served.token(&format!("[web] then open http://{host}"));
    assert_on_no_command_line(&token);
    let request = enter(host, &token);
    assert_eq!(
        served.ask(Who::Neighbour, &place, &request),
        "PermissionError"
    );
    // Whoever opens all modes by mistake has still the kernel's word for who connects.
    for path in [neighbour.home(Who::User), folder.clone(), socket.clone()] {
        fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("root may");
    }
    let stolen = served.ask(Who::Neighbour, &place, &request);
    assert!(!stolen.contains("HTTP"), "{stolen}");
    let reported = served.wait_line("a client was disconnected");
    let wanted = "of user 65533, but this process runs as user 65534";
    assert!(reported.ends_with(wanted), "{reported}");
    let cookie = cookie_of(&served.ask(Who::User, &place, &request));
    let (_, value) = cookie.split_once('=').expect("a pair");
    served.finish(&place, host, (&cookie, &[&token, value]));
    let left: Vec<_> = fs::read_dir(&folder).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
}
