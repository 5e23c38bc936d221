//! Fortran source: statements in free and in fixed form, the arguments of calls, and expressions that gdb evaluates
//! without side effects.

use sdm_mpi::ArgumentRole;

use super::source::{in_plain, tidy};

/// Maximum number of lines before a line, and after it, that can belong to its statement.
const LINES_MAX: u32 = 64;
/// Column, from 0, of the continuation mark in fixed form.
const MARK: usize = 5;
/// Columns of a line in fixed form. A number after them is ignored; punched cards had their numbers there.
const COLUMNS: usize = 72;
/// File extensions of fixed form, in lower case.
const FIXED: [&str; 5] = ["f", "for", "f77", "fpp", "ftn"];

/// The source form of Fortran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Free form: `&` at the end of a line continues the statement on the next line.
    Free,
    /// Fixed form: a mark in column 6 makes a line the continuation of the line before.
    Fixed,
}

impl Form {
    /// The form by the extension of a file's name, as compilers choose it.
    #[must_use]
    pub fn of(file: &str) -> Self {
        let extension = file.rsplit_once('.').map(|(_, it)| it.to_ascii_lowercase());
        match extension {
            Some(it) if FIXED.contains(&it.as_str()) => Self::Fixed,
            _ => Self::Free,
        }
    }

    /// The code of a line; `None` for a comment, an empty line or a preprocessor line.
    fn code(self, line: &str) -> Option<&str> {
        let is_comment = match self {
            Self::Free => line.starts_with('#'),
            Self::Fixed => line.starts_with(['c', 'C', '*', '!', 'd', 'D', '#']),
        };
        if is_comment {
            return None;
        }
        let mut quote = None;
        let mut end = line.len();
        for (at, c) in line.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"') => quote = Some(c),
                (None, '!') if self == Self::Free || at != MARK => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let code = match self {
            Self::Free => &line[..end],
            Self::Fixed => without_card_number(&line[..end]),
        };
        (!code.trim().is_empty()).then(|| code.trim_end())
    }

    /// True if the line itself tells that the statement continues on the next line, as in free form only.
    fn goes_on(self, code: &str) -> bool {
        self == Self::Free && code.ends_with('&')
    }

    /// True for a continuation line of fixed form. A line of free form does not tell it.
    fn continues(self, code: &str) -> bool {
        if self == Self::Free {
            return false;
        }
        let after_tab = code.strip_prefix('\t').and_then(|it| it.chars().next());
        if after_tab.is_some() {
            return after_tab.is_some_and(|c| ('1'..='9').contains(&c));
        }
        let label = code.get(..MARK).unwrap_or_default();
        let mark = code.get(MARK..).and_then(|it| it.chars().next());
        !label.is_empty() && label.trim().is_empty() && !matches!(mark, None | Some(' ' | '0'))
    }

    /// The code of a continuation line, without its mark. The second value is true if the code joins the line before
    /// without a space.
    fn continued(self, code: &str) -> (&str, bool) {
        match self {
            Self::Free => match code.trim_start().strip_prefix('&') {
                Some(rest) => (rest, true),
                None => (code, false),
            },
            Self::Fixed if code.starts_with('\t') => (&code[2..], false),
            Self::Fixed => (code.get(MARK + 1..).unwrap_or_default(), false),
        }
    }
}

fn without_card_number(line: &str) -> &str {
    let Some((code, number)) = line.split_at_checked(COLUMNS) else {
        return line;
    };
    let is_number = number.len() <= 8
        && number
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b' ');
    if is_number { code } else { line }
}

/// The whole statement that contains line `at`, joined into one line. The line may be any line of the statement.
/// `line` returns a line of the file by its number.
#[must_use]
pub fn statement(line: impl Fn(u32) -> Option<String>, at: u32, form: Form) -> String {
    let code = |number: u32| Some(form.code(&line(number)?)?.to_owned());
    let mut first = at;
    // Comments may stand between the lines of a statement.
    let mut number = at;
    while number > 1 && at - number < LINES_MAX {
        number -= 1;
        let Some(before) = code(number) else {
            continue;
        };
        let is_continued = code(first).is_some_and(|code| form.continues(&code));
        if !is_continued && !form.goes_on(&before) {
            break;
        }
        first = number;
    }
    let mut text = code(first).unwrap_or_default();
    for number in first + 1..=at.saturating_add(LINES_MAX) {
        let Some(next) = line(number) else {
            break;
        };
        let Some(next) = form.code(&next) else {
            continue;
        };
        if !form.goes_on(&text) && !form.continues(next) {
            break;
        }
        let (more, is_joined) = form.continued(next);
        if form.goes_on(&text) {
            text.pop();
        }
        if !is_joined {
            text.push(' ');
        }
        text.push_str(more);
    }
    tidy(&text)
}

/// The arguments of a call in a Fortran statement; `None` as for [`super::call_arguments`].
#[must_use]
pub fn fortran_arguments(statement: &str, function: &str) -> Option<Vec<String>> {
    in_plain(statement, function)
}

/// The argument of a role, found by its position or by its keyword: `comm=row`. `None` if the call does not have it.
#[must_use]
pub fn fortran_argument(arguments: &[String], place: usize, role: ArgumentRole) -> Option<String> {
    let keywords = role.keywords();
    let named = |argument: &String| {
        let (name, value) = argument.split_once('=')?;
        let name = name.trim().to_ascii_lowercase();
        let is_keyword = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_keyword && !value.starts_with('=')).then(|| (name, value.trim().to_owned()))
    };
    let found = match arguments
        .get(place)
        .filter(|argument| named(argument).is_none())
    {
        Some(argument) => argument.clone(),
        None => {
            let mut all = arguments.iter().filter_map(named);
            all.find(|(name, _)| keywords.contains(&name.as_str()))?.1
        }
    };
    // Constants of MPI are compared in upper case, as Fortran ignores case.
    let upper = found.to_ascii_uppercase();
    Some(if upper.starts_with("MPI_") {
        upper
    } else {
        found
    })
}

/// Inquiry functions of gdb for Fortran, whose argument is the variable itself, not its value.
pub const INQUIRIES: [&str; 9] = [
    "allocated",
    "associated",
    "kind",
    "lbound",
    "loc",
    "rank",
    "shape",
    "size",
    "ubound",
];
/// Functions for Fortran that gdb computes itself, from values.
pub const COMPUTED: [&str; 6] = ["abs", "ceiling", "cmplx", "floor", "mod", "modulo"];

/// True for the name of a function that gdb has for Fortran, in small or capital letters.
#[must_use]
pub fn is_gdb_function(name: &str) -> bool {
    let mut known = INQUIRIES.iter().chain(&COMPUTED);
    known.any(|it| it.eq_ignore_ascii_case(name.trim()))
}

/// The names in front of parentheses that can be array elements or function calls: evaluation is harmless if all are
/// arrays.
///
/// `None` if other syntax makes it unsafe.
#[must_use]
pub fn array_names(expression: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut plain = expression.to_owned();
    for (at, c) in crate::quotes::outside_quotes(expression) {
        let before = expression[..at].trim_end();
        let is_behind_name =
            before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ')');
        if c != '(' || !is_behind_name {
            continue;
        }
        names.push(&before[designator(before)?..]);
        plain.replace_range(at..=at, "[");
    }
    super::is_harmless(&plain).then_some(names)
}

/// Start of the designator at the end of a text: of `a%b(i)%c` in `x + a%b(i)%c`. `None` if the text does not end in
/// one.
fn designator(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut begin = text.len();
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => break,
            '(' => depth -= 1,
            _ if depth > 0 => {}
            c if c.is_alphanumeric() || c == '_' || c == '%' => {}
            _ => break,
        }
        begin = at;
    }
    (depth == 0 && begin < text.len()).then_some(begin)
}

/// True if gdb's text of a type is an array. Such a text ends in bounds, while that of a function type ends in its
/// arguments.
#[must_use]
pub fn is_array_type(text: &str) -> bool {
    let Some(rest) = text.trim_end().strip_suffix(')') else {
        return false;
    };
    let bounds = rest.rsplit_once('(').map_or("", |(_, bounds)| bounds);
    let is_bound = |c: char| c.is_ascii_digit() || ":*+-, ".contains(c);
    !bounds.is_empty() && bounds.chars().all(is_bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, at: u32, form: Form) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let line = |number: u32| {
            let index = usize::try_from(number).ok()?.checked_sub(1)?;
            lines.get(index).map(|line| (*line).to_owned())
        };
        statement(line, at, form)
    }

    #[test]
    fn fortran_statement_is_found_from_any_of_its_lines() {
        let free = "x = 1\ncall MPI_SSEND(MESHES(NM)%OMESH(NOM)%IMIN, 1, & ! it's one\n  ! a comment\n\n     MPI_INTEGER, \
                    PROCESS(NOM), &\n#ifdef X\n  & 100 + NM, MPI_COMM_WORLD, IERR)\ncall MPI_RECV(b)\n";
        let expect = "call MPI_SSEND(MESHES(NM)%OMESH(NOM)%IMIN, 1, MPI_INTEGER, PROCESS(NOM), 100 + NM, MPI_COMM_WORLD, IERR)";
        for line in [2, 5, 7] {
            assert_eq!(of(free, line, Form::Free), expect, "{line}");
        }
        assert_eq!(of(free, 1, Form::Free), "x = 1");
        assert_eq!(of(free, 8, Form::Free), "call MPI_RECV(b)");
        let card = format!("{:<72}00000120", "     &     MPI_INTEGER, LEFT,");
        let fixed = format!(
            "      x = 1\n      CALL MPI_SSEND(A, 1,\nC     a comment, (\n{card}\n     1     7, MPI_COMM_WORLD, IERR)\n      \
             x = '!'\n"
        );
        let fixed = fixed.as_str();
        let expect = "CALL MPI_SSEND(A, 1, MPI_INTEGER, LEFT, 7, MPI_COMM_WORLD, IERR)";
        for line in [2, 4, 5] {
            assert_eq!(of(fixed, line, Form::Fixed), expect, "{line}");
        }
        assert_eq!(of(fixed, 6, Form::Fixed), "x = '!'");
        let tabs = "\tcall mpi_send(a,\n\t1b, c)\n";
        assert_eq!(of(tabs, 2, Form::Fixed), "call mpi_send(a, b, c)");
        assert_eq!(of("call a(x&\n &y)", 2, Form::Free), "call a(xy)");
        assert_eq!(of("", 1, Form::Free), "");
        assert_eq!(
            [Form::of("a.F"), Form::of("a.f90"), Form::of("a.for")],
            [Form::Fixed, Form::Free, Form::Fixed]
        );
    }

    #[test]
    fn fortran_arguments_are_found_by_place_or_keyword() {
        use ArgumentRole as R;
        let text =
            "call mpi_send(a // b, 1, MPI_CHARACTER, process(nom), comm = row, tag=f(3), ierror=e)";
        let found = fortran_arguments(text, "MPI_Send").unwrap();
        let of = |place, role| fortran_argument(&found, place, role);
        assert_eq!(of(3, R::Destination).as_deref(), Some("process(nom)"));
        assert_eq!(of(4, R::Tag).as_deref(), Some("f(3)"));
        assert_eq!(of(5, R::Communicator).as_deref(), Some("row"));
        assert_eq!(of(7, R::Root), None);
        let world = ["mpi_comm_world".to_owned()];
        let world = fortran_argument(&world, 0, R::Communicator);
        assert_eq!(world.as_deref(), Some("MPI_COMM_WORLD"));
        let text = "if (a == b) call MPI_BARRIER(comm, ierr)";
        assert_eq!(fortran_arguments(text, "MPI_Barrier").unwrap()[0], "comm");
    }

    #[test]
    fn array_elements_are_distinguished_from_calls() {
        let check = |text, expect: Option<&[&str]>| {
            assert_eq!(array_names(text).as_deref(), expect, "{text}")
        };
        check("left", Some(&[]));
        check("(left + 1)", Some(&[]));
        check("PROCESS(NOM)", Some(&["PROCESS"]));
        check("1 + a%b(i)%c (j(k), 2)", Some(&["a%b", "a%b(i)%c", "j"]));
        check("n = 3", None);
        for (text, expect) in [
            ("type = integer(kind=4) (0:4)", true),
            ("type = integer(kind=4), allocatable (-1:2,*)", true),
            ("type = integer(kind=8), pointer (:)", true),
            ("type = integer(kind=4)", false),
            ("type = integer(kind=4) (integer(kind=4))", false),
            ("type = integer(kind=4) (void)", false),
            ("type = Type mesh_t", false),
            ("", false),
        ] {
            assert_eq!(is_array_type(text), expect, "{text}");
        }
    }
}
