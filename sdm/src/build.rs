//! The facts of this build: its version, its commit, and the features that it has.

use sdm_core::frame::WIRE_VERSION;

/// Version and commit, in a line. `scripts/install` notes the commit where the sources are a repository.
pub(crate) fn name() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("SDM_COMMIT") {
        Some(commit) if !commit.is_empty() => format!("{version} (commit {commit})"),
        _ => format!("{version} (commit unknown)"),
    }
}

/// The text of `sdm --version`, without the name of the program.
pub(crate) fn description() -> String {
    let linked = match cfg!(target_feature = "crt-static") {
        true => "linked statically",
        false => "linked with the system's C library",
    };
    let made = match cfg!(debug_assertions) {
        true => "not optimised",
        false => "optimised",
    };
    let pmix = match sdm_system::own_program("sdm-pmix", None) {
        Some(_) => "with PMIx (sdm-pmix)",
        None => "without PMIx (no sdm-pmix beside it)",
    };
    let json = sdm_view::json::VERSION;
    format!(
        "{}\n{}, {linked}, {made}\n{pmix}\nwire version {WIRE_VERSION}, records of --json version {json}",
        name(),
        std::env::consts::ARCH,
    )
}
