//! What stands beside a program for gdb: whose it is decides whether gdb executes it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use sdm_tests::neighbour::{Marker, Neighbour, Who, said};

/// A program with a library of its own and with scripts in a section; it waits, or ends at once.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <unistd.h>
__asm__(".pushsection .debug_gdb_scripts,\"MS\",@progbits,1\n"
        ".byte 1\n.asciz \"NAMED\"\n"
        ".byte 4\n.ascii \"inlined\\n\"\n.byte INLINED,0\n"
        ".popsection\n");
struct point { int x, y; } here = {3, 4};
int answer(struct point *);
int main(int argc, char **argv) {
    int sum = answer(&here);
    printf("ready %d\n", sum);
    fflush(stdout);
    if (argc < 2)
        for (;;)
            pause();
    return 0;
}
"#;

const LIBRARY: &str =
    "struct point { int x, y; }; int answer(struct point *at) { return at->x + at->y; }";

/// A printer as a library brings it: for what is its own, and registered for it alone.
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

/// What SDM says of each thing that it leaves alone.
const REFUSAL: &str = "is not loaded: ";

/// Every gdb that is here.
fn gdbs() -> Vec<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&paths).map(|folder| folder.join("gdb"));
    let mut gdbs: Vec<PathBuf> = found.find(|path| path.exists()).into_iter().collect();
    let newer = sdm_tests::binaries::folder()
        .ancestors()
        .map(|folder| folder.join("tools/gdb-18/path/gdb"))
        .find(|path| path.exists());
    match newer {
        Some(newer) if !gdbs.contains(&newer) => gdbs.push(newer),
        Some(_) => {}
        None => println!("SKIP: gdb 18: scripts/gdb18 was not run"),
    }
    gdbs
}

fn compile(compiler: &str, args: &[&str], folder: &Path) {
    let mut command = Command::new(compiler);
    let done = command.args(args).current_dir(folder).output();
    let done = done.expect("a compiler");
    assert!(
        done.status.success(),
        "{compiler} {args:?}: {}",
        said(&done)
    );
}

/// The program of somebody's below his home, in a folder of this name.
fn build(users: &Neighbour, who: Who, folder: &str, named: &str, inlined: &str) -> PathBuf {
    let bytes: Vec<String> = inlined.bytes().map(|byte| byte.to_string()).collect();
    let text = PROGRAM.replace("NAMED", named);
    let text = text.replace("INLINED", &bytes.join(","));
    let source = users.plant(who, format!("{folder}/prog.c"), 0o644, text);
    users.plant(who, format!("{folder}/answer.c"), 0o644, LIBRARY);
    let folder = source.parent().expect("a folder");
    let library = ["-g", "-shared", "-fPIC", "-o", "libanswer.so", "answer.c"];
    compile("cc", &library, folder);
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let program = ["-g", "-o", "prog", "prog.c", "-L.", "-lanswer", &rpath];
    compile("cc", &program, folder);
    let program = folder.join("prog");
    users.give(who, &program, 0o755);
    users.give(who, &folder.join("libanswer.so"), 0o755);
    program
}

/// A running one, and what it is told by.
struct Running(Child);

impl Running {
    fn start(users: &Neighbour, who: Who, program: &Path) -> Self {
        let mut command = users.command(who, program);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked to be a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        assert_eq!(line, "ready 7\n");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It is gone where a test has ended it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A core file of the running one.
fn leave_core(running: &Running, core: &Path) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set auto-load off"]);
    gdb.args(["-iex", "set debuginfod enabled off", "-p", &running.pid()]);
    // gcore takes a path with line ends as it is.
    let written = core.with_file_name("written.core");
    gdb.arg("-ex").arg(format!("gcore {}", written.display()));
    let done = gdb.current_dir("/").output().expect("gdb runs");
    assert!(written.exists(), "{}", said(&done));
    fs::rename(written, core).expect("the core file is renamed");
}

/// The ways to have gdb look at a program.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Run,
    Attach,
    Stacks,
    Core,
}

const MODES: [Mode; 4] = [Mode::Run, Mode::Attach, Mode::Stacks, Mode::Core];

/// `sdm` in this mode, with further options.
fn look(users: &Neighbour, who: Who, mode: Mode, options: &[&str], it: &Looked<'_>) -> String {
    let program = it.program.to_str().expect("a path of text");
    let core = it.core.to_str().expect("a path of text");
    let gdb = it.gdb.to_str().expect("a path of text");
    let pid = it.running.pid();
    let mut args = match mode {
        Mode::Run => vec!["run", "-n", "1", "--launcher", "local"],
        Mode::Attach => vec!["attach", &pid],
        Mode::Stacks => vec!["stacks", &pid],
        Mode::Core => vec!["core"],
    };
    args.extend(["--gdb", gdb]);
    args.extend(options);
    match mode {
        Mode::Run => args.extend(["-c", "print here", "--", program, "end"]),
        Mode::Attach => args.extend(["-c", "print here"]),
        Mode::Stacks => {}
        Mode::Core if options.is_empty() => args.extend([program, core]),
        Mode::Core => args.extend(["-c", "print here", program, core]),
    }
    let mut sdm = users.sdm(who, args);
    // Where a .gdbinit would be looked for.
    sdm.current_dir(it.program.parent().expect("a folder"));
    let done = sdm.output().expect("sdm runs");
    let text = said(&done);
    let seen = match mode {
        Mode::Run | Mode::Attach => "x = 3",
        Mode::Stacks | Mode::Core => "main",
    };
    let seen = text.contains(seen) || text.contains("POINT(3, 4)");
    assert!(seen && done.status.success(), "{who:?} {mode:?}: {text}");
    text
}

/// What is looked at.
struct Looked<'a> {
    program: &'a Path,
    core: &'a Path,
    gdb: &'a Path,
    running: &'a Running,
}

/// Everything that gdb could execute, beside a program and in it; what each leaves.
fn plant_all(users: &Neighbour, who: Who, folder: &str) -> (PathBuf, Vec<(&'static str, Marker)>) {
    let marker = |name: &str| users.marker(&format!("{folder}-{name}"));
    let named = users.home(who).join(folder).join("named.py");
    let inlined = marker("inlined");
    let program = build(
        users,
        who,
        folder,
        named.to_str().expect("a path of text"),
        &inlined.python(),
    );
    let mut left = vec![("inlined script", inlined)];
    for (what, file, is_python) in [
        ("named script", "named.py", true),
        ("script of the program", "prog-gdb.py", true),
        ("commands of the program", "prog-gdb.gdb", false),
        ("script of the library", "libanswer.so-gdb.py", true),
        ("commands of the library", "libanswer.so-gdb.gdb", false),
        ("commands of the folder", ".gdbinit", false),
        ("commands of the folder", "gdbinit", false),
    ] {
        let mark = marker(file);
        let text = match is_python {
            true => mark.python(),
            false => format!("shell {}\n", mark.shell()),
        };
        users.plant(who, format!("{folder}/{file}"), 0o755, text);
        left.push((what, mark));
    }
    let scheme = marker("scheme");
    let text = format!("(system \"{}\")\n", scheme.shell());
    users.plant(who, format!("{folder}/prog-gdb.scm"), 0o755, text);
    left.push(("scheme of the program", scheme));
    (program, left)
}

#[test]
fn a_neighbours_scripts_are_not_executed() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let (program, left) = plant_all(&users, Who::Neighbour, "planted");
    let core = program.with_file_name("core.1");
    for who in [Who::Root, Who::User] {
        // Root looks at the neighbour's process, the user at his own of the neighbour's program.
        let owner = match who {
            Who::Root => Who::Neighbour,
            other => other,
        };
        let running = Running::start(&users, owner, &program);
        leave_core(&running, &core);
        users.give(Who::Neighbour, &core, 0o644);
        for gdb in gdbs() {
            for mode in MODES {
                let it = Looked {
                    program: &program,
                    core: &core,
                    gdb: &gdb,
                    running: &running,
                };
                let text = look(&users, who, mode, &[], &it);
                let what = format!("{who:?} {mode:?} {}: ", gdb.display());
                for (planted, marker) in &left {
                    marker.assert_absent(&format!("{what}{planted}"));
                }
                let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
                for file in ["prog-gdb.py", "libanswer.so-gdb.py"] {
                    let path = program.with_file_name(file);
                    let script = format!("script {} {REFUSAL}", path.display());
                    assert!(flat.contains(&script), "{what}no {script:?}: {text}");
                }
                assert!(flat.contains("belongs to user 65533"), "{what}{text}");
            }
        }
    }
    users.assert_gone();
}

#[test]
fn ones_own_scripts_are_executed() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let (program, left) = plant_all(&users, Who::User, "own");
    let core = program.with_file_name("core.1");
    let running = Running::start(&users, Who::User, &program);
    leave_core(&running, &core);
    users.give(Who::User, &core, 0o644);
    for gdb in gdbs() {
        for mode in MODES {
            let it = Looked {
                program: &program,
                core: &core,
                gdb: &gdb,
                running: &running,
            };
            let text = look(&users, Who::User, mode, &[], &it);
            assert!(!text.contains(REFUSAL), "{text}");
            for (what, marker) in &left {
                // Those of the folder are nobody's who asked for the program, and no gdb here has Scheme.
                if what.ends_with("of the folder") || what.starts_with("scheme") {
                    marker.assert_absent(what);
                    continue;
                }
                marker.assert_left(&format!("{mode:?} {}: {what}", gdb.display()));
                fs::remove_file(marker.path()).expect("the mark is taken away");
            }
        }
        // Root does not execute what another user could change.
        let it = Looked {
            program: &program,
            core: &core,
            gdb: &gdb,
            running: &running,
        };
        let text = look(&users, Who::Root, Mode::Stacks, &[], &it);
        assert!(text.contains(REFUSAL), "{text}");
        for (what, marker) in &left {
            marker.assert_absent(what);
        }
    }
}

#[test]
fn a_librarys_own_printers_are_used_where_nobody_else_can_write() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let program = build(&users, Who::User, "library", "none.py", "pass");
    let folder = program.parent().expect("a folder");
    let script = users.plant(Who::User, "library/libanswer.so-gdb.py", 0o644, PRINTER);
    let core = folder.join("core.1");
    let running = Running::start(&users, Who::User, &program);
    leave_core(&running, &core);
    users.give(Who::User, &core, 0o644);
    let gdbs = gdbs();
    let at = |gdb| Looked {
        program: &program,
        core: &core,
        gdb,
        running: &running,
    };
    for gdb in &gdbs {
        for mode in [Mode::Run, Mode::Attach] {
            let text = look(&users, Who::User, mode, &[], &at(gdb));
            assert!(text.contains("POINT(3, 4)"), "{mode:?}: {text}");
        }
    }
    // Each of these lets somebody else in.
    for (path, mode) in [(&*script, 0o666), (folder, 0o777), (folder, 0o775)] {
        let is_own_group = mode == 0o775;
        if is_own_group {
            let group = nix::unistd::Gid::from_raw(Who::Neighbour.uid());
            nix::unistd::chown(path, None, Some(group)).expect("a group");
        }
        let rights = fs::Permissions::from_mode(mode);
        fs::set_permissions(path, rights).expect("its mode is changed");
        let text = look(&users, Who::User, Mode::Run, &[], &at(&gdbs[0]));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = format!("others can write to {}", path.display());
        assert!(flat.contains(&why) && text.contains("x = 3"), "{text}");
        // Who says so trusts it all the same.
        let named = ["--printers", folder.to_str().unwrap()];
        for gdb in &gdbs {
            let text = look(&users, Who::User, Mode::Attach, &named, &at(gdb));
            assert!(text.contains("POINT(3, 4)"), "{text}");
        }
        users.give(Who::User, path, if path == folder { 0o755 } else { 0o644 });
    }
}

/// A compiler's tree as it stands in a module's folder: the library, its script, and what that imports.
fn compiler_elsewhere(users: &Neighbour, who: Who, marker: &Marker) -> Option<PathBuf> {
    const FOLDERS: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let folder = FOLDERS.iter().map(Path::new).find(|it| it.is_dir());
    let library = folder.and_then(|it| it.join("libstdc++.so.6").canonicalize().ok());
    let python = Path::new("/usr/share/gcc/python/libstdcxx");
    let Some(library) = library.filter(|_| python.is_dir()) else {
        println!("SKIP: no libstdc++ with printers in its usual place");
        return None;
    };
    let name = library
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let copy = users.plant_copy(who, format!("gcc/lib64/{name}"), 0o755, &library);
    symlink(name, copy.with_file_name("libstdc++.so.6")).expect("a link");
    let auto = format!("/usr/share/gdb/auto-load{}-gdb.py", library.display());
    let script = fs::read_to_string(auto).expect("the system's script");
    let moved = |line: &str| match line.split_once(" = ") {
        Some(("pythondir", _)) => "pythondir = '/opt/gcc/share/gcc-12/python'".to_owned(),
        Some(("libdir", _)) => "libdir = '/opt/gcc/lib64'".to_owned(),
        _ => line.to_owned(),
    };
    let script: Vec<String> = script.lines().map(moved).collect();
    let script = script.join("\n") + "\n" + &marker.python();
    users.plant(who, format!("gcc/lib64/{name}-gdb.py"), 0o644, script);
    for file in [
        "__init__.py",
        "v6/__init__.py",
        "v6/printers.py",
        "v6/xmethods.py",
    ] {
        let to = format!("gcc/share/gcc-12/python/libstdcxx/{file}");
        users.plant_copy(who, to, 0o644, python.join(file));
    }
    copy.parent().map(Path::to_owned)
}

#[test]
fn printers_of_a_compiler_elsewhere_are_used_where_they_are_trusted() {
    const SOURCE: &str = "#include <vector>\n#include <cstdio>\n\
                          int main() {\n  std::vector<int> many{1, 2, 3};\n  std::puts(\"ready\");\n  return 0;\n}\n";
    let Some(users) = Neighbour::new() else {
        return;
    };
    for owner in [Who::User, Who::Neighbour] {
        let marker = users.marker(&format!("{owner:?}-libstdcxx"));
        let Some(folder) = compiler_elsewhere(&users, owner, &marker) else {
            return;
        };
        let source = users.plant(Who::User, format!("{owner:?}/many.cc"), 0o644, SOURCE);
        let place = source.parent().expect("a folder");
        let rpath = format!("-Wl,-rpath,{}", folder.display());
        compile(
            "c++",
            &["-g", "-O0", "-o", "many", "many.cc", &rpath],
            place,
        );
        let program = place.join("many");
        let run = |gdb: &Path, named: &[&str]| {
            let mut sdm = users.sdm(Who::User, ["run", "-n", "1", "--launcher", "local"]);
            sdm.arg("--gdb").arg(gdb).args(named);
            for line in ["break many.cc:5", "continue", "print many"] {
                sdm.args(["-c", line]);
            }
            said(&sdm.arg("--").arg(&program).output().expect("sdm runs"))
        };
        let whole = "std::vector of length 3";
        for gdb in gdbs() {
            let text = run(&gdb, &[]);
            if owner == Who::User {
                assert!(text.contains(whole), "{text}");
            } else {
                let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(flat.contains("belongs to user 65533"), "{text}");
                marker.assert_absent("the neighbour's compiler");
                let text = run(&gdb, &["--printers", folder.to_str().unwrap()]);
                assert!(text.contains(whole), "{text}");
            }
            marker.assert_left("the printers of this compiler");
            fs::remove_file(marker.path()).expect("the mark is taken away");
        }
    }
}

/// The system's script looks for its modules from where the program has found the library.
#[test]
fn a_link_to_the_systems_library_does_not_lead_the_systems_script_astray() {
    let Some(users) = Neighbour::new() else {
        return;
    };
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    if !library.exists() {
        println!("SKIP: no {}", library.display());
        return;
    }
    let marker = users.marker("astray");
    let source = "#include <iostream>\nint main() { std::cout << \"ready\\n\"; }\n";
    let source = users.plant(Who::Neighbour, "a/b/c/astray.cc", 0o644, source);
    let folder = source.parent().expect("a folder");
    symlink(library, folder.join("libstdc++.so.6")).expect("a link");
    // As many folders up as the script goes.
    for above in ["share", "a/share", "usr/share"] {
        let module = format!("{above}/gcc/python/libstdcxx/v6/__init__.py");
        users.plant(Who::Neighbour, &module, 0o644, marker.python());
        let package = format!("{above}/gcc/python/libstdcxx/__init__.py");
        users.plant(Who::Neighbour, package, 0o644, "");
    }
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    compile("c++", &["-g", "-o", "astray", "astray.cc", &rpath], folder);
    for gdb in gdbs() {
        for who in [Who::Root, Who::User] {
            let mut sdm = users.sdm(who, ["run", "-n", "1", "--launcher", "local", "--batch"]);
            sdm.args(["--no-report", "--gdb"]).arg(&gdb).arg("--");
            let done = sdm.arg(folder.join("astray")).output().expect("sdm runs");
            assert!(said(&done).contains("ready"), "{}", said(&done));
            marker.assert_absent("a module beside a link to the system's library");
        }
    }
}

#[test]
fn a_line_end_in_a_path_is_no_second_command() {
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
        let core = users.plant(Who::User, format!("{path}.core"), 0o644, "");
        let running = Running::start(&users, Who::User, &program);
        leave_core(&running, &core);
        users.give(Who::User, &core, 0o644);
        let it = Looked {
            program: &program,
            core: &core,
            gdb: &gdb,
            running: &running,
        };
        for mode in MODES {
            look(&users, Who::User, mode, &[], &it);
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
