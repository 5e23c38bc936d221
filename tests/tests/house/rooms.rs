//! Types and functions that must be defined once, and the names of MPI functions, which only some files may contain.

use std::collections::BTreeMap;

use crate::sources::{self, Source};

/// Things that are defined once: a text that the definition has, and its file.
const ONCE: &[(&str, &str, &str)] = &[
    (
        "the syntax of host lists",
        "pub struct HostPattern",
        "sdm-hosts/src/hostlist.rs",
    ),
    (
        "a file with a secret",
        "struct SecretFile",
        "sdm-system/src/secret.rs",
    ),
    (
        "the writer of LEB128",
        ">>= 7;",
        "sdm-idset/src/wire/number.rs",
    ),
    (
        "the budget of decoded sets",
        "const SETS_BYTES_MAX",
        "sdm-idset/src/coding.rs",
    ),
    (
        "a distinct answer",
        "pub enum ClassAnswer",
        "sdm-debug/src/class.rs",
    ),
    (
        "joining of a distinct answer",
        "ClassAnswer::Merged(merged) =>",
        "sdm-view/src/gathered.rs",
    ),
    (
        "the states of a manager",
        "Manager: MANAGER(",
        "sdm-runtime/src/model/states.rs",
    ),
];

/// Files outside `sdm-mpi` with names of MPI's or of its libraries in texts: the number of such texts, and the reason.
/// The numbers only fall, but for a new text for the user. [`GENERATORS`] are not counted.
const MPI_NAMES: &[(&str, usize, &str)] = &[
    ("sdm-child/src/memcheck.rs", 1, "a program of Open MPI's"),
    ("sdm-dap/src/client_breakpoints.rs", 2, "texts for the user"),
    ("sdm-debug/src/event.rs", 1, "a text for the user"),
    (
        "sdm-diagnose/src/collective_order.rs",
        4,
        "texts for the user",
    ),
    ("sdm-diagnose/src/epochs.rs", 3, "texts for the user"),
    ("sdm-diagnose/src/judge.rs", 2, "texts for the user"),
    (
        "sdm-foreign/src/host/ended_processes.rs",
        2,
        "a text for the user",
    ),
    (
        "sdm-foreign/src/msgq/mod.rs",
        2,
        "fields of Open MPI's structures",
    ),
    ("sdm-gdb/src/ops/mpi_error.rs", 2, "texts for the user"),
    (
        "sdm-gdb/src/ops/queues.rs",
        2,
        "MPIR, the interface of debuggers",
    ),
    ("sdm-hosts/src/job/launcher.rs", 1, "a text for the user"),
    (
        "sdm-hosts/src/job/mpir.rs",
        8,
        "MPIR, the interface of debuggers",
    ),
    (
        "sdm-inspect/src/mpi/mod.rs",
        1,
        "bytes in the libraries' memory",
    ),
    (
        "sdm-inspect/src/mpi/mpich/mod.rs",
        1,
        "bytes in the library's memory",
    ),
    (
        "sdm-inspect/src/mpi/openmpi.rs",
        3,
        "classes of Open MPI's structures",
    ),
    (
        "sdm-inspect/src/mpi/openmpi/windows.rs",
        5,
        "classes of Open MPI's structures",
    ),
    (
        "sdm-inspect/src/queues/layout.rs",
        19,
        "the layout of Open MPI's structures, and texts for the user",
    ),
    ("sdm-inspect/src/queues/layout_tests.rs", 15, "tests"),
    ("sdm-shell/src/shell/outcome.rs", 1, "a text for the user"),
    ("sdm-sim/src/million/mod.rs", 2, "stacks of simulated tasks"),
    (
        "sdm-system/src/launcher_env.rs",
        2,
        "variables of launchers",
    ),
    ("sdm-view/src/render/event.rs", 1, "a text for the user"),
    (
        "sdm-view/src/report/mpi_errors.rs",
        1,
        "where the check compares at the end",
    ),
];

/// Files that generate C, which calls MPI: a change of that C adds names.
const GENERATORS: [&str; 5] = [
    "sdm-check/src/buffers.rs",
    "sdm-check/src/life.rs",
    "sdm-check/src/matching.rs",
    "sdm-check/src/windows.rs",
    "sdm-check/src/wrappers.rs",
];

/// The quoted texts of code, by line.
fn texts(source: &Source) -> impl Iterator<Item = &str> {
    let code = source.shipped().lines();
    let code = code.filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split('"').skip(1).step_by(2))
}

/// True for a text with a name of MPI's (`MPI_Recv`, `PMPI_Recv`, `MPI_COMM_WORLD`), and for one that begins with a name
/// of a library's.
fn has_mpi_name(text: &str) -> bool {
    let of_libraries = ["ompi_", "MPIR_", "libmpi"];
    let is_of_library = of_libraries.iter().any(|prefix| text.starts_with(prefix));
    is_of_library
        || text.match_indices("MPI_").any(|(at, prefix)| {
            let before = text[..at].strip_suffix('P').unwrap_or(&text[..at]);
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let follows = text[at + prefix.len()..].chars().next();
            !before.ends_with(is_word) && follows.is_some_and(char::is_alphabetic)
        })
}

fn shipped(sources: &[Source]) -> impl Iterator<Item = &Source> {
    let is_shipped = |source: &&Source| !source.is_test && source.path.contains("/src/");
    let sources = sources.iter().filter(is_shipped);
    sources.filter(|source| !["tests", "benches"].contains(&&*source.member))
}

/// The files whose code has a text, once for each time.
fn files_with<'a>(sources: &'a [Source], text: &str) -> Vec<&'a str> {
    let lines = shipped(sources).flat_map(|source| {
        let code = source.shipped().lines();
        let code = code.filter(|line| !line.trim_start().starts_with("//"));
        code.map(move |line| (&*source.path, line))
    });
    let found = lines.filter(|(_, line)| line.contains(text));
    found.map(|(path, _)| path).collect()
}

/// The bodies of enums with a file for each.
fn enums(sources: &[Source]) -> impl Iterator<Item = (&str, &str)> {
    shipped(sources).flat_map(|source| {
        let parts = source.shipped().split("\npub enum ").skip(1);
        parts.map(move |part| (&*source.path, part.split("\n}").next().unwrap_or_default()))
    })
}

#[test]
fn shared_types_and_functions_are_defined_once() {
    let sources = sources::all();
    for (thing, text, file) in ONCE {
        assert_eq!(files_with(&sources, text), [*file], "{thing}: `{text}`");
    }
    let is_kind = |body: &str| {
        ["Job,", "Machine,", "Node,", "Queue,"]
            .iter()
            .all(|it| body.contains(it))
    };
    let kinds = enums(&sources).filter(|(_, body)| is_kind(body));
    let kinds: Vec<&str> = kinds.map(|(path, _)| path).collect();
    assert_eq!(
        kinds,
        ["sdm-runtime/src/wire/event.rs"],
        "the kind of an element"
    );
}

#[test]
fn mpi_names_are_defined_only_in_sdm_mpi() {
    assert!(has_mpi_name("_exit before MPI_Finalize") && has_mpi_name("PMPI_Init"));
    assert!(has_mpi_name("ompi_mpi_windows") && has_mpi_name("libmpi"));
    assert!(!has_mpi_name("OMPI_COMM_WORLD_RANK") && !has_mpi_name("MPI_*"));
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let sources = sources::all();
    let is_elsewhere =
        |source: &&Source| source.member != "sdm-mpi" && !GENERATORS.contains(&&*source.path);
    for source in shipped(&sources).filter(is_elsewhere) {
        let count = texts(source).filter(|text| has_mpi_name(text)).count();
        if count > 0 {
            found.insert(&*source.path, count);
        }
    }
    let known = MPI_NAMES.iter().map(|(path, count, _)| (*path, *count));
    let known: BTreeMap<&str, usize> = known.collect();
    assert_eq!(
        found, known,
        "names of MPI's functions stand in sdm-mpi; where a number has fallen, lower it here"
    );
}

/// Names of MPI's functions, without `MPI_`, that are words of other things too.
const WORDS: [&str; 6] = ["address", "init", "initialized", "probe", "send", "wait"];

#[test]
fn mpi_functions_are_known_by_name_only_in_sdm_mpi() {
    let sources = sources::all();
    let functions = shipped(&sources).find(|it| it.path == "sdm-mpi/src/functions.rs");
    let rows = functions.expect("the table").shipped().lines();
    let names = rows.filter_map(|row| row.strip_prefix("    (\"")?.split_once("\", W::"));
    let names: Vec<&str> = names.map(|(name, _)| name).collect();
    assert!(names.len() > 90 && WORDS.iter().all(|word| names.contains(word)));
    let is_elsewhere =
        |source: &&Source| source.member != "sdm-mpi" && !GENERATORS.contains(&&*source.path);
    for source in shipped(&sources).filter(is_elsewhere) {
        let is_known = |text: &&str| names.contains(text) && !WORDS.contains(text);
        let found: Vec<&str> = texts(source).filter(is_known).collect();
        assert!(
            found.is_empty(),
            "{}: a function of sdm-mpi says it of {found:?}",
            source.path
        );
    }
}
