//! `sdm core`: the state of programs at their end, from core files.

use std::fs;
use std::process::Command;

use sdm_tests::cores::leave_core;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

fn core(place: &Place, options: &[&str], program: &str, cores: &[&str]) -> Done {
    Sdm::new(place, "core")
        .args(options)
        .args([program])
        .args(cores)
        .finish()
}

#[test]
fn core_files_are_merged_by_rank_and_debugged() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let crash = ["run"];
    let mut names: Vec<_> = (0..3)
        .map(|rank| leave_core(&place, Some(rank), "segv", &crash))
        .collect();
    let cores: Vec<&str> = names.iter().map(String::as_str).collect();
    let done = core(&place, &[], "./work", &cores).code(0);
    let ended = "ranks 0-2 (3): core file: ended by SIGSEGV, write_through";
    assert!(done.out.starts_with(ended), "{done}");
    assert!(
        done.out.contains("ranks 0-2 (3): main () at work.c"),
        "{done}"
    );

    names.push(leave_core(
        &place,
        Some(3),
        "spin",
        &["break usleep", "run"],
    ));
    let cores: Vec<&str> = names.iter().map(String::as_str).collect();
    let done = core(&place, &["--json"], "./work", &cores).code(1);
    let records = done.records();
    let stops: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "stop")
        .collect();
    assert_eq!(stops.len(), 2, "{done}");
    assert_eq!(
        (&stops[0]["tasks"], &stops[1]["tasks"]),
        (&"0-2".into(), &"3".into())
    );

    let lines = ["[@crashed] bt", "[3] info locals", "continue"];
    let script = lines
        .iter()
        .flat_map(|line| ["-c", line])
        .collect::<Vec<_>>();
    let done = core(&place, &script, "./work", &cores).code(123);
    done.expect_part(
        "[@crashed] bt",
        "ranks 0-2 (3):\n#0  write_through (pointer=0x0)",
    );
    done.expect_part("continue", "continue: not possible with a core file");
}

#[test]
fn core_files_without_ranks_are_named_by_pid() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let one = leave_core(&place, None, "segv", &["run"]);
    let done = core(&place, &[], "./work", &[&one]).code(0);
    assert!(done.out.starts_with("pid "), "{done}");
    let done = core(&place, &[], "./work", &[&one, &one]).code(0);
    assert!(done.out.starts_with("cores 0-1 (2): core file"), "{done}");

    let stranger = place.path().join("other");
    fs::copy(&program, &stranger).expect("there is room");
    let done = core(&place, &[], "./other", &[&one]).code(0);
    let said = format!("{one} was written by `work`, which may not be `other`");
    assert!(done.out.contains(&said), "{done}");

    let whole = fs::read(place.path().join(&one)).expect("it is there");
    fs::write(place.path().join("cut"), &whole[..whole.len() / 3]).expect("there is room");
    fs::write(place.path().join("head"), &whole[..64]).expect("there is room");
    let packed = b"\x28\xb5\x2f\xfd, and what zstd makes of it";
    fs::write(place.path().join("packed"), packed).expect("there is room");
    for (program, core_file, part) in [
        ("./work", "none", "none: No such file"),
        ("./work", "work", "work: not a core file"),
        ("./work", "head", "head: not a core file"),
        (
            "./work",
            "packed",
            "packed: the core file is compressed, and zstd cannot decompress it: ",
        ),
        ("./nosuch", &*one, "./nosuch: no such program"),
    ] {
        let done = core(&place, &[], program, &[core_file]).code(2);
        assert!(done.err.contains(part), "{part}: {done}");
    }
    // gdb's own message names the memory that it cannot read.
    let done = core(&place, &[], "./work", &["cut", &one]).code(2);
    assert!(
        done.out.contains("cut") && done.out.contains("write_through"),
        "{done}"
    );
}

#[test]
fn compressed_core_files_are_unpacked_and_opened() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let temporary = place.path().join("temporary");
    fs::create_dir(&temporary).expect("a folder");
    let mut packed = Vec::new();
    for (rank, (program, suffix)) in [("zstd", "zst"), ("xz", "xz"), ("gzip", "gz")]
        .into_iter()
        .enumerate()
    {
        let rank = u32::try_from(rank).expect("three");
        let plain = leave_core(&place, Some(rank), "segv", &["run"]);
        // As systemd calls them.
        let name = format!("core.work.1000.{rank}.{suffix}");
        let from = fs::File::open(place.path().join(&plain)).expect("gdb wrote it");
        let to = fs::File::create(place.path().join(&name)).expect("there is room");
        let packer = Command::new(program)
            .arg("-c")
            .stdin(from)
            .stdout(to)
            .status();
        assert!(packer.expect("it is installed").success(), "{program}");
        packed.push(name);
    }
    let names: Vec<&str> = packed.iter().map(String::as_str).collect();
    let ask = |options: &[&str], cores: &[&str]| {
        Sdm::new(&place, "core")
            .env("TMPDIR", &temporary)
            .args(options)
            .args(["./work"])
            .args(cores)
            .finish()
    };
    let done = ask(&[], &names).code(0);
    let ended = "ranks 0-2 (3): core file: ended by SIGSEGV, write_through";
    assert!(done.out.starts_with(ended), "{done}");
    let done = ask(&["-c", "[2] bt"], &names).code(0);
    done.expect_part("[2] bt", "#0  write_through (pointer=0x0)");

    let whole = fs::read(place.path().join(names[2])).expect("it is there");
    fs::write(place.path().join("cut.gz"), &whole[..whole.len() / 2]).expect("there is room");
    let done = ask(&[], &["cut.gz"]).code(2);
    let said = "cut.gz: the core file is compressed, and gzip cannot decompress it: gzip: stdin: unexpected end of file";
    assert!(done.err.contains(said), "{done}");
    let done = ask(&["--host", "localhost"], &names[1..2]).code(2);
    let said = "the core file is compressed: decompress it with `xz -d` on the hosts that read it";
    assert!(done.err.contains(said), "{done}");
    let left = fs::read_dir(&temporary).expect("it is there");
    let left: Vec<_> = left.flatten().map(|it| it.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
