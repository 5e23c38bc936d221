//! Folders that one happens to be in: what lies there under the name of a tool or a module is not that.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};

use sdm_tests::neighbour::{Neighbour, Outcome, Who};

/// What is looked up by name.
const TOOLS: &[&str] = &[
    "gdb",
    "ssh",
    "mpirun",
    "mpirun.openmpi",
    "mpiexec",
    "mpiexec.hydra",
    "srun",
    "sdm-launch-site",
    "sdm-master",
    "sdm-pmix",
    "sdm-server",
];

fn sleeper(neighbour: &Neighbour) -> Child {
    let mut command = neighbour.command(Who::User, "/bin/sleep");
    command.arg("1000").spawn().expect("it starts")
}

/// `sdm ARGS` of the user's, in a folder of the neighbour's.
fn there(neighbour: &Neighbour, folder: &Path, args: &[&str]) -> Command {
    let mut sdm = neighbour.sdm(Who::User, args);
    sdm.current_dir(folder);
    sdm
}

#[test]
fn a_path_that_begins_here_finds_no_tool_here() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("tool");
    for tool in TOOLS {
        neighbour.plant(
            Who::Neighbour,
            format!("here/{tool}"),
            0o755,
            marker.script(),
        );
    }
    let here = neighbour.home(Who::Neighbour).join("here");
    let mut own = sleeper(&neighbour);
    let pid = own.id().to_string();
    let run = |launcher: &'static str| {
        vec![
            "run",
            "--batch",
            "--no-report",
            "-n",
            "1",
            "--launcher",
            launcher,
        ]
    };
    for path in [
        ".:/usr/bin:/bin",
        ":/usr/bin:/bin",
        "here/../.:/usr/bin:/bin",
    ] {
        let check = |args: &[&str]| {
            let mut sdm = there(&neighbour, &here, args);
            let told = Outcome::of(sdm.env("PATH", path));
            marker.assert_absent(&format!(
                "a tool in the folder of a stranger, by PATH={path} and {args:?}"
            ));
            told
        };
        check(&["stacks", &pid]).expect(0, &format!("pid {pid}"));
        let told = check(&[&run("site")[..], &["--", "/bin/true"]].concat());
        assert!(told.said.contains("launcher site: unknown"), "{told:?}");
        for launcher in ["local", "mpirun", "mpiexec", "srun"] {
            let _ = check(&[&run(launcher)[..], &["--", "/bin/true"]].concat());
        }
        let hosts = ["--hosts", "far.invalid", "--start-wait", "5"];
        let _ = check(&[&run("ssh")[..], &hosts, &["--", "/bin/true"]].concat());
    }
    let _ = own.kill();
    let _ = own.wait();
    neighbour.assert_gone();
}

/// gdb has a Python of its own, which imports this one when it begins.
#[test]
fn python_imports_nothing_from_here_and_the_program_has_its_own() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("module");
    for module in ["sitecustomize", "traceback", "os"] {
        neighbour.plant(
            Who::Neighbour,
            format!("here/{module}.py"),
            0o644,
            marker.python(),
        );
    }
    let here = neighbour.home(Who::Neighbour).join("here");
    let mut own = sleeper(&neighbour);
    let pid = own.id().to_string();
    for folders in [":/nowhere", ".", "/nowhere::/never"] {
        let mut stacks = there(&neighbour, &here, &["stacks", &pid]);
        let told = Outcome::of(stacks.env("PYTHONPATH", folders));
        marker.assert_absent(&format!(
            "a module in the folder of a stranger, by PYTHONPATH={folders}"
        ));
        told.expect(0, &format!("pid {pid}"));
        let printed = ["run", "--batch", "--no-report", "-n", "1", "--"];
        let program = ["/usr/bin/printenv", "PYTHONPATH"];
        let mut run = there(&neighbour, &here, &[&printed[..], &program].concat());
        let told = Outcome::of(run.env("PYTHONPATH", folders));
        marker.assert_absent(&format!(
            "a module in the folder of a stranger, by PYTHONPATH={folders}"
        ));
        assert!(
            told.said.lines().any(|line| line.ends_with(folders)),
            "{folders}: {told:?}"
        );
    }
    let _ = own.kill();
    let _ = own.wait();
    neighbour.assert_gone();
}

/// Behind su and sudo the variables name folders of whoever was there before.
#[test]
fn folders_of_whoever_was_there_before_are_not_taken_for_ones_own() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let theirs = neighbour.home(Who::Neighbour);
    let settings = "gdb = \"/evil\"\n";
    let file = neighbour.plant(Who::Neighbour, ".config/sdm/config.toml", 0o644, settings);
    let mut sdm = neighbour.sdm(Who::Root, ["settings"]);
    let told = Outcome::of(sdm.env_remove("SDM_CONFIG").env("HOME", &theirs));
    told.expect(
        2,
        &format!("{}: belongs to user 65533 and you are root", file.display()),
    );
    let mut sdm = neighbour.sdm(Who::User, ["sessions"]);
    let told = Outcome::of(sdm.env("XDG_RUNTIME_DIR", &theirs));
    let named = format!(
        "XDG_RUNTIME_DIR {} belongs to user 65533: sessions are kept elsewhere",
        theirs.display()
    );
    told.expect(0, &named);
    let mut sdm = neighbour.sdm(Who::Root, ["sessions"]);
    let told = Outcome::of(sdm.env("XDG_RUNTIME_DIR", &theirs));
    told.expect(0, &named);
    assert!(!theirs.join("sdm").exists(), "a folder of ours in theirs");
}

/// Whoever is first takes a name below `/tmp`, and no more than that.
#[test]
fn a_folder_that_is_taken_is_another_one() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let shared = neighbour.shared();
    let taken = shared.join("sdm-65534");
    std::fs::create_dir(&taken).expect("a folder");
    neighbour.give(Who::Neighbour, &taken, 0o777);
    // Another one of the same pattern, and a link to one of the user's own.
    let decoy = shared.join("sdm-65534-0");
    std::fs::create_dir(&decoy).expect("a folder");
    neighbour.give(Who::Neighbour, &decoy, 0o777);
    std::os::unix::fs::symlink(neighbour.home(Who::User), shared.join("sdm-65534-1"))
        .expect("a link");
    let mine = || -> Vec<_> {
        let entries = std::fs::read_dir(&shared).expect("it is there").flatten();
        let own = |path: &std::path::PathBuf| {
            let found = std::fs::symlink_metadata(path).expect("it is there");
            found.uid() == Who::User.uid() && found.is_dir()
        };
        entries.map(|entry| entry.path()).filter(own).collect()
    };
    for _ in 0..2 {
        let mut sdm = neighbour.sdm(Who::User, ["sessions"]);
        let told = Outcome::of(sdm.env("TMPDIR", &shared));
        assert_eq!(told.code, Some(0), "{told:?}");
        assert_eq!(mine().len(), 1, "the same one each time");
    }
    let folder = mine().remove(0);
    assert!(
        folder.display().to_string().contains("/sdm-65534-"),
        "{folder:?}"
    );
    assert_eq!(
        std::fs::metadata(&folder).expect("it is there").mode() & 0o7777,
        0o700
    );
    for theirs in [taken, decoy] {
        assert_eq!(std::fs::read_dir(theirs).expect("it is there").count(), 0);
    }
}
