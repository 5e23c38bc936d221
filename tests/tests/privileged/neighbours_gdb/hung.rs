//! A file server that hangs where a debugger looks for debug information.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use sdm_tests::fixture::{self, Compiler};
use sdm_tests::neighbour::{Neighbour, Who, said};
use sdm_tests::processes::tracer;
use sdm_tests::run::until;

use super::planted::{Running, build};
use super::standing::stripped;

/// A folder of a file server that answers nothing. Drop unmounts it.
struct Hung {
    folder: PathBuf,
    server: Child,
}

impl Hung {
    /// `None` where the kernel has no FUSE; the reason is printed.
    fn mount(users: &Neighbour) -> Option<Self> {
        let folder = users.shared().join(".debug");
        fs::create_dir(&folder).expect("a folder");
        let program = users.home(Who::Root).join("hung_files");
        fixture::compile(Compiler::C, "hung_files", &[], &program);
        let mut server = Command::new(program);
        server.arg(&folder).stdout(Stdio::piped());
        let mut server = server.spawn().expect("it was compiled");
        let mut line = String::new();
        let out = server.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("text");
        if line != "mounted\n" {
            let _ = server.wait();
            println!("SKIP: no FUSE can be mounted here");
            return None;
        }
        Some(Self { folder, server })
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        let mut umount = Command::new("umount");
        let _ = umount.arg("--lazy").arg(&self.folder).status();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Without gdb the process is never stopped, and the look says that no answer came. A gdb is killed in the end.
#[test]
fn hung_file_server_does_not_keep_a_process_stopped() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let program = build(&users, Who::User, "waits", "none.py", "pass");
    let linked = stripped(&users, &program, "linked");
    let running = Running::start(&users, Who::User, &linked);
    let pid = running.pid();
    let number = pid.parse().expect("a pid");
    let Some(hung) = Hung::mount(&users) else {
        return;
    };
    for by in ["none", "gdb"] {
        let mut sdm = users.sdm(Who::User, ["stacks", "--timeout", "2", &pid]);
        if by == "gdb" {
            sdm.args(["--by", "gdb"]);
        }
        let sdm = sdm.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut sdm = sdm.spawn().expect("sdm starts");
        until("it ends", || {
            assert!(by == "gdb" || tracer(number).is_none(), "it is traced");
            sdm.try_wait().expect("a child").is_some()
        });
        let done = sdm.wait_with_output().expect("it has ended");
        assert!(said(&done).contains("no answer in time"), "{}", said(&done));
        assert_eq!(done.status.code(), Some(2));
        until("it is let go", || tracer(number).is_none());
    }
    drop((running, hung));
    users.assert_gone();
}
