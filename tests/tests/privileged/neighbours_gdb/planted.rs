//! A program with all kinds of files next to it that gdb could execute, and the ways in which gdb reads the program.

use std::fs;
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

/// The first gdb on `PATH`, and gdb 18 where `scripts/gdb18` has installed it.
pub(super) fn gdbs() -> Vec<PathBuf> {
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

pub(super) fn compile(compiler: &str, args: &[&str], folder: &Path) {
    let mut command = Command::new(compiler);
    let done = command.args(args).current_dir(folder).output();
    let done = done.expect("a compiler");
    assert!(
        done.status.success(),
        "{compiler} {args:?}: {}",
        said(&done)
    );
}

/// Builds the program of a user below the user's home, in a folder of this name.
pub(super) fn build(
    users: &Neighbour,
    who: Who,
    folder: &str,
    named: &str,
    inlined: &str,
) -> PathBuf {
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

/// Text for [`look`] in place of a gdb, where none is needed.
pub(super) const NO_GDB: &str = "/no/gdb";

/// A running process of the program.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(users: &Neighbour, who: Who, program: &Path) -> Self {
        let mut command = users.command(who, program);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked to be a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        assert_eq!(line, "ready 7\n");
        Self(child)
    }

    pub(super) fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process has ended if a test has ended it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a core file of the running process.
fn leave_core(running: &Running, core: &Path) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set auto-load off"]);
    gdb.args(["-iex", "set debuginfod enabled off", "-p", &running.pid()]);
    // gcore accepts a path with line ends unchanged.
    let written = core.with_file_name("written.core");
    gdb.arg("-ex").arg(format!("gcore {}", written.display()));
    let done = gdb.current_dir("/").output().expect("gdb runs");
    assert!(written.exists(), "{}", said(&done));
    fs::rename(written, core).expect("the core file is renamed");
}

/// The ways in which a program is read: by gdb, or for `Look` without one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Run,
    Attach,
    Stacks,
    Core,
    Look,
}

/// The modes in which gdb reads the program.
pub(super) const MODES: [Mode; 4] = [Mode::Run, Mode::Attach, Mode::Stacks, Mode::Core];

/// Output of `sdm` in this mode with this gdb and further options.
pub(super) fn look(
    users: &Neighbour,
    who: Who,
    mode: Mode,
    options: &[&str],
    gdb: &Path,
    it: &Looked,
) -> String {
    let [program, core, gdb] =
        [&it.program, &it.core, gdb].map(|path| path.to_str().expect("a path of text"));
    let pid = it.running.pid();
    let mut args = match mode {
        Mode::Run => vec!["run", "-n", "1", "--launcher", "local"],
        Mode::Attach => vec!["attach", &pid],
        Mode::Stacks => vec!["stacks", "--by", "gdb", &pid],
        Mode::Core => vec!["core"],
        Mode::Look => vec!["stacks", &pid],
    };
    args.extend(["--gdb", gdb]);
    args.extend(options);
    match mode {
        Mode::Run => args.extend(["-c", "print here", "--", program, "end"]),
        Mode::Attach => args.extend(["-c", "print here"]),
        Mode::Stacks | Mode::Look => {}
        Mode::Core if options.is_empty() => args.extend([program, core]),
        Mode::Core => args.extend(["-c", "print here", program, core]),
    }
    let mut sdm = users.sdm(who, args);
    // The folder where gdb would look for a .gdbinit.
    sdm.current_dir(it.program.parent().expect("a folder"));
    let done = sdm.output().expect("sdm runs");
    let text = said(&done);
    let seen = match mode {
        Mode::Run | Mode::Attach => "x = 3",
        Mode::Stacks | Mode::Core | Mode::Look => "main",
    };
    let seen = text.contains(seen) || text.contains("POINT(3, 4)");
    assert!(seen && done.status.success(), "{who:?} {mode:?}: {text}");
    text
}

/// Targets of a debugger: a program, a running process of it, and the process's core file.
pub(super) struct Looked {
    program: PathBuf,
    core: PathBuf,
    running: Running,
}

impl Looked {
    /// Starts the program as `runner`, and creates a core file next to it that `owner` owns.
    pub(super) fn new(users: &Neighbour, runner: Who, owner: Who, program: &Path) -> Self {
        let core = PathBuf::from(format!("{}.core", program.display()));
        let running = Running::start(users, runner, program);
        leave_core(&running, &core);
        users.give(owner, &core, 0o644);
        let program = program.to_owned();
        Self {
            program,
            core,
            running,
        }
    }
}

/// Plants every kind of file that gdb could execute, next to a program and in it. Returns the program, and for each
/// kind the marker that its execution would leave.
pub(super) fn plant_all(
    users: &Neighbour,
    who: Who,
    folder: &str,
) -> (PathBuf, Vec<(&'static str, Marker)>) {
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
