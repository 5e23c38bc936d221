//! Rewrites Valgrind's messages for users.

use std::borrow::Cow;

use sdm_debug::fold::{FoldRules, RawFrame, innermost_user_frame};
use sdm_mpi::symbols::{FINALIZE, INIT, OPEN_MPI_INNER};

/// Maximum number of bytes of one finding.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// MPI functions whose leaks occur once and cannot be freed by users.
const OF_MPI: [&str; 5] = [
    INIT[0],
    INIT[1],
    FINALIZE,
    OPEN_MPI_INNER[0],
    OPEN_MPI_INNER[1],
];

/// Valgrind's text without pid and addresses, so that ranks with the same error give the same text.
pub(super) fn plain(text: &str) -> String {
    let mut told = String::new();
    for line in text.trim_end().lines().map(without_pid) {
        if told.len() + line.len() >= TEXT_BYTES_MAX {
            told.push_str("...\n");
            break;
        }
        let line = without_address(line);
        told.extend([line.trim_end(), "\n"]);
    }
    told.truncate(told.trim_end().len());
    told.push('\n');
    told
}

/// A line of Valgrind without its prefix `==4711== `.
fn without_pid(line: &str) -> &str {
    let rest = line.strip_prefix("==").and_then(|rest| {
        let (pid, rest) = rest.split_once("==")?;
        pid.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(rest)
    });
    rest.map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest))
}

/// A line such as `   at 0x1234: f (a.c:1)` or ` Address 0x1234 is 0 bytes after ...` without its address.
fn without_address(line: &str) -> Cow<'_, str> {
    let words = ["   at ", "   by ", " Address "];
    let cut = words.iter().find_map(|word| {
        let rest = line.strip_prefix(word)?;
        let (address, rest) = rest.strip_prefix("0x")?.split_once(' ')?;
        let digits = address.strip_suffix(':').unwrap_or(address);
        let is_address = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_address.then(|| format!("{word}{rest}"))
    });
    cut.map_or(Cow::Borrowed(line), Cow::Owned)
}

/// From the output of a leak check, made [`plain`]: the records of memory lost by the user's code, and the lost
/// amount. `None` if there are none. Losses of MPI's start and end are the same in every program, and not the user's.
pub(super) fn leaks(text: &str, rules: &FoldRules) -> Option<(String, String)> {
    let (mut told, mut bytes, mut blocks) = (String::new(), 0, 0);
    for record in text.split("\n\n") {
        let Some(((more, too), head)) = record.lines().find_map(lost) else {
            continue;
        };
        let frames: Vec<RawFrame> = record.lines().filter_map(frame).collect();
        let names = frames.iter().filter_map(|frame| frame.function.as_deref());
        let of_mpi = |name: &str| OF_MPI.contains(&name.strip_prefix('P').unwrap_or(name));
        if names.clone().any(of_mpi) || innermost_user_frame(&frames, rules).is_none() {
            continue;
        }
        (bytes, blocks) = (bytes + more, blocks + too);
        told.extend([head, "\n"]);
        let stack = record.lines().filter(|line| frame(line).is_some());
        stack.for_each(|line| told.extend([line, "\n"]));
    }
    let kind = format!("{bytes} bytes in {blocks} blocks are definitely lost");
    (blocks > 0).then_some((told, kind))
}

/// The bytes and blocks of `100 bytes in 1 blocks are definitely lost in loss record 2 of 2`. The line is returned
/// without the record's number, which differs between ranks. `None` for other lines.
fn lost(line: &str) -> Option<((u64, u64), &str)> {
    let number = |word: &str| word.replace(',', "").parse().ok();
    let (amount, _) = line.split_once(" are definitely lost")?;
    // Indirectly lost bytes are in parentheses behind the number.
    let (bytes, rest) = amount.split_once(' ')?;
    let blocks = rest.rsplit_once(" in ")?.1.split(' ').next()?;
    let head = line
        .split_once(" in loss record")
        .map_or(line, |(it, _)| it);
    Some(((number(bytes)?, number(blocks)?), head))
}

/// The frame in `   by f (a.c:1)` or `   by f (in /x.so)`. `None` for other lines, and for `???` without a location.
fn frame(line: &str) -> Option<RawFrame> {
    let words = ["   at ", "   by "];
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    let (name, place) = rest.rsplit_once(" (").unwrap_or((rest, ""));
    let place = place.trim_end_matches(')');
    let mut frame = RawFrame {
        function: (name != "???").then(|| name.to_owned()),
        place: name.to_owned(),
        ..RawFrame::default()
    };
    match place.strip_prefix("in ") {
        Some(path) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            if name.contains(".so") {
                name.clone_into(&mut frame.module);
            }
        }
        None => frame.file = place.split(':').next().map(str::to_owned),
    }
    // A frame `???` without a location was in an unloaded library.
    (frame.function.is_some() || !place.is_empty()).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_leaks_are_summed() {
        let text = "16 bytes in 1 blocks are definitely lost in loss record 1 of 3\n   at malloc (in /l/vgpreload_memcheck-amd64-linux.so)\n   \
                    by lose (a.c:3)\n   by main (a.c:9)\n\n\
                    1,016 (136 direct, 880 indirect) bytes in 12 blocks are definitely lost in loss record 2 of 3\n   \
                    at calloc (in /l/vgpreload_memcheck-amd64-linux.so)\n   by ???\n   by PMPI_Init (in /l/libmpich.so.12.2.2)\n   by main (a.c:5)\n\n\
                    7 bytes in 1 blocks are definitely lost in loss record 2 of 3\n   at malloc (in /l/vgpreload_memcheck-amd64-linux.so)\n   \
                    by ???\n   by start_thread (pthread_create.c:442)\n\n\
                    1,100 (16 direct, 1,084 indirect) bytes in 12 blocks are definitely lost in loss record 3 of 3\n   by main (a.c:7)\n";
        let (told, kind) = leaks(text, &FoldRules::default()).expect("there are some");
        assert_eq!(kind, "1116 bytes in 13 blocks are definitely lost");
        let heads = told.lines().filter(|line| line.contains("lost"));
        let expect = [
            "16 bytes in 1 blocks are definitely lost",
            "1,100 (16 direct, 1,084 indirect) bytes in 12 blocks are definitely lost",
        ];
        assert_eq!(heads.collect::<Vec<_>>(), expect);
        assert!(told.contains("   by lose (a.c:3)\n"), "{told}");
        assert_eq!(
            leaks("All heap blocks were freed", &FoldRules::default()),
            None
        );
    }

    #[test]
    fn pids_are_removed_from_valgrind_output() {
        assert_eq!(
            without_pid("==25018== Invalid read of size 4"),
            "Invalid read of size 4"
        );
        assert_eq!(without_pid("==25018==    at 0x1: f"), "   at 0x1: f");
        assert_eq!(without_pid(" Address 0x4a"), " Address 0x4a");
        assert_eq!(without_pid("==x== y"), "==x== y");
    }

    #[test]
    fn equal_errors_have_equal_valgrind_text() {
        let text = "==25018== Thread 2:\n==25018== Invalid read of size 4\n==25018==    at 0x109209: f (a.c:17)\n\
                    ==25018==    by 0x4E6BD94: ??? (in /usr/lib/libevent.so)\n\
                    ==25018==  Address 0x7850f10 is 0 bytes after a block of size 512 alloc'd\n==25018== \n";
        let expect = "Thread 2:\nInvalid read of size 4\n   at f (a.c:17)\n   by ??? (in /usr/lib/libevent.so)\n \
                      Address is 0 bytes after a block of size 512 alloc'd\n";
        assert_eq!(plain(text), expect);
        assert_eq!(without_address(" Address 0xzz is"), " Address 0xzz is");
        assert_eq!(without_address("   at f"), "   at f");
    }
}
