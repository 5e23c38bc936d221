//! The binaries under test.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The folder with `sdm`, `sdm-master`, `sdm-server`, `sdm-pmix`, `sdm-agent` and `sdm-rm` of this build, and with
/// `examples`. Builds them first, but not under `cargo nextest`: there `scripts/test` has built them.
///
/// # Panics
/// If they cannot be built.
pub fn folder() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("tests live in a deps folder")
        .to_owned();
    if std::env::var_os("NEXTEST").is_some() {
        let all = [
            "sdm",
            "sdm-master",
            "sdm-server",
            "sdm-pmix",
            "sdm-agent",
            "sdm-rm",
        ];
        let missing = all.iter().find(|name| !folder.join(name).is_file());
        assert_eq!(missing, None, "run `cargo build --workspace --bins` first");
        return folder;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--quiet",
        "--bins",
        "--examples",
        "-p",
        "sdm-session",
        "-p",
        "sdm",
        "-p",
        "sdm-master",
        "-p",
        "sdm-server",
        "-p",
        "sdm-foreign",
        "-p",
        "sdm-agent",
        "-p",
        "sdm-rm",
        "-p",
        "sdm-fake",
        "-p",
        "sdm-runtime",
    ]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    // The variables that cargo sets for a test of its package would make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let of_package = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_CRATE_",
            "CARGO_BIN_",
        ];
        if of_package.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "the binaries under test do not build");
    folder
}
