//! Makes the library find this program's `listen` and `accept` before the C library's: see `src/host/guard.rs`.

/// Environment variable that is set where the linker cannot export single symbols by name (zig's, in
/// `scripts/release-pmix`). Then all symbols are exported.
const EXPORTS_ALL: &str = "SDM_PMIX_EXPORTS_ALL";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={EXPORTS_ALL}");
    let exported = match std::env::var_os(EXPORTS_ALL) {
        Some(_) => "-rdynamic",
        None => "-Wl,--export-dynamic-symbol=listen,--export-dynamic-symbol=accept",
    };
    println!("cargo::rustc-link-arg-bins={exported}");
}
