//! Names of functions from the names of the linker, as gdb shows them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Maximum length of a name that is demangled or gets a further prefix, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 1 << 16;

const OPERATOR: &str = "operator";
const LITERAL: &str = "::operator \"\"";
/// Names of operators whose characters are brackets elsewhere; longer ones come first.
const SIGNS: [&str; 13] = [
    "<=>", "<<=", ">>=", "->*", "()", "[]", "->", "<<", ">>", "<=", ">=", "<", ">",
];
/// The casts before numbers in template arguments, and the suffixes that gdb writes after the numbers instead.
const NUMBERS: [(&str, &str); 5] = [
    ("(unsigned long long)", "ull"),
    ("(unsigned long)", "ul"),
    ("(unsigned int)", "u"),
    ("(long long)", "ll"),
    ("(long)", "l"),
];

/// The demangled form of a linker name.
pub(super) fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    cplus(name, &DemangleOptions::default()).map_or_else(
        || without_number(name).to_owned(),
        |full| in_words_of_gdb(&without_returns_of_outer(&full, is_template(name))),
    )
}

/// The name of a nested function (`inner.0`, in Fortran and C) without the number that the compiler has added.
fn without_number(name: &str) -> &str {
    let is_word = |it: &str| {
        it.bytes()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
    };
    match name.rsplit_once('.') {
        Some((word, number)) if is_word(word) && number.bytes().all(|it| it.is_ascii_digit()) => {
            word
        }
        _ => name,
    }
}

/// The demangled linker name of a C++ function, without its parameters; `None` if the name is not of C++.
pub(super) fn without_parameters(name: &str) -> Option<String> {
    let options = DemangleOptions::default().no_params().no_return_type();
    let mut name = cplus(name, &options)?;
    let qualifiers = [" const", " volatile", " &", " &&"];
    while let Some(rest) = qualifiers.iter().find_map(|it| name.strip_suffix(it)) {
        name.truncate(rest.len());
    }
    Some(in_words_of_gdb(&name))
}

fn cplus(name: &str, options: &DemangleOptions) -> Option<String> {
    if name.len() > NAME_BYTES_MAX || !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name.as_bytes()).ok()?;
    symbol.demangle_with_options(options).ok().map(literal)
}

/// A name as gdb has it. For a literal operator the demangler writes `operator_km::operator ""`.
fn literal(name: String) -> String {
    let parts = name.split_once(LITERAL).and_then(|(before, after)| {
        let (scope, own) = before.rsplit_once(OPERATOR)?;
        Some((scope, own, literal(after.to_owned())))
    });
    match parts {
        Some((scope, own, rest)) => format!("{scope}{OPERATOR}\"\" {own}{rest}"),
        None => name,
    }
}

/// True for an instance of a template function: its full name begins with its return type.
fn is_template(name: &str) -> bool {
    without_parameters(name).is_some_and(|it| {
        let is_operator = |sign: &str| it.ends_with(&format!("{OPERATOR}{sign}"));
        it.ends_with('>') && !SIGNS.iter().any(|sign| is_operator(sign))
    })
}

/// An open bracket in a name, or the whole name. `begin` is the start of the text after the last comma in it.
#[derive(Clone, Copy)]
struct Bracket {
    begin: usize,
    /// Start of the last word in the bracket.
    word: usize,
    /// Start of the word before the last parameters in the bracket.
    function: usize,
}

impl Bracket {
    fn at(begin: usize) -> Self {
        Self {
            begin,
            word: begin,
            function: begin,
        }
    }
}

/// A name without the return types of the functions that enclose a local entity, as gdb has it. gdb has
/// `run<f<int>(int)::{lambda()#1}>` where the demangler writes `run<void f<int>(int)::{lambda()#1}>`. The return type
/// of a template function stays.
fn without_returns_of_outer(name: &str, is_template: bool) -> String {
    let mut last = Bracket::at(0);
    let mut outer = Vec::new();
    let mut shown = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(byte) = name.as_bytes().get(at) {
        let rest = name.get(at..).unwrap_or_default();
        let length = operator(rest).unwrap_or(1);
        match byte {
            b'(' | b'<' | b'{' | b'[' => {
                if *byte == b'(' {
                    last.function = last.word;
                }
                outer.push(std::mem::replace(&mut last, Bracket::at(at + 1)));
            }
            b')' | b'>' | b'}' | b']' => {
                last = outer.pop().unwrap_or(last);
                let after = rest.get(1..).unwrap_or_default();
                let after = after.strip_prefix(" const").unwrap_or(after);
                let is_function = *byte == b')' && !name[..at].ends_with("(anonymous namespace");
                let has_return = last.begin >= copied && last.function > last.begin;
                let is_whole = outer.is_empty() && is_template;
                if is_function && after.starts_with("::") && has_return && !is_whole {
                    shown.push_str(&name[copied..last.begin]);
                    copied = last.function;
                }
            }
            b',' => last = Bracket::at(at + 2),
            b' ' if !rest.starts_with(" const::") => last.word = at + 1,
            _ => {}
        }
        at += length;
    }
    shown + &name[copied..]
}

/// Length of an operator name at the start of a text, including the space before a type: its characters are no
/// brackets. `None` if the text begins with no operator name.
fn operator(text: &str) -> Option<usize> {
    let sign = text.strip_prefix(OPERATOR)?;
    let sign = SIGNS.iter().chain(&[" "]).find(|it| sign.starts_with(**it));
    Some(OPERATOR.len() + sign.map_or(0, |it| it.len()))
}

/// A name with template arguments as gdb writes them: `array<double, 3ul>` for `array<double, (unsigned long)3>`, and
/// no comma before an empty list of arguments or parameters. Functions that adjust `this` get gdb's name, too.
fn in_words_of_gdb(name: &str) -> String {
    let thunk = name
        .strip_prefix("{virtual override thunk({")
        .and_then(|it| it.strip_suffix(")}"))
        .and_then(|it| it.split_once("}, "));
    if let Some((offset, function)) = thunk {
        let is_virtual = offset.starts_with("virtual");
        let kind = if is_virtual { "virtual" } else { "non-virtual" };
        return format!("{kind} thunk to {}", in_words_of_gdb(function));
    }
    let mut name = name.replace(", >", ">").replace(", )", ")");
    for (cast, suffix) in NUMBERS {
        let mut parts = name.split(cast);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.trim_start_matches(|it: char| it == '-' || it.is_ascii_digit());
            let (number, rest) = part.split_at(part.len() - number.len());
            let is_number = !number.is_empty();
            whole.extend(if is_number {
                [number, suffix, rest]
            } else {
                [cast, "", rest]
            });
        }
        name = whole;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_of_a_literal_has_its_name_in_c_plus_plus() {
        let check = |linker: &str, full: &str, bare: &str| {
            assert_eq!(demangled(linker), full);
            assert_eq!(without_parameters(linker).as_deref(), Some(bare));
        };
        check(
            "_Zli3_kmy",
            "operator\"\" _km(unsigned long long)",
            "operator\"\" _km",
        );
        check(
            "_ZN5unitsli3_kmEy",
            "units::operator\"\" _km(unsigned long long)",
            "units::operator\"\" _km",
        );
        check("_Z1fi", "f(int)", "f");
    }

    #[test]
    fn template_arguments_of_a_bare_name_equal_those_of_gdb() {
        for (linker, bare) in [
            ("_ZN6MatrixIdLm3EE5solveEv", "Matrix<double, 3ul>::solve"),
            ("_Z3levILln5EEii", "lev<-5l>"),
            ("_Z2usILj3ELy4EEii", "us<3u, 4ull>"),
            ("_Z4callIZ5plainvE3$_0JEEiT_", "call<plain()::$_0>"),
        ] {
            assert_eq!(without_parameters(linker).as_deref(), Some(bare));
        }
    }

    /// The names are those of `c++filt -i`, which has gdb's options.
    #[test]
    fn cplus_names_equal_those_of_gdb() {
        for (linker, full) in [
            (
                "_Z3runIZ5outerIdET_S1_EUlvE_EvS1_",
                "void run<outer<double>(double)::{lambda()#1}>(outer<double>(double)::{lambda()#1})",
            ),
            (
                "_ZZ5outerIiET_S0_EN1L4lessERKi",
                "outer<int>(int)::L::less(int const&)",
            ),
            (
                "_ZZ5outerIiET_S0_EN1LgtEi",
                "outer<int>(int)::L::operator>(int)",
            ),
            (
                "_ZZ2auIiEDaT_ENKUlvE_clEv",
                "au<int>(int)::{lambda()#1}::operator()() const",
            ),
            (
                "_ZZ4mainENKUlT_E_clIiEEDaS_",
                "auto main::{lambda(auto:1)#1}::operator()<int>(int) const",
            ),
            (
                "_ZThn16_N7QLayoutD1Ev",
                "non-virtual thunk to QLayout::~QLayout()",
            ),
            ("_ZTv0_n24_N2cv1AD0Ev", "virtual thunk to cv::A::~A()"),
            (
                "_ZNK5torch2nn13MaxUnpoolImplILm2ENS0_15MaxUnpool2dImplEE12pretty_printERSo",
                "torch::nn::MaxUnpoolImpl<2ul, torch::nn::MaxUnpool2dImpl>::pretty_print(std::ostream&) const",
            ),
            (
                "_ZN4gdcm7ElementILx1ELi218367EED2Ev",
                "gdcm::Element<1ll, 218367>::~Element()",
            ),
            (
                "_ZN4llvm15AnalysisManagerINS_6ModuleEJEE5clearEv",
                "llvm::AnalysisManager<llvm::Module>::clear()",
            ),
            (
                "_ZNK6google8protobuf8internal16RepeatedIteratorIfEptEv",
                "google::protobuf::internal::RepeatedIterator<float>::operator->() const",
            ),
            ("_ZN12_GLOBAL__N_11fEi", "(anonymous namespace)::f(int)"),
        ] {
            assert_eq!(demangled(linker), full, "{linker}");
        }
    }

    #[test]
    fn number_suffix_of_a_nested_function_is_removed() {
        for (linker, shown) in [
            ("inner.0", "inner"),
            ("sum_up.12", "sum_up"),
            ("solve.constprop.0", "solve.constprop.0"),
            ("Inner.0", "Inner.0"),
            ("main", "main"),
        ] {
            assert_eq!(demangled(linker), shown);
        }
    }
}
