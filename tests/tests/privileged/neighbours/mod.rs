//! Files planted by another user of the machine are not executed, loaded or followed, and their owner is named.

mod files;
mod folders;
mod jobs;
mod pages;
mod sockets;

use std::path::PathBuf;
use std::process::Command;

use sdm_tests::neighbour::{Neighbour, Who};

/// Compiles a C program for a user.
fn compile(neighbour: &Neighbour, who: Who, name: &str, text: &str, options: &[&str]) -> PathBuf {
    let source = neighbour.plant(Who::Root, format!("{name}.c"), 0o644, text);
    let program = source.with_extension("out");
    let mut compiler = Command::new("cc");
    compiler.arg("-o").arg(&program).arg(source).args(options);
    let status = compiler.status().expect("a compiler");
    assert!(status.success(), "{name}");
    neighbour.plant_copy(who, name, 0o755, program)
}

#[test]
fn each_test_user_can_run_scripts() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("works");
    let script = neighbour.plant(Who::Neighbour, "bin/script", 0o755, marker.script());
    marker.assert_absent("nothing yet");
    for who in [Who::Root, Who::User, Who::Neighbour] {
        let status = neighbour.command(who, &script).status();
        assert!(status.expect("all can execute it").success(), "{who:?}");
    }
    marker.assert_left("a script");
    let said = std::fs::read_to_string(marker.path()).expect("marks");
    assert_eq!(said, "0\n65534\n65533\n");
    // Homes but the neighbour's are closed, and the binaries are not.
    let own = neighbour.plant(Who::User, "own", 0o644, "");
    let read = |who, path| neighbour.command(who, "cat").arg(path).output();
    assert!(!read(Who::Neighbour, &own).expect("cat").status.success());
    assert!(read(Who::User, &own).expect("cat").status.success());
    let version = neighbour.sdm(Who::User, ["--version"]).output();
    assert!(version.expect("sdm runs").status.success());
    neighbour.assert_gone();
}
