//! Errors in the use of MPI that show no symptom are stops, are merged, and are reported; right programs are left
//! alone.

use std::path::Path;

use sdm_tests::fixture::cache;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::is_full;
use sdm_tests::sdm::{Done, Sdm};
use serde_json::Value;

use super::chosen::{LAUNCHERS, chosen};

const SOURCE: &str = "mpi_errors.c";

/// All errors in `mpi_errors.c`, by the function that makes each: the error's number, and a part of its line.
const WRONG: [(&str, u32, &str); 36] = [
    ("count", 103, "MPI_Send(numbers, -1"),
    ("destination", 105, "MPI_INT, size, 0"),
    ("tag", 106, "pair(), -5"),
    ("root", 105, "MPI_INT, -1, MPI_COMM_WORLD"),
    ("null_communicator", 101, "MPI_Barrier(MPI_COMM_NULL)"),
    ("null_type", 101, "1, MPI_DATATYPE_NULL, 0"),
    ("null_operator", 101, "MPI_OP_NULL"),
    ("aliased", 108, "MPI_Allreduce(numbers, numbers"),
    ("predefined", 110, "MPI_Cart_coords(MPI_COMM_WORLD"),
    ("uncommitted", 104, "MPI_Bcast(numbers, 1, two"),
    ("freed_type", 102, "MPI_Type_size(copy"),
    ("freed_type", 102, "MPI_Bcast(numbers, 0, copy"),
    ("receives_overlap", 201, "MPI_Irecv(numbers + 3"),
    (
        "sends_what_is_received",
        201,
        "MPI_Send(numbers, 1, MPI_INT, other",
    ),
    (
        "not_started",
        203,
        "MPI_Wait(&request, MPI_STATUS_IGNORE);\n    MPI_Request_free",
    ),
    ("no_wait", 308, "MPI_Isend(numbers, 1, MPI_INT, other, 0"),
    (
        "leaks_communicator",
        301,
        "MPI_Comm_dup(MPI_COMM_WORLD, &copy)",
    ),
    (
        "leaks_type",
        302,
        "MPI_Datatype two;\n    MPI_Type_contiguous(2, MPI_INT, &two);\n}",
    ),
    ("leaks_group", 303, "MPI_Comm_group(MPI_COMM_WORLD, &group)"),
    (
        "leaks_operator",
        306,
        "MPI_Op_create(add, 1, &sum);\n    MPI_Allreduce(numbers, others, 1",
    ),
    ("leaks_info", 307, "MPI_Info_create(&info);\n}"),
    ("leaks_file", 305, "MPI_File_open("),
    (
        "leaks_persistent",
        308,
        "MPI_Recv_init(numbers, 4, MPI_INT, pair()",
    ),
    ("other_thread", 323, "MPI_Barrier(MPI_COMM_WORLD)"),
    ("writes_what_is_read", 110, "MPI_File_write_at(file, 0"),
    ("before_the_file", 103, "MPI_File_read_at(file, -8"),
    ("beyond_the_array", 114, "MPI_Type_create_subarray("),
    ("unlike_its_own", 404, "MPI_Allgather(&rank, 1"),
    ("characters", 111, "MPI_CHAR, MPI_SUM"),
    ("unbuffered", 115, "MPI_Bsend(numbers, 1"),
    (
        "leaks_key",
        310,
        "MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN",
    ),
    (
        "leaks_handler",
        309,
        "MPI_Comm_create_errhandler(on_error, &handler);\n}",
    ),
    ("leaks_in_a_loop", 307, "MPI_Info_create(&many)"),
    (
        "split_is_open",
        116,
        "MPI_File_close(&file);\n}\nstatic void at_in_sequence",
    ),
    ("at_in_sequence", 110, "MPI_File_read_at(file, 4"),
    ("returned", 112, "MPI_Graph_neighbors_count"),
];

fn source() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(SOURCE);
    std::fs::read_to_string(path).expect("a fixture")
}

/// Number of the line of `mpi_errors.c` with the first occurrence of the text. Where the text begins on an earlier
/// line, the line of its MPI call counts.
fn line(text: &str) -> usize {
    let source = source();
    let at = source.find(text).unwrap_or_else(|| panic!("no {text:?}"));
    let before = text
        .lines()
        .position(|line| line.contains("MPI_") && !line.contains("MPI_Datatype "));
    source[..at].matches('\n').count() + 1 + before.unwrap_or(0)
}

pub(super) fn checked<'a>(place: &'a Place, launcher: &str, count: u32, how: &[&str]) -> Sdm<'a> {
    Sdm::run(place, count)
        .env("XDG_CACHE_HOME", cache())
        .args(["--launcher", launcher])
        .args(how)
}

/// The errors in the report: their texts and who made them.
pub(super) fn errors(place: &Place, done: &Done) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(place.path().join("report.json"));
    let text = text.unwrap_or_else(|error| panic!("{error} in {done}"));
    let report: Value = serde_json::from_str(&text).expect("a report");
    let all = report["mpi_errors"].as_array().expect("there is a list");
    let of = |one: &Value, name: &str| one[name].as_str().expect("a text").to_owned();
    all.iter()
        .map(|one| (of(one, "what"), of(one, "tasks")))
        .collect()
}

#[test]
fn each_mpi_error_is_reported_at_its_line() {
    for (launcher, compiler) in chosen(each_mpi_error_is_reported_at_its_line, &LAUNCHERS) {
        let place = Place::new();
        let program = place.compile("mpi_errors", compiler);
        let names: Vec<_> = WRONG.iter().map(|(name, ..)| *name).collect();
        let done = checked(
            &place,
            launcher,
            2,
            &["--check", "--batch", "--junit", "j.xml"],
        )
        .program(&program, &names)
        .finish()
        .code(119);
        let mut told = errors(&place, &done);
        for (name, number, text) in WRONG {
            let (start, at) = (
                format!("MPI check: M{number} "),
                format!("{SOURCE}:{}", line(text)),
            );
            let found = told.iter().position(|(what, tasks)| {
                let ends = |it: &str| what.split([',', ' ']).any(|word| word == it);
                what.starts_with(&start) && ends(&at) && tasks == "0-1"
            });
            let found = found
                .unwrap_or_else(|| panic!("no M{number} of {name} at {at} in {told:#?} {done}"));
            told.remove(found);
        }
        assert!(told.is_empty(), "more than that: {told:#?} {done}");
        assert!(done.out.contains("was never freed (3 of them)"), "{done}");
        let count = WRONG.len();
        assert!(
            done.out
                .contains(&format!("errors in the use of MPI: {count}\n")),
            "{done}"
        );
        let xml = std::fs::read_to_string(place.path().join("j.xml")).expect("it was asked for");
        assert_eq!(xml.matches("name=\"MPI check: ").count(), count, "{xml}");
    }
}

/// The calls of `mpi_errors.c` in which ranks differ: the function, the number, the call's number on its communicator,
/// what each rank calls, and a part of each line.
const DIFFERENT: [(&str, u32, u32, &str, &[&str]); 8] = [
    (
        "wrong_root",
        402,
        2,
        "MPI_Bcast with root 0 at 0; MPI_Bcast with root 1 at 1",
        &["MPI_Bcast(numbers, 1, MPI_INT, rank & 1, copy)"],
    ),
    (
        "wrong_operator",
        403,
        1,
        "MPI_Allreduce with MPI_SUM at 0; MPI_Allreduce with MPI_MAX at 1",
        &["rank ? MPI_MAX : MPI_SUM"],
    ),
    (
        "wrong_amount",
        404,
        1,
        "MPI_Bcast of 2 MPI_INT at 0; MPI_Bcast of 4 MPI_INT at 1",
        &["MPI_Bcast(numbers, rank ? 4 : 2, MPI_INT"],
    ),
    (
        "wrong_type",
        404,
        1,
        "MPI_Allreduce of 1 MPI_INT at 0; MPI_Allreduce of 1 MPI_FLOAT at 1",
        &["rank ? MPI_FLOAT : MPI_INT"],
    ),
    (
        "wrong_calls",
        401,
        1,
        "MPI_Bcast at 0; MPI_Scatter at 1",
        &[
            "MPI_Bcast(numbers, 1, MPI_INT, 0, copy)",
            "MPI_Scatter(numbers, 1, MPI_INT, MPI_IN_PLACE",
        ],
    ),
    (
        "wrong_calls_behind",
        403,
        1,
        "MPI_Allreduce with MPI_SUM at 0; MPI_Allreduce with MPI_MIN at 1",
        &["rank ? MPI_MIN : MPI_SUM"],
    ),
    (
        "wrong_calls_behind",
        401,
        2,
        "MPI_Bcast at 0; MPI_Scatter at 1",
        &[
            "MPI_Bcast(numbers, 2, MPI_INT, 0, copy)",
            "MPI_Scatter(numbers, 2, MPI_INT, MPI_IN_PLACE",
        ],
    ),
    (
        "one_more",
        405,
        2,
        "MPI_Bcast at 0; no further call at 1",
        &["MPI_Bcast(numbers, 1, MPI_INT, 0, copy);\n}\n\n/* Right"],
    ),
];

/// Each is one error of both ranks, with the lines of both.
#[test]
fn mismatched_collectives_name_each_call_and_its_ranks() {
    for (launcher, compiler) in chosen(
        mismatched_collectives_name_each_call_and_its_ranks,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let program = place.compile("mpi_errors", compiler);
        let mut names: Vec<_> = DIFFERENT.iter().map(|(name, ..)| *name).collect();
        names.dedup();
        let done = checked(&place, launcher, 2, &["--check", "--batch"])
            .program(&program, &names)
            .finish()
            .code(119);
        let told = errors(&place, &done);
        for (name, number, call, who, lines) in DIFFERENT {
            let start = format!("MPI check: M{number} ");
            let call = format!(": collective call {call} of a communicator");
            let who = format!(": ranks differ: {who}");
            let mut all = told.iter().filter(|(what, tasks)| {
                let has_line = |text: &&str| what.contains(&format!("{SOURCE}:{}", line(text)));
                let is_it = what.starts_with(&start) && what.contains(&call);
                is_it && what.contains(&who) && lines.iter().all(has_line) && tasks == "0-1"
            });
            let is_one = all.next().is_some() && all.next().is_none();
            assert!(is_one, "M{number} of {name} in {told:#?} {done}");
        }
        assert_eq!(told.len(), DIFFERENT.len(), "{told:#?} {done}");
    }
}

#[test]
fn correct_programs_cause_no_report() {
    let names = [
        "right_requests",
        "right_columns",
        "right_collectives",
        "right_objects",
        "right_pairs",
        "right_calls",
        "right_parts",
    ];
    for (launcher, compiler) in chosen(correct_programs_cause_no_report, &LAUNCHERS) {
        let place = Place::new();
        let program = place.compile("mpi_errors", compiler);
        let done = checked(&place, launcher, 3, &["--check=strict", "--batch"])
            .program(&program, &names)
            .finish()
            .code(0);
        assert_eq!(errors(&place, &done), [], "{done}");
        assert!(!done.out.contains("MPI check"), "{done}");
    }
}

#[test]
fn cxx_program_is_checked_though_its_library_calls_mpi_first() {
    let compilers = [Compiler::CxxOpenMpi, Compiler::CxxMpich];
    for ((launcher, _), compiler) in LAUNCHERS.into_iter().zip(compilers) {
        let place = Place::new();
        let program = place.compile("mpi_cxx", compiler);
        let done = checked(&place, launcher, 2, &["--check", "--batch"]);
        let done = done.program(&program, &[]).finish().code(119);
        let told = errors(&place, &done);
        let at = format!("mpi_cxx.cc:{}", Place::line("mpi_cxx.cc", "MPI_Send("));
        let is_right = |(what, tasks): &(String, String)| {
            what.starts_with("MPI check: M103 ") && what.contains(&at) && tasks == "0-1"
        };
        assert!(
            matches!(&told[..], [one] if is_right(one)),
            "{told:?} {done}"
        );
    }
}

#[test]
fn mpi_error_stops_its_ranks_and_they_continue() {
    let place = Place::new();
    let program = place.compile("mpi_errors", Compiler::OpenMpi);
    let done = checked(&place, "mpirun", 2, &["--check"])
        .lines(&["continue", "print numbers[0]", "next", "continue", "ranks"])
        .program(&program, &["count", "leaks_group"])
        .finish()
        .code(0);
    let place_of = |text: &str| format!("{SOURCE}:{}", line(text));
    let at = place_of("numbers, -1");
    let told = format!("ranks 0-1 (2): MPI check: M103 MPI_Send: count is -1, count () at {at}");
    done.expect_part("continue", &told);
    done.expect("print numbers[0]", "ranks 0-1 (2): 0\n");
    let made = place_of("MPI_Comm_group(MPI_COMM_WORLD, &group)");
    let told = format!(
        "M303 MPI_Finalize: the group of MPI_Comm_group at {made} was never freed, main () at {SOURCE}:"
    );
    assert!(done.out.contains(&told), "no {told} in {done}");
    done.expect_part("ranks", "ranks 0-1 (2)  stopped  MPI check: M303");
}

#[test]
fn strict_sends_reveal_a_deadlock_hidden_by_buffering() {
    for (launcher, compiler) in chosen(
        strict_sends_reveal_a_deadlock_hidden_by_buffering,
        &LAUNCHERS,
    ) {
        let place = Place::new();
        let program = place.compile("mpi_errors", compiler);
        let sends = [
            (
                "head_to_head",
                "MPI_Send(numbers, 1, MPI_INT, other, 0, MPI_COMM_WORLD);\n    MPI_Recv(others",
            ),
            (
                "shift_head_to_head",
                "MPI_Sendrecv(numbers, 1, MPI_INT, other, 0, others, 0",
            ),
        ];
        // The parts of the long run have both.
        let count = if is_full() { sends.len() } else { 1 };
        for (name, text) in sends.into_iter().take(count) {
            let _done = checked(&place, launcher, 2, &["--check", "--batch", "--no-report"])
                .program(&program, &[name])
                .finish()
                .code(0);
            let strict = ["--check=strict", "--batch"];
            let done = checked(&place, launcher, 2, &strict)
                .program(&program, &[name])
                .finish()
                .code(120);
            let at = format!("{name} () at {SOURCE}:{}", line(text));
            assert!(done.out.contains("Deadlock: "), "{done}");
            assert!(
                done.out
                    .contains("--check=strict has standard sends wait for their receives"),
                "{done}"
            );
            assert!(done.out.contains(&at), "no {at} in {done}");
        }
    }
}

#[test]
fn suppressed_errors_are_not_reported() {
    let place = Place::new();
    let program = place.compile("mpi_errors", Compiler::Mpich);
    let rules = format!(
        "M103 function=count # known\nline={SOURCE}:{}\nM301\nM303 function=leaks_group\nline={SOURCE}:{}\n",
        line("pair(), -5"),
        line("MPI_Info_create(&info);\n}")
    );
    std::fs::write(place.path().join("rules"), rules).expect("there is room");
    let how = ["--check", "--check-suppress", "rules", "--batch"];
    let done = checked(&place, "mpiexec", 2, &how)
        .program(
            &program,
            &[
                "count",
                "tag",
                "leaks_communicator",
                "leaks_type",
                "leaks_group",
                "leaks_info",
            ],
        )
        .finish()
        .code(119);
    let told = errors(&place, &done);
    assert_eq!(told.len(), 1, "{told:?} {done}");
    assert!(told[0].0.contains("M302 "), "{told:?}");
}

#[test]
fn mpi_errors_in_fortran_with_mpi_or_mpi_f08_are_reported() {
    for (name, launcher, compiler) in [
        ("mpi_errors", "mpirun", Compiler::FortranOpenMpi),
        ("mpi_errors_f08", "mpiexec", Compiler::FortranMpich),
    ] {
        let place = Place::new();
        let program = place.compile(name, compiler);
        let done = checked(&place, launcher, 2, &["--check", "--batch"])
            .program(&program, &[])
            .finish()
            .code(119);
        let file = format!("{name}.f90");
        let at = |text: &str| format!("{file}:{}", Place::line(&file, text));
        let told = errors(&place, &done);
        for (number, text) in [
            (103, "call MPI_BCAST"),
            (301, "call MPI_COMM_DUP"),
            (308, "call MPI_ISEND"),
        ] {
            let (start, at) = (format!("MPI check: M{number} "), at(text));
            let is_it = |(what, tasks): &(String, String)| {
                what.starts_with(&start) && what.contains(&at) && tasks == "0-1"
            };
            assert!(
                told.iter().any(is_it),
                "no {number} at {at} in {told:#?} {done}"
            );
        }
        assert_eq!(told.len(), 3, "{told:#?} {done}");
    }
}

#[test]
fn unsupported_check_is_refused_with_a_reason() {
    let place = Place::new();
    let program = place.compile("loop", Compiler::C);
    let refused = |how: &[&str]| {
        let sdm = Sdm::run(&place, 1).args(how).program(&program, &[]);
        sdm.env("XDG_CACHE_HOME", cache()).finish()
    };
    let done = refused(&["--check", "--launcher", "local"]).code(124);
    assert!(done.err.contains("neither the program nor"), "{done}");
    let done = refused(&["--check", "--memcheck", "--launcher", "local"]).code(2);
    assert!(
        done.err
            .contains("--check cannot be used with --control or --memcheck"),
        "{done}"
    );
    std::fs::write(place.path().join("rules"), "M301\nwhat\n").expect("there is room");
    let other = ["--check", "--check-library", "rules"];
    let done = refused(&other).code(124);
    assert!(
        done.err.contains("the library must be named sdm-check*.so"),
        "{done}"
    );
    let own = place.path().join("sdm-check.so");
    std::fs::write(&own, "").expect("there is room");
    let how = [
        "--check",
        "--check-library",
        "sdm-check.so",
        "--check-suppress",
        "rules",
    ];
    let done = refused(&how).code(124);
    assert!(
        done.err.contains("line 2: \"what\" is not an error number"),
        "{done}"
    );
    let open = place.path().join("sdm-check-open.so");
    std::fs::write(&open, "").expect("there is room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&open, mode).expect("it is ours");
    let done = refused(&["--check", "--check-library", "sdm-check-open.so"]).code(124);
    assert!(
        done.err.contains("--check-library sdm-check-open.so: "),
        "{done}"
    );
}
