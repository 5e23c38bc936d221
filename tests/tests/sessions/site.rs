//! Settings of a site for all its users, in the file where `sdm` looks for them.

use std::fs;
use std::process::Command;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

/// Command prefix that makes a mount namespace, in which a test may hide files of the system.
const OWN: [&str; 4] = ["unshare", "--user", "--map-root-user", "--mount"];
/// Shell commands that replace `/etc` by a folder with only the site's settings file in it.
const PLANT: &str = "mount -t tmpfs none /etc; mkdir /etc/sdm; cp \"$SITE\" /etc/sdm/config.toml";

#[test]
fn user_settings_override_site_settings_and_show_origin() {
    let place = Place::new();
    let site = place.path().join("site.toml");
    let own = place.path().join("own.toml");
    let text = "timeout = 70\n[run]\nlauncher = \"nosuch\"\nstart-wait = 50\n";
    fs::write(&site, text).expect("there is room");
    fs::write(&own, "[run]\nlauncher = \"local\"\n").expect("there is room");
    let tried = Command::new(OWN[0])
        .args(&OWN[1..])
        .args(["sh", "-ec", PLANT])
        .env("SITE", &site)
        .output()
        .expect("unshare is there");
    if !tried.status.success() {
        println!("SKIP: this machine lets an ordinary user make no namespaces");
        return;
    }
    let line = format!("{PLANT}; exec \"$0\" \"$@\"");
    let prefix = [&OWN[..], &["sh", "-ec", &line]].concat();
    let sdm = |verb| {
        Sdm::wrapped(&prefix, &place, verb)
            .env("SITE", &site)
            .env("SDM_CONFIG", &own)
            .without("SDM_SITE_CONFIG")
    };
    let done = sdm("settings").args(["run"]).finish().code(0);
    let is_said = |key: &str, value: &str, origin: &str| {
        let row = |it: &&str| it.split_whitespace().any(|word| word == key) && it.contains(value);
        done.out
            .lines()
            .find(row)
            .is_some_and(|it| it.contains(origin))
    };
    assert!(is_said("timeout", "70", "/etc/sdm/config.toml:1"), "{done}");
    assert!(
        is_said("start-wait", "50", "/etc/sdm/config.toml:4"),
        "{done}"
    );
    assert!(is_said("launcher", "local", "own.toml:2"), "{done}");
    // The settings decide the start: with the user's file it is `local`; with the site's file alone it fails, as no
    // launcher has that name.
    let program = place.compile("work", Compiler::C);
    let started = || sdm("run").args(["-n", "2"]).lines(&["print rank"]);
    let done = started().program(&program, &[]).finish().code(0);
    done.expect_part("print rank", "ranks 0-1 (2): 0\n");
    let done = started()
        .env("SDM_CONFIG", "/dev/null")
        .program(&program, &[])
        .finish()
        .code(124);
    assert!(done.err.contains("launcher nosuch: unknown"), "{done}");
}
