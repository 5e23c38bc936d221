//! Files for gdb next to a program: their owner decides whether gdb executes them.

mod compilers;
mod hung;
mod planted;
mod standing;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sdm_tests::neighbour::{Neighbour, Who, said};

use planted::{Looked, MODES, Mode, NO_GDB, build, gdbs, look, plant_all};

/// A pretty-printer as a library installs it: for the library's own types, and registered for that library alone.
const PRINTER: &str = r#"
import gdb
class Point(object):
    def __init__(self, value):
        self.value = value
    def to_string(self):
        return "POINT(%d, %d)" % (int(self.value["x"]), int(self.value["y"]))
def look_up(value):
    return Point(value) if value.type.strip_typedefs().tag == "point" else None
assert gdb.current_objfile().filename.endswith("libanswer.so")
gdb.pretty_printers.append(look_up)
"#;

/// Part of SDM's message about each file that is not loaded.
const REFUSAL: &str = "is not loaded: ";

/// A text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn gdb_scripts_of_another_user_are_not_executed() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let (program, left) = plant_all(&users, Who::Neighbour, "planted");
    for who in [Who::Root, Who::User] {
        // Root inspects the neighbour's process; the user inspects his own process of the neighbour's program.
        let owner = match who {
            Who::Root => Who::Neighbour,
            other => other,
        };
        let it = Looked::new(&users, owner, Who::Neighbour, &program);
        for gdb in gdbs() {
            for mode in MODES {
                let text = look(&users, who, mode, &[], &gdb, &it);
                let what = format!("{who:?} {mode:?} {}: ", gdb.display());
                for (planted, marker) in &left {
                    marker.assert_absent(&format!("{what}{planted}"));
                }
                let flat = flat(&text);
                for file in ["prog-gdb.py", "libanswer.so-gdb.py"] {
                    let path = program.with_file_name(file);
                    let script = format!("script {} {REFUSAL}", path.display());
                    assert!(flat.contains(&script), "{what}no {script:?}: {text}");
                }
                assert!(flat.contains("belongs to user 65533"), "{what}{text}");
            }
        }
        look(&users, who, Mode::Look, &[], Path::new(NO_GDB), &it);
        for (planted, marker) in &left {
            marker.assert_absent(&format!("{who:?} without gdb: {planted}"));
        }
    }
    users.assert_gone();
}

#[test]
fn own_gdb_scripts_are_executed() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let (program, left) = plant_all(&users, Who::User, "own");
    let it = Looked::new(&users, Who::User, Who::User, &program);
    look(&users, Who::User, Mode::Look, &[], Path::new(NO_GDB), &it);
    for (what, marker) in &left {
        marker.assert_absent(&format!("without gdb: {what}"));
    }
    for gdb in gdbs() {
        for mode in MODES {
            let text = look(&users, Who::User, mode, &[], &gdb, &it);
            assert!(!text.contains(REFUSAL), "{text}");
            for (what, marker) in &left {
                // Files of the folder apply to no program, and no gdb here has Scheme.
                if what.ends_with("of the folder") || what.starts_with("scheme") {
                    marker.assert_absent(what);
                    continue;
                }
                marker.assert_left(&format!("{mode:?} {}: {what}", gdb.display()));
                fs::remove_file(marker.path()).expect("the mark is taken away");
            }
        }
        // Root executes no file that another user could change.
        let text = look(&users, Who::Root, Mode::Stacks, &[], &gdb, &it);
        assert!(text.contains(REFUSAL), "{text}");
        for (what, marker) in &left {
            marker.assert_absent(what);
        }
    }
}

#[test]
fn library_printers_are_used_if_not_writable_by_others() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let program = build(&users, Who::User, "library", "none.py", "pass");
    let folder = program.parent().expect("a folder");
    let script = users.plant(Who::User, "library/libanswer.so-gdb.py", 0o644, PRINTER);
    let it = Looked::new(&users, Who::User, Who::User, &program);
    let gdbs = gdbs();
    for gdb in &gdbs {
        for mode in [Mode::Run, Mode::Attach] {
            let text = look(&users, Who::User, mode, &[], gdb, &it);
            assert!(text.contains("POINT(3, 4)"), "{mode:?}: {text}");
        }
    }
    // Each of these modes gives another user access.
    for (path, mode) in [(&*script, 0o666), (folder, 0o777), (folder, 0o775)] {
        let is_own_group = mode == 0o775;
        if is_own_group {
            let group = nix::unistd::Gid::from_raw(Who::Neighbour.uid());
            nix::unistd::chown(path, None, Some(group)).expect("a group");
        }
        let rights = fs::Permissions::from_mode(mode);
        fs::set_permissions(path, rights).expect("its mode is changed");
        let text = look(&users, Who::User, Mode::Run, &[], &gdbs[0], &it);
        let flat = flat(&text);
        let why = format!("others can write to {}", path.display());
        assert!(flat.contains(&why) && text.contains("x = 3"), "{text}");
        // An explicit option overrides the check.
        let named = ["--printers", folder.to_str().unwrap()];
        for gdb in &gdbs {
            let text = look(&users, Who::User, Mode::Attach, &named, gdb, &it);
            assert!(text.contains("POINT(3, 4)"), "{text}");
        }
        users.give(Who::User, path, if path == folder { 0o755 } else { 0o644 });
    }
}

#[test]
fn line_end_in_a_path_is_no_second_gdb_command() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    for gdb in gdbs() {
        let marker = users.marker("line-end");
        let folder = format!("{}/x\nshell touch ", users.home(Who::User).display());
        // The path of the program is `.../x`, and on the next line a command.
        let path = format!("{folder}{}", marker.path().display());
        let program = build(&users, Who::User, "plain", "none.py", "pass");
        let program = users.plant_copy(Who::User, &path, 0o755, &program);
        let it = Looked::new(&users, Who::User, Who::User, &program);
        for mode in MODES {
            look(&users, Who::User, mode, &[], &gdb, &it);
            marker.assert_absent(&format!("{mode:?} {}: the path", gdb.display()));
        }
        // A folder to run in, an argument, and a variable.
        let mut sdm = users.sdm(
            Who::User,
            ["run", "-n", "1", "--launcher", "local", "--batch"],
        );
        let second = format!("x\nshell touch {}", marker.path().display());
        sdm.args(["--no-report", "--env", &format!("SECOND={second}")]);
        sdm.arg("--gdb")
            .arg(&gdb)
            .arg("--directory")
            .arg(program.parent().unwrap());
        let done = sdm
            .arg("--")
            .arg(&program)
            .arg(&second)
            .output()
            .expect("sdm runs");
        assert!(said(&done).contains("ready 7"), "{}", said(&done));
        marker.assert_absent("a folder, an argument, a variable");
        fs::remove_dir_all(users.home(Who::User).join("x\nshell touch ")).expect("removed");
    }
}
