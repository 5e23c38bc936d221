//! Numbers as gdb prints them: parsing, exact order, and conversion to `f64`.

use std::cmp::Ordering;

/// Maximum magnitude of an integer, in bits. Sums over any session then fit into 128 bits.
const INT_BITS: u32 = 64;

/// A finite number.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer of magnitude below 2^64: exact. gdb prints whole floating-point numbers in the same form.
    Int(i128),
    /// Any other finite number.
    Float(f64),
}

/// The number that a printed value denotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parsed {
    /// A finite number.
    Finite(Number),
    /// `nan`.
    NotANumber,
    /// `inf`.
    InfiniteUp,
    /// `-inf`.
    InfiniteDown,
}

impl Parsed {
    /// The nearest `f64`; every value has one.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Finite(number) => number.to_f64(),
            Self::NotANumber => f64::NAN,
            Self::InfiniteUp => f64::INFINITY,
            Self::InfiniteDown => f64::NEG_INFINITY,
        }
    }
}

impl Number {
    /// The nearest `f64`.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    /// True if the number keeps the promise of its variant: an integer below 2^64 in magnitude, or a finite float.
    pub(super) fn is_valid(self) -> bool {
        match self {
            Self::Int(int) => int.unsigned_abs() >> INT_BITS == 0,
            Self::Float(float) => float.is_finite(),
        }
    }
}

impl Ord for Number {
    /// Exact order by value: an integer is never rounded.
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b).expect("finite"),
            (Self::Int(a), Self::Float(b)) => compare(a, b),
            (Self::Float(a), Self::Int(b)) => compare(b, a).reverse(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(int) => int.fmt(f),
            Self::Float(float) => float.fmt(f),
        }
    }
}

/// Compares an integer of magnitude below 2^64 with a finite float.
#[allow(clippy::cast_possible_truncation)]
fn compare(int: i128, float: f64) -> Ordering {
    // Beyond the range of `i128` the cast saturates to the right side. Within it, the cast only drops the fraction,
    // which decides if the whole parts are equal.
    let whole = float.trunc() as i128;
    int.cmp(&whole)
        .then_with(|| 0.0_f64.partial_cmp(&float.fract()).expect("finite"))
}

/// True for the digits of an integer that no `f64` equals. As a float it would be rounded, and its difference from
/// other numbers lost.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn is_rounded(digits: &str) -> bool {
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_exact = |int: i128| (int as f64) as i128 == int;
    is_integer && !digits.parse().is_ok_and(is_exact)
}

/// Parses a number as gdb prints it: `-3`, `0x1f`, `97 'a'`, `1.5e-05`, `-nan(0x8000000000000)`, `inf`. Booleans and
/// pointers are not numbers. `None` also for an integer beyond 64 bits that no `f64` equals.
#[must_use]
pub fn parse(text: &str) -> Option<Parsed> {
    let text = text.trim();
    // gdb prints a character behind its code.
    let text = match text.split_once(' ') {
        Some((code, shown)) if shown.starts_with('\'') && shown.ends_with('\'') => code,
        _ => text,
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if digits == "inf" {
        return Some(if negative {
            Parsed::InfiniteDown
        } else {
            Parsed::InfiniteUp
        });
    }
    if digits == "nan" || (digits.starts_with("nan(0x") && digits.ends_with(')')) {
        return Some(Parsed::NotANumber);
    }
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(u64::from_str_radix(hex, 16).ok()?)
        }
        Some(_) => return None,
        None if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        None => None,
    };
    let number = match magnitude {
        Some(magnitude) if negative => Number::Int(-i128::from(magnitude)),
        Some(magnitude) => Number::Int(magnitude.into()),
        None if is_rounded(digits) => return None,
        // Floats, and integers beyond 64 bits that are exact as floats. The addition makes -0 equal to 0.
        None => Number::Float(text.parse::<f64>().ok()? + 0.0),
    };
    number.is_valid().then_some(Parsed::Finite(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_printed_by_gdb_are_parsed() {
        let check = |text, expect: Option<Parsed>| assert_eq!(parse(text), expect, "{text}");
        let int = |int| Some(Parsed::Finite(Number::Int(int)));
        let float = |float| Some(Parsed::Finite(Number::Float(float)));
        check("42", int(42));
        check("-3", int(-3));
        check("0x1f", int(31));
        check("97 'a'", int(97));
        check("-1 '\\377'", int(-1));
        check("18446744073709551615", int(u64::MAX.into()));
        check("-9223372036854775808", int(i64::MIN.into()));
        check("18446744073709551616", float(18_446_744_073_709_551_616.0));
        check("18446744073709551617", None);
        check("-1267650600228229401496703205377", None);
        check("1.5e-05", float(1.5e-5));
        check("3.1415926535897931", float(std::f64::consts::PI));
        check("-0", int(0));
        check("nan(0x8000000000000)", Some(Parsed::NotANumber));
        check("-nan(0x8000000000000)", Some(Parsed::NotANumber));
        check("inf", Some(Parsed::InfiniteUp));
        check("-inf", Some(Parsed::InfiniteDown));
        for text in [
            "",
            "-",
            "+1",
            "true",
            "0x",
            "0xg",
            "1.5.2",
            "1 2",
            "x",
            "infinity",
            "NaN",
            "1e999",
            "(int *) 0x7ffe",
            "\"3\"",
            "{1, 2}",
            "-0x",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn integers_and_floats_compare_exactly() {
        let int = Number::Int;
        let float = Number::Float;
        let check = |a: Number, b: Number, expect| {
            assert_eq!(a.cmp(&b), expect, "{a} {b}");
            assert_eq!(b.cmp(&a), expect.reverse(), "{b} {a}");
        };
        check(int(3), float(3.0), Ordering::Equal);
        check(int(3), float(3.5), Ordering::Less);
        check(int(-3), float(-3.5), Ordering::Greater);
        check(int(0), float(-0.0), Ordering::Equal);
        check(
            int((1 << 53) + 1),
            float(9_007_199_254_740_992.0),
            Ordering::Greater,
        );
        check(
            int(u64::MAX.into()),
            float(18_446_744_073_709_551_616.0),
            Ordering::Less,
        );
        check(int(5), float(f64::MAX), Ordering::Less);
        check(int(5), float(f64::MIN), Ordering::Greater);
        check(float(0.5), float(0.25), Ordering::Greater);
    }
}
