//! Readable names for functions that a compiler has derived from the user's: OpenMP regions, clones for constant
//! arguments, cold parts.

use std::borrow::Cow;

/// Suffixes of the names that GCC and LLVM give to parts and clones of a function; a number may follow each.
const CLONES: [&str; 9] = [
    ".constprop",
    ".isra",
    ".part",
    ".cold",
    ".lto_priv",
    ".localalias",
    ".llvm",
    ".clone",
    ".ipa",
];
/// Marks of OpenMP and OpenACC regions in function names that GCC generates; a number follows each.
const REGIONS: [(&str, &str); 2] = [("._omp_fn", "OpenMP"), ("._oacc_fn", "OpenACC")];
/// Suffixes of OpenMP regions in function names that LLVM generates; a number may follow.
const LLVM_REGIONS: [&str; 2] = [".omp_outlined", ".omp_outlined_debug__"];

/// A function's name as a person reads it: `main._omp_fn.0` is `main [OpenMP region 0]`, `solve.constprop.0` is `solve`.
#[must_use]
pub fn function(name: &str) -> Cow<'_, str> {
    let whole = without_clones(name);
    for (mark, what) in REGIONS {
        if let Some((of, number)) = whole.split_once(mark)
            && let Some(number) = number.strip_prefix('.').filter(|it| is_number(it))
        {
            return Cow::Owned(format!("{of} [{what} region {number}]"));
        }
    }
    let (numbered, number) = match whole.rsplit_once('.') {
        Some((before, number)) if is_number(number) => (before, format!(" {number}")),
        _ => (whole, String::new()),
    };
    for mark in LLVM_REGIONS {
        if let Some(of) = numbered.strip_suffix(mark) {
            let of = if of.is_empty() { "" } else { &format!("{of} ") };
            return Cow::Owned(format!("{of}[OpenMP region{number}]"));
        }
    }
    Cow::Borrowed(whole)
}

/// A name without the suffixes of clones, of which there may be several.
fn without_clones(name: &str) -> &str {
    let mut whole = name;
    if let Some((before, clone)) = whole.rsplit_once(" [clone ")
        && clone.ends_with(']')
    {
        // As demanglers have it.
        return without_clones(before);
    }
    loop {
        let unnumbered = match whole.rsplit_once('.') {
            Some((before, number)) if is_number(number) => before,
            _ => whole,
        };
        let shorter = CLONES.iter().find_map(|mark| unnumbered.strip_suffix(mark));
        match shorter.filter(|it| !it.is_empty()) {
            Some(shorter) => whole = shorter,
            None => return whole,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_generated_names_are_shown_readably() {
        for (name, shown) in [
            ("main._omp_fn.0", "main [OpenMP region 0]"),
            ("solve._omp_fn.12.constprop.0", "solve [OpenMP region 12]"),
            ("halo._oacc_fn.1", "halo [OpenACC region 1]"),
            (".omp_outlined.", ".omp_outlined."),
            ("main.omp_outlined", "main [OpenMP region]"),
            ("main.omp_outlined.3", "main [OpenMP region 3]"),
            ("exchange.constprop.0", "exchange"),
            ("exchange.isra.0.part.1.cold", "exchange"),
            ("f.llvm.1234567890", "f"),
            ("push(int&&) [clone .isra.0] [clone .cold]", "push(int&&)"),
            (".cold", ".cold"),
            ("a.b", "a.b"),
            ("version.2", "version.2"),
            ("main", "main"),
            ("", ""),
        ] {
            assert_eq!(function(name), shown, "{name}");
        }
    }
}
