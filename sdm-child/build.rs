//! Builds the library with which gdb writes registers that it does not know, and which this crate embeds: see
//! `sdm-xstate`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The source of the library, which cargo also builds as an ordinary library for tests.
const SOURCE: &str = "../sdm-xstate/src";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let library = PathBuf::from(variable("OUT_DIR")).join("xstate.so");
    let is = |name: &str, value: &str| variable(name) == value;
    if !is("CARGO_CFG_TARGET_ARCH", "x86_64") || !is("CARGO_CFG_TARGET_OS", "linux") {
        std::fs::write(&library, "").expect("cargo's folder can be written to");
        return;
    }
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo says which compiler"));
    rustc
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=sdm_xstate",
        ])
        .args(["--cfg=preload", "--target", &variable("TARGET")])
        // The library needs no other library, so that any program can load it, whatever its C library.
        .args([
            "-Cpanic=abort",
            "-Ctarget-feature=-crt-static",
            "-Clink-arg=-nostdlib",
        ])
        .args([
            "-Copt-level=s",
            "-Ccodegen-units=1",
            "-Cstrip=symbols",
            "-Clto=fat",
        ]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={}", linker.display()));
    }
    rustc
        .arg("-o")
        .arg(&library)
        .arg(format!("{SOURCE}/lib.rs"));
    let status = rustc
        .status()
        .expect("the compiler that runs this can be run");
    assert!(
        status.success(),
        "{SOURCE}: the compiler ended with {status}"
    );
}
