//! Has the library find this program's `accept` before the C library's: see `src/host/guard.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=accept");
}
