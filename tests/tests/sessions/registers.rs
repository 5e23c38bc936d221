//! A gdb that does not know all registers of the processor, as gdb before 14 on a processor with AMX. SDM hides the
//! unknown registers from gdb. Where that is impossible, a command that would write the registers is refused.

use std::process::Command;

use sdm_tests::ordinary;
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};

const LIBM: &str = "/lib/x86_64-linux-gnu/libm.so.6";

#[test]
fn xstate_preload_lets_limited_gdb_write_and_call() {
    let place = Place::new();
    let Some(gdb) = parts::crippled_gdb(&place, &[]) else {
        return;
    };
    let work = place.compile("work", Compiler::C);
    // As if a user had appended to an empty variable: the leading blank counts, too.
    let own = format!(" {LIBM}");
    let atof = "print ((double (*) (const char *)) atof) (\"1.5\") / 2";
    let loaded = "print (char *) getenv (\"LD_PRELOAD\")";
    for wrapper in [&[][..], &["--wrapper", "nice -n 0"]] {
        let done = ordinary::run(&place, 2)
            .env("SDM_XSTATE", "always")
            .env("LD_PRELOAD", &own)
            .args(["--gdb", gdb.to_str().expect("it is text")])
            .args(wrapper)
            .lines(&[
                atof,
                "set var $xmm0.v4_int32[2] = 7",
                "print $xmm0.v4_int32[2]",
                loaded,
            ])
            .lines(&["print (char *) getenv (\"SDM_XSTATE\")", "continue"])
            .program(&work, &["exit"])
            .finish()
            .code(0);
        done.expect_part(atof, "ranks 0-1 (2): 0.75\n");
        done.expect_part("print $xmm0.v4_int32[2]", "ranks 0-1 (2): 7\n");
        done.expect_part(loaded, &format!("\"{own}\"\n"));
        done.expect_part(
            "print (char *) getenv (\"SDM_XSTATE\")",
            "ranks 0-1 (2): 0x0\n",
        );
        done.expect_part("continue", "ranks 0-1 (2): exited normally\n");
        assert!(!done.err.contains("ld.so"), "{done}");
    }
    place.assert_gone();
}

#[test]
fn vector_register_writes_are_refused_without_the_preload() {
    let place = Place::new();
    let Some(gdb) = parts::crippled_gdb(&place, &["--deaf"]) else {
        return;
    };
    let version = Command::new(&gdb)
        .arg("--version")
        .output()
        .expect("it runs");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let version = version
        .lines()
        .next()
        .and_then(|line| line.split(' ').next_back());
    let refusal = format!(
        "gdb {} cannot write registers on this processor (its register state is larger than this gdb supports); use gdb 14 or later: --gdb PATH",
        version.expect("it says so")
    );
    let work = place.compile("work", Compiler::C);
    let call = "print ((int (*) (int)) abs) (-3)";
    let run = |lines: &[&str]| {
        ordinary::run(&place, 2)
            .env("SDM_XSTATE", "always")
            .args(["--gdb", gdb.to_str().expect("it is text")])
            .lines(lines)
            .program(&work, &["exit"])
            .finish()
    };
    for refused in [call, "set var $xmm0.v4_int32[2] = 7", "reverse-next"] {
        run(&[refused]).code(123).expect_part(refused, &refusal);
    }
    let done = run(&[
        "next",
        "print 1 + 1",
        "set var $r12 = 5",
        "print $r12",
        "continue",
    ])
    .code(0);
    done.expect_part("print 1 + 1", "ranks 0-1 (2): 2\n");
    done.expect_part("print $r12", "ranks 0-1 (2): 5\n");
    done.expect_part("continue", "ranks 0-1 (2): exited normally\n");
    place.assert_gone();
}

#[test]
fn invalid_xstate_setting_is_named() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = ordinary::run(&place, 1)
        .env("SDM_XSTATE", "sometimes")
        .lines(&["continue"])
        .program(&work, &["exit"])
        .finish();
    let said = "SDM_XSTATE: \"sometimes\": expected auto, always or never";
    assert!(done.err.contains(said) || done.out.contains(said), "{done}");
    assert_ne!(done.code, Some(0), "{done}");
}
