//! Working directories with files named after a tool or a module: these files are not taken for it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};

use sdm_tests::neighbour::{Neighbour, Outcome, Who};

/// Names of programs that SDM looks up on `PATH`.
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
fn tools_in_the_current_folder_are_not_run() {
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

/// Helpers of `sdm`, of gdb, of its scripts, and of the scripts' shells.
const HELPERS: &[&str] = &[
    "cat", "chmod", "find", "head", "hostname", "iconv", "id", "mkfifo", "mktemp", "rm", "rmdir",
    "sed", "sh", "sleep", "tail", "tr",
];

/// `sdm run` of one rank, with these options.
fn one_rank<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "--batch", "--no-report", "-n", "1"];
    [&run, options, &["--", "/bin/true"]].concat()
}

#[test]
fn helpers_in_untrusted_path_folders_are_not_run() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("helper");
    // Everybody may write to the second, which is the user's own, and to the third, which is root's.
    let here = neighbour.home(Who::Neighbour).join("here");
    let [open, shared] = [neighbour.home(Who::User).join("open"), neighbour.shared()];
    for folder in [&here, &open, &shared] {
        for helper in HELPERS {
            let path = folder.join(helper);
            neighbour.plant(Who::Neighbour, path, 0o755, marker.script());
        }
    }
    neighbour.give(Who::User, &open, 0o777);
    let ssh = ["--launcher", "ssh", "--host", "localhost"];
    let with_gdb = ["run", "-c", "bt", "-c", "kill"];
    let commands = [
        vec!["doctor"],
        [&with_gdb[..], &["-n", "1", "--", "/bin/true"]].concat(),
        one_rank(&ssh),
        one_rank(&[&ssh[..], &["--stage"]].concat()),
        one_rank(&["--memcheck"]),
        one_rank(&["--launcher", "mpirun", "--key-handover", "file"]),
    ];
    let [open, shared] = [open, shared].map(|it| format!("{}:/usr/bin:/bin", it.display()));
    for (path, commands) in [
        (".:/usr/bin:/bin", &commands[..]),
        ("", &commands[..3]),
        (&open, &commands[..3]),
        (&shared, &commands[1..]),
    ] {
        for args in commands {
            let mut sdm = there(&neighbour, &here, args);
            let told = Outcome::of(sdm.env("PATH", path));
            marker.assert_absent(&format!("a helper by PATH={path} and {args:?}"));
            let is_good = told.code == Some(0) || args == &["doctor"];
            assert!(is_good, "{path} {args:?}: {told:?}");
        }
    }
    neighbour.assert_gone();
}

#[test]
fn skipped_untrusted_program_is_named() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let marker = neighbour.marker("program");
    let shared = neighbour.shared();
    for tool in ["gdb", "mpirun"] {
        neighbour.plant(Who::Neighbour, shared.join(tool), 0o755, marker.script());
    }
    neighbour.plant_copy(Who::Neighbour, shared.join("work"), 0o755, "/bin/true");
    let at = shared.display();
    let why = |tool: &str| {
        format!(
            "{at}/{tool} on PATH is skipped: other users may write to {at}; give the full path to use it"
        )
    };
    let path = format!("{at}:/usr/bin:/bin");
    let run = |args: &[&str]| {
        let mut sdm = neighbour.sdm(Who::User, args);
        let told = Outcome::of(sdm.env("PATH", &path));
        marker.assert_absent(&format!("a program by {args:?}"));
        told
    };
    let told = run(&one_rank(&["--launcher", "mpirun"]));
    told.expect(0, &format!("[PATH] {}\n", why("mpirun")));
    told.expect(0, &format!("[PATH] {}\n", why("gdb")));
    let mut args = one_rank(&["--launcher", "local"]);
    *args.last_mut().expect("a program") = "work";
    let told = run(&args);
    assert_ne!(told.code, Some(0), "{told:?}");
    assert!(told.said.contains("work: not found on PATH"), "{told:?}");
    assert!(told.said.contains(&why("work")), "{told:?}");
    neighbour.assert_gone();
}

/// gdb has a Python of its own, which imports this one when it begins.
#[test]
fn gdb_python_imports_nothing_from_the_current_folder() {
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

/// After su and sudo, `HOME` and `XDG_RUNTIME_DIR` may name folders of the previous user.
#[test]
fn folders_of_the_previous_user_are_refused_after_su() {
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
        "XDG_RUNTIME_DIR {} belongs to user 65533: sdm uses another folder for kept sessions",
        theirs.display()
    );
    told.expect(0, &named);
    let mut sdm = neighbour.sdm(Who::Root, ["sessions"]);
    let told = Outcome::of(sdm.env("XDG_RUNTIME_DIR", &theirs));
    told.expect(0, &named);
    assert!(!theirs.join("sdm").exists(), "a folder of ours in theirs");
}

/// Another user can only occupy a name below `/tmp`.
#[test]
fn occupied_temporary_folder_is_replaced_by_another() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let shared = neighbour.shared();
    let taken = shared.join("sdm-65534");
    std::fs::create_dir(&taken).expect("a folder");
    neighbour.give(Who::Neighbour, &taken, 0o777);
    // Another folder with a name of the same pattern, and a link to one of the user's own.
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
