//! Self-description of the command: settings, completions, manual pages.

use std::fs;
use std::process::Command;

use sdm_tests::binaries;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

#[test]
fn settings_reach_a_session_and_show_their_origin() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let file = place.path().join("config.toml");
    let text = "timeout = 20\n[run]\nprocesses = 3\nlauncher = \"local\"\n";
    fs::write(&file, text).expect("there is room");
    let done = Sdm::new(&place, "run")
        .env("SDM_CONFIG", &file)
        .lines(&["ranks"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("ranks", "ranks 0-2 (3)");
    let done = Sdm::new(&place, "settings")
        .env("SDM_CONFIG", &file)
        .env("SDM_TIMEOUT", "25")
        .args(["run"])
        .finish()
        .code(0);
    for (key, place) in [
        ("processes          3 ", "config.toml:3"),
        ("timeout            25 ", "SDM_TIMEOUT"),
        ("topology           by-host ", "default"),
    ] {
        let line = done.out.lines().find(|line| line.trim().starts_with(key));
        assert!(
            line.is_some_and(|line| line.ends_with(place)),
            "{key}: {done}"
        );
    }
    fs::write(&file, "[run]\nprocesses = 0\n").expect("there is room");
    let done = Sdm::new(&place, "run")
        .env("SDM_CONFIG", &file)
        .program(&program, &[]);
    let done = done.finish().code(2);
    assert!(
        done.err
            .contains("config.toml:2: processes: invalid value '0'"),
        "{done}"
    );
    let done = Sdm::new(&place, "--help").env("SDM_CONFIG", &file).finish();
    let _done = done.code(0);
}

#[test]
fn completions_and_manual_pages_cover_commands_and_options() {
    let place = Place::new();
    let done = Sdm::new(&place, "completions")
        .args(["bash"])
        .finish()
        .code(0);
    let script = place.path().join("sdm.bash");
    fs::write(&script, &done.out).expect("there is room");
    let line = "source ./sdm.bash; COMP_WORDS=(sdm run --hang); COMP_CWORD=2; _clap_complete_sdm sdm --hang run; \
                echo ${COMPREPLY[@]}";
    let path = std::env::var("PATH").expect("a path");
    let bash = Command::new("bash")
        .current_dir(place.path())
        .env("PATH", format!("{}:{path}", binaries::folder().display()))
        .args(["-c", line])
        .output();
    let bash = bash.expect("bash runs");
    let said = String::from_utf8_lossy(&bash.stdout);
    assert_eq!(
        said.trim(),
        "--hang-timeout",
        "{}",
        String::from_utf8_lossy(&bash.stderr)
    );
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let done = Sdm::new(&place, "completions")
            .args([shell])
            .finish()
            .code(0);
        assert!(done.out.contains("COMPLETE"), "{shell}");
    }
    let _done = Sdm::new(&place, "man")
        .args(["pages/man1"])
        .finish()
        .code(0);
    let page = |name: &str| fs::read_to_string(place.path().join("pages/man1").join(name));
    assert!(
        page("sdm-run.1")
            .expect("it is written")
            .contains("hang\\-timeout")
    );
    let verbs = Command::new(binaries::folder().join("sdm"))
        .arg("--help")
        .output();
    let help = String::from_utf8_lossy(&verbs.expect("it runs").stdout).into_owned();
    let words = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = words
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut count = 0;
    for verb in verbs
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
    {
        assert!(page(&format!("sdm-{verb}.1")).is_ok(), "{verb}");
        count += 1;
    }
    assert!(count >= 10, "{help}");
}
