//! Tunnels through a real ssh to a real sshd of our own.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent};
use sdm_tests::run::BOUND;

/// An sshd with keys of its own, and an `ssh` on the path that uses them.
struct Server {
    sshd: Child,
    folder: PathBuf,
}

impl Server {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("sdm-ssh-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("mode");
        // sshd refuses to start without it; only root may make it, and only root's sshd needs it.
        let _ = fs::create_dir("/run/sshd");
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.join(name))
                .status();
            assert!(made.expect("ssh-keygen").success());
        }
        fs::rename(folder.join("user.pub"), folder.join("allowed")).expect("rename");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let file = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\n\
             StrictModes no\nUsePAM no\nPidFile none\nLogLevel INFO\nPermitRootLogin yes\n",
            file("host"),
            file("allowed"),
        );
        fs::write(folder.join("sshd_config"), config).expect("write");
        let config = format!(
            "Host *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n",
            file("user"),
        );
        fs::write(folder.join("ssh_config"), config).expect("write");
        let sshd = listen(&folder);
        Self { sshd, folder }
    }

    /// Puts an `ssh` first on `PATH` that runs the real ssh with the test's configuration.
    fn put_on_path(&self) {
        let script = format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n",
            self.folder.join("ssh_config").display()
        );
        let file = self.folder.join("ssh");
        fs::write(&file, script).expect("write");
        fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("mode");
    }
}

/// Starts sshd and waits until it reports that it listens.
fn listen(folder: &Path) -> Child {
    let mut sshd = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f"])
        .arg(folder.join("sshd_config"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sshd");
    let stderr = sshd.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines();
    let listens = lines.any(|line| line.expect("text").contains("Server listening"));
    assert!(listens, "sshd said no more");
    // sshd prints more lines, and must not block on them.
    std::thread::spawn(move || lines.for_each(drop));
    sshd
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Polls both transports until `find` returns a value for an event of either.
fn until<T>(
    transports: [&mut TcpTransport; 2],
    mut find: impl FnMut(&TransportEvent) -> Option<T>,
) -> T {
    let end = Instant::now() + BOUND;
    let [a, b] = transports;
    loop {
        assert!(Instant::now() < end, "nothing happened");
        let mut events = Vec::new();
        a.poll(Some(Duration::from_millis(5)), &mut events)
            .expect("poll");
        b.poll(Some(Duration::ZERO), &mut events).expect("poll");
        if let Some(found) = events.iter().find_map(&mut find) {
            return found;
        }
    }
}

/// All bytes until the stream's end or error.
fn read_to_end(transport: &mut TcpTransport, conn: ConnId) -> (Vec<u8>, Option<String>) {
    let end = Instant::now() + BOUND;
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match transport.recv(conn, &mut buffer) {
            Ok(0) => return (all, None),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                assert!(Instant::now() < end, "no end in sight");
                let moment = Some(Duration::from_millis(50));
                transport.poll(moment, &mut Vec::new()).expect("poll");
            }
            Err(error) => return (all, Some(error.to_string())),
        }
    }
}

#[test]
fn tunnel_forwards_bytes_and_reports_its_failure() {
    let server = Server::start();
    server.put_on_path();
    let path = std::env::var("PATH").unwrap_or_default();
    // This is the only test of its process, and no other thread reads the environment yet.
    #[allow(unsafe_code)]
    // SAFETY: nobody else reads or writes the environment now.
    unsafe {
        std::env::set_var("PATH", format!("{}:{path}", server.folder.display()));
    }
    let mut here = TcpTransport::new().expect("an event loop");
    here.set_ssh(sdm_system::files::search("ssh").expect("the one on PATH"));
    let mut there = TcpTransport::new().expect("an event loop");
    let local = ConnectionString::tcp("127.0.0.1", 0).expect("an address");
    let at = there.listen(&local, 1).expect("listen");
    let through = ConnectionString::ssh("node1", at.port()).expect("an address");
    assert!(here.listen(&through, 1).is_err(), "nobody listens at ssh");

    let conn = here.connect(&through);
    assert_eq!(here.send(conn, b"hello").expect("sent"), 5);
    let peer = until([&mut here, &mut there], |event| match event {
        TransportEvent::Accepted { conn, .. } => Some(*conn),
        _ => None,
    });
    there.send(peer, b"bye").expect("send");
    let mut got = [0; 16];
    let mut len = 0;
    while len < 5 {
        match there.recv(peer, &mut got[len..]) {
            Ok(count) => len += count,
            Err(_) => until([&mut here, &mut there], |event| {
                matches!(event, TransportEvent::Readable(c) if *c == peer).then_some(())
            }),
        }
    }
    assert_eq!(&got[..len], b"hello");
    there.close(peer);
    let (bytes, _) = read_to_end(&mut here, conn);
    assert_eq!(bytes, b"bye");
    here.close(conn);

    // No listener is left: the error is ssh's own message.
    there.stop_listening();
    let conn = here.connect(&through);
    let (bytes, error) = read_to_end(&mut here, conn);
    assert!(bytes.is_empty());
    let error = error.expect("ssh fails");
    assert!(error.contains(&through.to_string()), "{error}");
    assert!(error.contains("refused"), "{error}");
}
