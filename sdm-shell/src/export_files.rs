//! Values of an expression in the tasks of a command, as files for other programs. The formats are NumPy's `.npy`,
//! version 1.0 (NEP 1, `numpy.lib.format`), and `.csv` (RFC 4180 with line feeds).
use std::fmt::{Display, LowerExp, Write};

use sdm_debug::rules::{Number, Parsed};

/// An array of numbers. The first axis is the tasks; further axes are those of the array in the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exported {
    /// The ranks that have these values, in ascending order.
    pub(crate) ranks: Vec<u32>,
    /// Number of elements in each dimension of one task's array. Empty for a single number.
    pub(crate) shape: Vec<usize>,
    /// All numbers; those of one task are contiguous.
    pub(crate) values: Vec<Parsed>,
    /// Their type; gdb writes a floating-point number that is whole like an integer.
    pub(crate) kind: NumberKind,
}

/// The type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// `float`. gdb writes nine digits of these, enough to tell which number it is.
    Single,
    /// Another floating-point type.
    Float,
    /// An integer, or an unknown type.
    Other,
}

impl Exported {
    /// True for integers each of which fits into a signed 64-bit integer. Such numbers are written as integers.
    pub(crate) fn is_whole(&self) -> bool {
        self.kind == NumberKind::Other && self.values.iter().all(|value| whole(*value).is_some())
    }

    /// The contents of the `.npy` file: little-endian `int64` or `float64`, in C order.
    pub(crate) fn npy(&self) -> Vec<u8> {
        const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
        const ALIGNED: usize = 64;
        let is_whole = self.is_whole();
        let kind = if is_whole { "<i8" } else { "<f8" };
        let mut shape = format!("{},", self.ranks.len());
        for size in &self.shape {
            let _ = write!(shape, " {size},");
        }
        let mut header =
            format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
        // The header ends with a line feed, and the numbers begin at a multiple of 64 bytes.
        let used = MAGIC.len() + 2 + header.len() + 1;
        let blanks = used.next_multiple_of(ALIGNED) - used;
        header.push_str(&" ".repeat(blanks));
        header.push('\n');
        let length = u16::try_from(header.len()).expect("eight dimensions are few letters");
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(header.as_bytes());
        for value in &self.values {
            let bytes = match whole(*value).filter(|_| is_whole) {
                Some(int) => int.to_le_bytes(),
                None => self.float(*value).to_le_bytes(),
            };
            file.extend_from_slice(&bytes);
        }
        file
    }

    /// The exact number of a value: for a `float`, the number of four bytes that is nearest to gdb's text.
    fn float(&self, value: Parsed) -> f64 {
        match self.kind {
            NumberKind::Single => f64::from(single(value)),
            _ => value.to_f64(),
        }
    }

    /// The contents of the `.csv` file: one line per task, beginning with its rank, and one column per
    /// element. A floating-point number has the fewest digits that are read back as the same number of its type.
    pub(crate) fn csv(&self) -> String {
        let count = self.shape.iter().product::<usize>();
        let mut file = "rank".to_owned();
        for index in 0..count {
            file.push(',');
            file.push_str(&self.column(index));
        }
        file.push('\n');
        for (rank, values) in self.ranks.iter().zip(self.values.chunks(count.max(1))) {
            let _ = write!(file, "{rank}");
            for value in values {
                file.push(',');
                let _ = match (value, self.kind) {
                    (Parsed::Finite(Number::Int(int)), _) => write!(file, "{int}"),
                    (_, NumberKind::Single) => {
                        shortest(&mut file, single(*value), self.float(*value))
                    }
                    _ => shortest(&mut file, value.to_f64(), value.to_f64()),
                };
            }
            file.push('\n');
        }
        file
    }

    /// The name of an element's column: `value`, `[3]`, `[1][2]`. Indices start at 0, whatever the bounds
    /// of the slice.
    fn column(&self, mut index: usize) -> String {
        if self.shape.is_empty() {
            return "value".to_owned();
        }
        let mut places = Vec::new();
        for size in self.shape.iter().rev() {
            places.push(index % size);
            index /= size;
        }
        places.iter().rev().map(|it| format!("[{it}]")).collect()
    }
}

/// The number of four bytes that is nearest to a value.
#[expect(clippy::cast_possible_truncation, reason = "to what it was")]
fn single(value: Parsed) -> f32 {
    value.to_f64() as f32
}

/// Writes a number of `size` with the fewest digits that are read back as it.
fn shortest(file: &mut String, number: impl Display + LowerExp, size: f64) -> std::fmt::Result {
    let is_plain = size == 0.0 || !size.is_finite() || (1e-5..1e16).contains(&size.abs());
    match is_plain {
        true => write!(file, "{number}"),
        false => write!(file, "{number:e}"),
    }
}

fn whole(value: Parsed) -> Option<i64> {
    match value {
        Parsed::Finite(Number::Int(int)) => int.try_into().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(numbers: &[i128]) -> Vec<Parsed> {
        let all = numbers.iter();
        all.map(|it| Parsed::Finite(Number::Int(*it))).collect()
    }

    #[test]
    fn exported_array_has_numpy_format() {
        let exported = Exported {
            ranks: vec![0, 2],
            shape: vec![2],
            values: ints(&[1, -2, 3, 4]),
            kind: NumberKind::Other,
        };
        let file = exported.npy();
        let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2,), }";
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        assert_eq!(file[10..128].trim_ascii_end(), header.as_bytes());
        assert_eq!((file[127], file.len()), (b'\n', 128 + 4 * 8));
        assert_eq!(file[136..144], (-2_i64).to_le_bytes());
        let mut floats = exported;
        floats.kind = NumberKind::Float;
        assert!(floats.npy().windows(5).any(|part| part == b"'<f8'"));
        floats.kind = NumberKind::Other;
        floats.values[1] = Parsed::NotANumber;
        let file = floats.npy();
        assert!(file.windows(5).any(|part| part == b"'<f8'"));
        assert_eq!(file[128..136], 1.0_f64.to_le_bytes());
    }

    #[test]
    fn exported_table_has_a_line_per_rank() {
        let mut exported = Exported {
            ranks: vec![0, 7],
            shape: vec![1, 2],
            values: ints(&[1, 2, 3, 4]),
            kind: NumberKind::Other,
        };
        exported.values[3] = Parsed::InfiniteDown;
        let file = exported.csv();
        assert_eq!(file, "rank,[0][0],[0][1]\n0,1,2\n7,3,-inf\n");
        let scalar = |number, kind| Exported {
            ranks: vec![3],
            shape: Vec::new(),
            values: vec![Parsed::Finite(Number::Float(number))],
            kind,
        };
        for (number, kind, text) in [
            (0.1, NumberKind::Other, "0.1"),
            (0.100000001, NumberKind::Single, "0.1"),
            (0.100000001, NumberKind::Float, "0.100000001"),
            (0.333333343, NumberKind::Single, "0.33333334"),
            (-1e300, NumberKind::Float, "-1e300"),
            (1.17549435e-38, NumberKind::Single, "1.1754944e-38"),
        ] {
            let file = scalar(number, kind).csv();
            assert_eq!(file, format!("rank,value\n3,{text}\n"));
        }
        let file = scalar(0.100000001, NumberKind::Single).npy();
        assert!(file.ends_with(&f64::from(0.1_f32).to_le_bytes()));
    }
}
