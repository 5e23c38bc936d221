//! The line of an instruction, from the line table of a code object (3.11 and later).

/// The line of the instruction at byte offset `at`; `None` if it has no line.
pub(super) fn line_of(table: &[u8], first_line: i64, at: u64) -> Option<u32> {
    let mut bytes = table.iter().copied();
    let mut line = first_line;
    let mut end = 0_u64;
    while let Some(first) = bytes.next() {
        let kind = (first >> 3) & 15;
        end += 2 * u64::from((first & 7) + 1);
        // Number of fields that remain in the entry after the line.
        let skipped = match kind {
            // An entry without a line.
            15 => 0,
            // The difference of the line, then the end line and two columns.
            14 => {
                line = line.checked_add(signed(&mut bytes)?)?;
                for _ in 0..3 {
                    number(&mut bytes)?;
                }
                0
            }
            13 => {
                line = line.checked_add(signed(&mut bytes)?)?;
                0
            }
            10..=12 => {
                line = line.checked_add(i64::from(kind) - 10)?;
                2
            }
            _ => 1,
        };
        for _ in 0..skipped {
            bytes.next()?;
        }
        if at < end {
            let line = u32::try_from(line).ok();
            return line.filter(|_| kind != 15);
        }
    }
    None
}

/// Reads an unsigned number: six bits per byte, lowest first. `None` if the bytes end before.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..60).step_by(6) {
        let byte = bytes.next()?;
        value |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads a signed number, whose lowest bit is the sign; `None` if the bytes end before.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = number(bytes)?;
    let amount = i64::try_from(value >> 1).ok()?;
    Some(if value & 1 == 0 { amount } else { -amount })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // The table that the `python3` of Debian 12 made of a function with loops, handlers and a gap of 90 lines.
    // `co_firstlineno`, `co_linetable`, and the lines in `co_positions`; 0 if there is none.
    const FIRST: i64 = 2;
    const TABLE: &[u8] = &[
        128, 0, 224, 12, 13, 128, 69, 221, 13, 18, 144, 49, 137, 88, 140, 88, 240, 0, 8, 5, 19,
        240, 0, 8, 5, 19, 136, 1, 216, 11, 12, 136, 113, 137, 53, 240, 0, 7, 9, 19, 216, 12, 17,
        144, 97, 216, 22, 23, 216, 22, 23, 241, 3, 1, 23, 24, 241, 3, 2, 23, 24, 241, 0, 2, 13, 25,
        136, 69, 136, 69, 240, 8, 0, 13, 18, 149, 81, 216, 16, 17, 216, 16, 17, 241, 5, 2, 22, 19,
        244, 0, 2, 22, 19, 241, 0, 2, 13, 19, 136, 69, 136, 69, 240, 8, 97, 1, 5, 21, 221, 13, 17,
        144, 35, 137, 89, 140, 89, 240, 0, 1, 9, 21, 152, 33, 216, 19, 20, 240, 3, 1, 9, 21, 240,
        0, 1, 9, 21, 240, 0, 1, 9, 21, 240, 0, 1, 9, 21, 241, 0, 1, 9, 21, 244, 0, 1, 9, 21, 240,
        0, 1, 9, 21, 245, 64, 3, 0, 9, 14, 136, 101, 137, 12, 140, 12, 136, 12, 136, 12, 240, 65,
        3, 1, 9, 21, 240, 0, 1, 9, 21, 240, 0, 1, 9, 21, 240, 0, 1, 9, 21, 248, 248, 248, 240, 0,
        1, 9, 21, 240, 0, 1, 9, 21, 240, 0, 1, 9, 21, 240, 0, 1, 9, 21, 240, 0, 1, 9, 21, 248, 229,
        11, 18, 240, 0, 1, 5, 36, 240, 0, 1, 5, 36, 240, 0, 1, 5, 36, 221, 14, 24, 152, 101, 208,
        8, 35, 248, 248, 248, 248, 240, 3, 1, 5, 36, 248, 248, 248, 240, 5, 1, 9, 21, 245, 64, 3,
        0, 9, 14, 136, 101, 137, 12, 140, 12, 136, 12, 136, 12, 248, 141, 5, 136, 101, 137, 12,
        140, 12, 136, 12, 136, 12, 248, 248, 248, 216, 11, 36, 208, 11, 36, 149, 117, 152, 85, 145,
        124, 148, 124, 208, 11, 36, 209, 11, 36, 212, 11, 36, 208, 4, 36,
    ];
    const LINES: &[u32] = &[
        2, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 8, 9, 8,
        8, 7, 7, 7, 7, 7, 7, 11, 11, 11, 11, 11, 11, 11, 12, 13, 11, 11, 11, 11, 11, 11, 11, 11,
        11, 11, 11, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17, 16, 16,
        16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112,
        112, 112, 112, 112, 112, 112, 16, 16, 16, 16, 0, 0, 0, 16, 16, 16, 16, 16, 0, 18, 18, 18,
        18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19, 0, 0, 0, 0, 18, 0, 0, 0, 16, 112,
        112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 0, 112, 112,
        112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 0, 0, 0, 113, 113,
        113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113, 113,
        113, 113, 113, 113, 113,
    ];

    #[test]
    fn recorded_line_table_is_decoded() {
        for (at, line) in LINES.iter().enumerate() {
            let expect = Some(*line).filter(|line| *line > 0);
            assert_eq!(line_of(TABLE, FIRST, 2 * at as u64), expect, "unit {at}");
        }
        assert_eq!(line_of(TABLE, FIRST, 2 * LINES.len() as u64), None);
    }

    #[test]
    fn overflowing_line_numbers_are_refused() {
        let entry = [&[0xe8, 0x7e][..], &[0x7f; 8], &[0x3f]].concat();
        assert_eq!(line_of(&entry.repeat(17), FIRST, 1000), None);
    }

    proptest! {
        #[test]
        fn line_table_decoder_never_panics(table: Vec<u8>, first: i32, at: u16) {
            let _ = line_of(&table, i64::from(first), u64::from(at));
        }
    }
}
