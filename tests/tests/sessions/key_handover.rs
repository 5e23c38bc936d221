//! A launcher passes servers the place of the session's key, never the key itself.

use sdm_session::{KeyHandover, SessionConfig};
use sdm_tests::disturbed::Disturbed;
use sdm_tests::run::{BOUND, Run};
use sdm_tests::secret::{TELLS, Told};

/// Checks that no command line or environment has the key, those of the launcher and its daemons included, and that
/// nothing is left in its place.
fn check(launcher: &str, way: KeyHandover, scheme: &str) {
    let town = Disturbed::new(TELLS);
    let config = SessionConfig {
        launcher: launcher.to_owned(),
        key_handover: way,
        ..town.config(2, BOUND)
    };
    let mut run = Run::start(&config);
    run.start_tasks();
    let told = Told::in_town(&town);
    assert!(told.place.starts_with(scheme), "{}", told.place);
    told.assert_carried_by(&["mpirun", "mpiexec", "prterun"]);
    told.assert_gone();
    run.close();
}

#[test]
fn mpirun_on_one_machine_passes_the_key_by_socket() {
    check("mpirun", KeyHandover::Auto, "unix:///");
}

#[test]
fn mpiexec_on_one_machine_passes_the_key_by_socket() {
    check("mpiexec", KeyHandover::Auto, "unix:///");
}

#[test]
fn key_is_passed_by_a_file_in_a_shared_folder() {
    for launcher in ["mpirun", "mpiexec"] {
        let folder = std::env::temp_dir();
        let scheme = folder.display().to_string();
        check(launcher, KeyHandover::File(Some(folder)), &scheme);
    }
}

#[test]
fn host_without_the_key_file_reports_it() {
    // The file is removed before the server reads it.
    let town = Disturbed::new(
        r#"for word in "$@"; do [ "$before" = --handover ] && rm "$word"; before=$word; done"#,
    );
    let config = SessionConfig {
        launcher: "mpiexec".to_owned(),
        key_handover: KeyHandover::File(Some(std::env::temp_dir())),
        ..town.config(1, BOUND)
    };
    let refused = Run::try_start(&config).map(drop);
    let why = refused.expect_err("a server without a key").to_string();
    for part in [
        "handover from ",
        "No such file",
        "--key-handover file:FOLDER",
    ] {
        assert!(why.contains(part), "{why}");
    }
}
