//! OpenPMIx's own examples of tools and debuggers, at the PMIx server of a session.

use std::path::Path;
use std::process::{Command, Stdio};

use sdm_tests::ordinary;
use sdm_tests::place::Place;
use sdm_tests::sdm::command;

use super::pmix_steer::{Job, said};

/// The sources, as Debian installs them.
const EXAMPLES: &str = "/usr/share/doc/libpmix-dev/examples";
/// The library, where Debian has it.
const PMIX: &str = "/usr/lib/x86_64-linux-gnu/pmix2";

/// Compiles an example into the folder of a test; false where the distribution has none, which is printed.
fn compiled(place: &Place, name: &str) -> bool {
    let source = Path::new(EXAMPLES).join(name).with_extension("c");
    if !source.is_file() || !Path::new(PMIX).is_dir() {
        println!("SKIP: no examples of OpenPMIx here (Debian: libpmix-dev)");
        return false;
    }
    let mut compiler = Command::new("cc");
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openpmix_examples");
    compiler.args(["-D_GNU_SOURCE", "-w", "-pthread", "-I", own]);
    compiler.arg(format!("-I{PMIX}/include")).arg(source);
    compiler.arg("-o").arg(place.path().join(name));
    compiler.arg(format!("-L{PMIX}/lib")).arg("-lpmix");
    let done = compiler.output().expect("a compiler");
    assert!(done.status.success(), "{done:?}");
    true
}

#[test]
fn openpmix_examples_of_tools_work_at_a_session() {
    let place = Place::new();
    if !["tool", "debugger"]
        .into_iter()
        .all(|it| compiled(&place, it))
    {
        return;
    }
    let job = Job::begin(&place, 2);
    let run = |name: &str, words: &[&str]| {
        let program = place.path().join(name);
        let mut example = command(&place, program.to_str().expect("text"));
        ordinary::lower(&mut example)
            .args(words)
            .stdin(Stdio::null());
        example.env("TMPDIR", place.path().join("tmp"));
        let done = example.current_dir(place.path()).output().expect(name);
        assert!(done.status.success(), "{name} {words:?}: {done:?}");
        said(&done)
    };
    let host = nix::unistd::gethostname().expect("a name");
    let host = host.to_str().expect("text");
    let name = &*job.name;
    for (example, words, wanted) in [
        ("tool", &[][..], format!("ACTIVE NSPACES:\n\t{name}\t")),
        (
            "tool",
            &["--nspace", name],
            format!("JOB SIZE FOR NSPACE {name}: 2"),
        ),
        (
            "tool",
            &["--uri"],
            format!("PMIx server URI for node {host}: {name}-server.0;tcp4://"),
        ),
        (
            "tool",
            &["--uri", host],
            format!("PMIx server URI for node {host}: {name}-server.0;"),
        ),
        (
            "tool",
            &["--uri", "nowhere"],
            "Query returned error: NOT-FOUND".to_owned(),
        ),
        (
            "debugger",
            &["--attach", name],
            format!("Query returned {name}\n"),
        ),
    ] {
        let told = run(example, words);
        assert!(told.contains(&wanted), "{example} {words:?}: {told}");
    }
    job.end(2);
}

/// A tool's text for a channel that the host does not have is refused, also where another channel has it.
#[test]
fn texts_for_missing_log_channels_are_refused() {
    let place = Place::new();
    let job = Job::begin(&place, 1);
    let script = r#"
import sys
from pmix import *
tool = PMIxTool()
tool.init([{"key": PMIX_SERVER_PIDINFO, "value": int(sys.argv[1]), "val_type": PMIX_PID}])
for channels in "stdout", "email", "gstore", "jrec", "stdout msg":
    texts = [{"key": "pmix.log." + it, "value": "text", "val_type": PMIX_STRING, "flags": 0} for it in channels.split()]
    print("%s: %d" % (channels, tool.log(texts, [])), flush=True)
tool.finalize()
"#;
    let mut tool = command(&place, "/usr/bin/python3");
    ordinary::lower(&mut tool).args(["-W", "ignore", "-c", script, &job.server]);
    // Fills allocated memory: the binding leaves flags that it is not given as they are there.
    tool.env("PYTHONMALLOC", "debug");
    tool.env("TMPDIR", place.path().join("tmp"));
    let told = said(&tool.output().expect("python3"));
    for line in [
        "stdout: 0",
        "email: -52",
        "gstore: -52",
        "jrec: -52",
        "stdout msg: -52",
    ] {
        assert!(told.contains(&format!("{line}\n")), "no {line:?}: {told}");
    }
    job.end(1);
}
