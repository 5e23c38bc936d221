//! Options for gdb: wrappers, settings, printers, and the check that memory suffices for all gdbs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::Sdm;

#[test]
fn wrapper_and_settings_reach_every_gdb() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .args(["--wrapper", "nice -n 0 env BOUND='to 1'"])
        .args(["--gdb-setting", "set print address off", "--no-holds"])
        .lines(&["print (char *) getenv (\"BOUND\")", "continue"])
        .program(&work, &["exit"])
        .finish()
        .code(0);
    done.expect_part(
        "print (char *) getenv (\"BOUND\")",
        "ranks 0-1 (2): \"to 1\"\n",
    );
    done.expect_part("continue", "ranks 0-1 (2): exited normally\n");
}

/// A pretty-printer as a group of users might have for its own types: here for `int`.
const PRINTER: &str = r#"
import gdb
class Counted(object):
    def __init__(self, value):
        self.value = value
    def to_string(self):
        return "COUNTED(%d)" % int(self.value.cast(gdb.lookup_type("long")))
def look_up(value):
    return Counted(value) if str(value.type.strip_typedefs().unqualified()) == "int" else None
gdb.pretty_printers.append(look_up)
"#;

#[test]
fn printers_named_in_settings_are_loaded() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let printer = place.path().join("printers.py");
    fs::write(&printer, PRINTER).expect("there is room");
    let settings = place.path().join("config.toml");
    let text = format!("printers = [\"{}\"]\n", printer.display());
    fs::write(&settings, text).expect("there is room");
    // A person's own file, and the site's for all.
    for variable in ["SDM_CONFIG", "SDM_SITE_CONFIG"] {
        let done = Sdm::run(&place, 2)
            .env(variable, &settings)
            .lines(&["print rank"])
            .program(&work, &[])
            .finish()
            .code(0);
        done.expect_part("print rank", "ranks 0-1 (2): COUNTED(0)\n");
    }
    // A settings file that other users can write to is not used.
    fs::set_permissions(&settings, Permissions::from_mode(0o666)).expect("it is ours");
    let done = Sdm::run(&place, 2)
        .env("SDM_CONFIG", &settings)
        .lines(&["print rank"])
        .program(&work, &[])
        .finish();
    println!("{done}");
    assert_eq!(done.code, Some(2), "{done}");
}

/// Makes a program's debug strings appear larger than any machine's memory.
fn blow_up(program: &Path) {
    let mut bytes = fs::read(program).expect("it was compiled");
    let number = |at: usize, size: usize| {
        let part = bytes[at..at + size].iter().rev();
        part.fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (table, size) = (number(0x28, 8), number(0x3a, 2));
    let (count, names) = (number(0x3c, 2), number(0x3e, 2));
    let names = number(table + names * size + 0x18, 8);
    let header = (0..count).map(|index| table + index * size).find(|header| {
        let name = names + number(*header, 4);
        bytes[name..].starts_with(b".debug_str\0")
    });
    let at = header.expect("it has debug information") + 0x20;
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 42).to_le_bytes());
    fs::write(program, bytes).expect("it is ours");
}

#[test]
fn gdbs_beyond_memory_start_only_with_force() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    blow_up(&work);
    let run = |options: &[&str]| {
        let run = Sdm::run(&place, 5).args(options).lines(&["continue"]);
        run.program(&work, &[]).finish()
    };
    let refused = run(&[]).code(124);
    let said = "5 gdbs would need about 51200 GB of memory, but only ";
    assert!(
        refused.err.contains(said) || refused.out.contains(said),
        "{refused}"
    );
    assert!(!refused.out.contains("total 6"), "{refused}");
    // With --force gdb does as well as it can.
    let forced = run(&["--force"]).code(0);
    assert!(forced.out.contains("total 6\n"), "{forced}");
}

#[test]
fn gdb_has_short_arguments_and_leaks_no_file_to_the_program() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(&place, 1).talk().program(&work, &[]).spawn();
    sdm.ask("print 6*7", "rank 0: 42\n");
    let gdbs = place.pids("-i=mi3");
    assert_eq!(gdbs.len(), 1, "{gdbs:?}");
    let line = fs::read(format!("/proc/{}/cmdline", gdbs[0])).expect("it runs");
    let text = String::from_utf8_lossy(&line).replace('\0', " ");
    assert!(line.len() < 3000, "{} bytes: {text}", line.len());
    let programs = place.pids(work.to_str().expect("a path"));
    let of_it = |pid: &&u32| processes::name(**pid) == "work";
    let program = programs.iter().find(of_it).expect("it stands at main");
    let files = fs::read_dir(format!("/proc/{program}/fd")).expect("it is ours");
    let files = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok());
    let scripts: Vec<_> = files
        .filter(|file| file.to_string_lossy().contains("sdm-scripts"))
        .collect();
    assert!(scripts.is_empty(), "{scripts:?}");
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
}
