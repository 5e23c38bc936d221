//! What only sockets in the file system have: a file, its mode, and its end.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnectionString, Transport};

fn fresh(name: &str) -> (PathBuf, ConnectionString) {
    let path = std::env::temp_dir().join(format!("sdm-unix-{}-{name}", std::process::id()));
    let address = ConnectionString::try_from(path.clone()).expect("a path");
    (path, address)
}

#[test]
fn the_file_is_the_users_alone_and_goes_with_the_listener() {
    let (path, address) = fresh("mode");
    let mut transport = TcpTransport::new().expect("an event loop");
    assert_eq!(transport.listen(&address, 1).expect("listen"), address);
    let mode = std::fs::metadata(&path).expect("the socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    transport.stop_listening();
    assert!(!path.exists());
}

#[test]
fn what_a_dead_listener_left_is_replaced_and_nothing_else() {
    let (path, address) = fresh("dead");
    drop(UnixListener::bind(&path).expect("bind"));
    assert!(path.exists(), "nobody has tidied up");
    let mut transport = TcpTransport::new().expect("an event loop");
    transport.listen(&address, 1).expect("replaced");
    drop(transport);

    std::fs::write(&path, "precious").expect("write");
    let mut transport = TcpTransport::new().expect("an event loop");
    let error = transport.listen(&address, 1).expect_err("not ours");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "precious");
    std::fs::remove_file(&path).expect("remove");
}
