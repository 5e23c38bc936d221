//! Numbers of each kind and language in files for other programs, exact and complete.

use std::fs;
use std::process::Command;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

/// The numbers of a file of NumPy's, of one rank, eight bytes each.
fn numbers_in(place: &Place, name: &str) -> Vec<[u8; 8]> {
    let file = fs::read(place.path().join(name)).expect("it was written");
    let (numbers, rest) = file[128..].as_chunks::<8>();
    assert_eq!((numbers.len(), rest.len()), (30, 0), "{name}");
    numbers.to_vec()
}

/// 30 numbers, of which all but the first and the last are equal.
fn run_of<T: Copy>(first: T, between: T, last: T) -> Vec<T> {
    [&[first][..], &[between; 28], &[last]].concat()
}

/// Has Python read the numbers of a table in this format of its `struct`. They are those of the file for NumPy, and
/// with one digit less they would not be.
fn read_by_python(place: &Place, name: &str, kind: &str, digits: usize) {
    const PROGRAM: &str = "
import struct, sys
name, kind, digits = sys.argv[1:]
as_kind = lambda number: struct.unpack(kind, struct.pack(kind, number))[0]
texts = open(name + '.csv').read().split('\\n')[1].split(',')[1:]
array = struct.unpack('<30d', open(name + '.npy', 'rb').read()[128:])
assert len(texts) == 30, texts
for text, number in zip(texts, array):
    assert as_kind(float(text)) == number, (text, number)
    used = len(text.split('e')[0].replace('.', '').strip('0'))
    assert used <= int(digits), text
    assert used == 1 or as_kind(float('%.*g' % (used - 1, number))) != number, text
";
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM, name, kind, &digits.to_string()]);
    let done = python.current_dir(place.path()).output();
    let done = done.expect("python3 runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {said}");
}

#[test]
fn exported_numbers_of_each_kind_and_language_are_exact() {
    for compiler in [Compiler::C, Compiler::Cxx, Compiler::Fortran] {
        let place = Place::new();
        let program = place.compile("kinds", compiler);
        let slice = match compiler {
            Compiler::Fortran => "(1:30)",
            _ => "[0:29]",
        };
        let export = |name: &str| format!("export {name}{slice} {name}.npy");
        let mut lines = ["whole", "floats", "doubles"].map(export).to_vec();
        lines.extend(["floats", "doubles"].map(|name| format!("export {name}{slice} {name}.csv")));
        lines.push(format!("stats doubles{slice}"));
        if compiler != Compiler::Fortran {
            lines.push(format!("export natural{slice} natural.csv"));
            lines.push(format!("stats extended{slice}"));
            let bytes =
                ["bytes", "small", "flags"].map(|name| format!("export {name}{slice} {name}.npy"));
            lines.extend(bytes);
        }
        let done = Sdm::run(&place, 1)
            .lines(&["break look", "continue"])
            .lines(&lines.iter().map(String::as_str).collect::<Vec<_>>())
            .program(&program, &[])
            .finish()
            .code(0);
        let whole = numbers_in(&place, "whole.npy");
        let whole: Vec<_> = whole.into_iter().map(i64::from_le_bytes).collect();
        assert_eq!(whole, run_of(-i64::MAX, 7, i64::MAX), "{done}");
        let doubles = numbers_in(&place, "doubles.npy");
        let doubles: Vec<_> = doubles.into_iter().map(f64::from_le_bytes).collect();
        assert_eq!(doubles, run_of(0.1, 7.0 / 3.0, f64::MAX), "{done}");
        // gdb writes nine digits: enough for the number itself, not for it as a number of eight bytes.
        let floats = numbers_in(&place, "floats.npy").into_iter();
        let floats: Vec<_> = floats.map(f64::from_le_bytes).collect();
        let singles = run_of(0.1_f32, 1.0 / 3.0, f32::MAX);
        let expect: Vec<_> = singles.into_iter().map(f64::from).collect();
        assert_eq!(floats, expect, "{done}");
        for (name, kind, digits) in [("floats", "<f", 9), ("doubles", "<d", 17)] {
            read_by_python(&place, name, kind, digits);
        }
        let line = format!("stats doubles{slice}");
        done.expect_part(&line, "30 numbers on rank 0\n  min     0.1 on rank 0\n");
        if compiler != Compiler::Fortran {
            let table =
                fs::read_to_string(place.path().join("natural.csv")).expect("it was written");
            assert!(table.ends_with(&format!(",7,7,{}\n", u64::MAX)), "{table}");
            let line = format!("stats extended{slice}");
            done.expect_part(&line, "min     0.1 on rank 0\n");
            for (name, expect) in [
                ("bytes", run_of(7, 7, 255)),
                ("small", run_of(-128, 0, 0)),
                ("flags", run_of(0, 1, 1)),
            ] {
                let bytes = numbers_in(&place, &format!("{name}.npy")).into_iter();
                let bytes: Vec<_> = bytes.map(i64::from_le_bytes).collect();
                assert_eq!(bytes, expect, "{name}: {done}");
            }
        }
    }
}

/// gdb writes whole numbers alike, of whichever type they are.
#[test]
fn whole_numbers_are_exported_with_the_type_of_the_program() {
    for (compiler, slice, integer) in [
        (Compiler::C, "many[0:14:7]", "whole[1]"),
        (Compiler::Fortran, "many(1:15:7)", "whole(2)"),
    ] {
        let place = Place::new();
        let program = place.compile("kinds", compiler);
        let done = Sdm::run(&place, 1)
            .lines(&["break look", "continue"])
            .lines(&[&format!("export {slice} slice.npy")])
            .lines(&[&format!("export {integer} integer.npy")])
            .program(&program, &[])
            .finish()
            .code(0);
        let seven = 7_i64.to_le_bytes().to_vec();
        let steps = [0.0_f64, 1.0, 2.0].map(f64::to_le_bytes).concat();
        for (name, kind, bytes) in [("slice", "<f8", steps), ("integer", "<i8", seven)] {
            let file = fs::read(place.path().join(format!("{name}.npy"))).expect("it was written");
            let header = String::from_utf8_lossy(&file[10..128]);
            assert!(
                header.starts_with(&format!("{{'descr': '{kind}'")),
                "{header}: {done}"
            );
            assert_eq!(file[128..], bytes, "{name}: {done}");
        }
    }
}

#[test]
fn statistics_of_a_truth_value_count_it_as_a_number() {
    let place = Place::new();
    let program = place.compile("kinds", Compiler::C);
    let done = Sdm::run(&place, 1)
        .lines(&[
            "break look",
            "continue",
            "stats flags[0]",
            "stats flags[29]",
        ])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("stats flags[0]", "max     0 on rank 0\n");
    done.expect_part("stats flags[29]", "min     1 on rank 0\n");
}

/// gdb's text for each of these slices is longer than its output may be. It writes each character by itself, so that each
/// command asks as few ranks as it needs.
#[test]
fn long_slices_are_exported_and_compared_completely() {
    const COUNT: u32 = 60_000;
    for (compiler, many, table, last) in [
        (Compiler::C, "many[0:59999]", "table[0:299]", "many[59999]"),
        (
            Compiler::Fortran,
            "many(1:60000)",
            "table(1:2,1:30000)",
            "many(60000)",
        ),
    ] {
        let place = Place::new();
        let program = place.compile("kinds", compiler);
        let stats = format!("[0] stats {many}");
        let compare = format!("compare {many}");
        let whole = &table[..5];
        let done = Sdm::run(&place, 2)
            .lines(&["break look", "continue"])
            .lines(&[&format!("[0] export {table} table.npy")])
            .lines(&[&stats, &format!("print {whole}")])
            .lines(&[&format!("[1] set var {last} = -1"), &compare])
            .program(&program, &[])
            .finish()
            .code(0);
        let expect: Vec<f64> = (0..COUNT).map(|at| f64::from(at) / 7.0).collect();
        let file = fs::read(place.path().join("table.npy")).expect("it was written");
        let (numbers, rest) = file[128..].as_chunks::<8>();
        let numbers: Vec<f64> = numbers.iter().map(|it| f64::from_le_bytes(*it)).collect();
        assert!(rest.is_empty() && numbers == expect, "{done}");
        let shape = if compiler == Compiler::C {
            "1 x 300 x 200"
        } else {
            "1 x 30000 x 2"
        };
        let line = format!("[0] export {table} table.npy");
        done.expect_part(
            &line,
            &format!(": rank 0, {shape} floating-point numbers\n"),
        );
        let shown = format!("print {whole}");
        let begins = if compiler == Compiler::C {
            "{{0, 0.1428"
        } else {
            "((0, 0.1428"
        };
        done.expect_part(&shown, &format!("ranks 0-1 (2): {begins}"));
        done.expect_part(&stats, "60000 numbers on rank 0\n  min     0 on rank 0\n");
        done.expect_part(&stats, "\n  sum     257138571\n");
        let differs = "1 of 60000 elements differs, first ";
        done.expect_part(&compare, differs);
        done.expect_part(&compare, ": -1, not 8571.2857142857138");
    }
}

/// The number of an array's elements has no limit below that of its memory.
#[test]
fn slice_of_300000_elements_is_complete() {
    let place = Place::new();
    let program = place.compile("kinds", Compiler::C);
    let slice = "export digits[0:299999] slice.npy";
    let done = Sdm::run(&place, 1)
        .lines(&["break look", "continue"])
        .lines(&["set var digits[299999] = 8", "set var digits[7] = 5"])
        .lines(&["stats digits", slice])
        .program(&program, &[])
        .finish()
        .code(0);
    let stats = "300000 numbers on rank 0\n  min     0 on rank 0\n";
    done.expect_part("stats digits", stats);
    done.expect_part("stats digits", "\n  sum     13\n");
    let written = "slice.npy is written: rank 0, 1 x 300000 integers\n";
    done.expect_part(slice, written);
    let mut expect = vec![0_u8; 300_000 * 8];
    (expect[7 * 8], expect[299_999 * 8]) = (5, 8);
    let file = fs::read(place.path().join("slice.npy")).expect("it was written");
    assert!(file[128..] == expect, "{done}");
}
