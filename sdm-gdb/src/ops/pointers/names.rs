//! Finds the data that a Fortran expression names.

use std::ops::Range;

use sdm_debug::calls::{COMPUTED, INQUIRIES};

use super::words::{ALLOCATED, SIZEOF, dotted, is_operand, is_taken, is_type, matching};

/// Maximum nesting depth of brackets.
const DEPTH_MAX: usize = 16;
/// Maximum number of names in one expression.
const NAMES_MAX: usize = 256;
/// A variable, an element or a component in an expression; a function call looks the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) range: Range<usize>,
    /// Offset of the end of the first name, or of the expression in brackets.
    pub(super) base: usize,
    /// The parts after the first name.
    pub(super) parts: Vec<Part>,
    pub(super) role: Role,
}

/// A part of a name, with its range in the expression: the name of a component, or the text between the brackets of
/// subscripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Component(Range<usize>),
    Subscripts(Range<usize>),
}

/// The use that an expression makes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The value of the variable.
    Value,
    /// The address of the variable; for a pointer, of its target.
    Address,
    /// A property of the variable, such as its size.
    Inquiry,
    /// The type of the variable, which is not evaluated.
    Type,
}

/// A comparison with a quoted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) range: Range<usize>,
    pub(super) operator: Range<usize>,
    pub(super) is_equality: bool,
}

/// The names of an expression, in the order of their places. An outer name comes before those in its subscripts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) all: Vec<Name>,
    pub(super) comparisons: Vec<Comparison>,
    /// Ranges of the `sizeof` in front of parts of variables, and of the `allocated`.
    pub(super) asked: Vec<Range<usize>>,
    /// The offset behind the `=` with which the first name is assigned a value; `None` without one.
    pub(super) assigned: Option<usize>,
}

/// The data named in an expression. `None` for text that is not Fortran, is nested too deep, or has too many names.
pub(super) fn names(expression: &str) -> Option<Names> {
    let mut reader = Reader {
        text: expression,
        at: 0,
        depth: 0,
        found: Names::default(),
    };
    reader.items(false, Role::Value)?;
    let is_complete = reader.at == expression.len() && reader.found.all.len() <= NAMES_MAX;
    is_complete.then_some(reader.found)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    found: Names,
}

/// The last item that was read, with its place in the text.
enum Last {
    Operator,
    Operand(Range<usize>),
    Quoted(Range<usize>),
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, is_skipped: fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !is_skipped(c)).unwrap_or(rest.len());
    }

    fn blanks(&mut self) {
        self.skip(char::is_whitespace);
    }

    /// Reads operands and operators, up to the closing bracket if `is_inner`; `None` for text that is not Fortran.
    fn items(&mut self, is_inner: bool, role: Role) -> Option<()> {
        let mut last = Last::Operator;
        // True behind a unary `*` or `&`.
        let mut is_target = false;
        let mut comparison: Option<(Range<usize>, Range<usize>, bool)> = None;
        loop {
            self.blanks();
            let from = self.at;
            let Some(c) = self.peek() else {
                return (!is_inner).then_some(());
            };
            if let (')', true) = (c, is_inner) {
                return Some(());
            }
            if !is_operand(self.rest()) {
                let compares = self.operator(&last, &mut is_target)?;
                comparison = match (compares, last) {
                    (Some(is), Last::Operand(it) | Last::Quoted(it)) => {
                        Some((it, from..self.at, is))
                    }
                    _ => None,
                };
                last = Last::Operator;
                continue;
            }
            let count = self.found.all.len();
            let is_quoted = c == '\'';
            self.operand(match role {
                Role::Value if is_target => Role::Address,
                role => role,
            })?;
            let range = from..self.at;
            let is_named = |range: &Range<usize>| {
                let mut values = self.found.all.iter().filter(|it| it.role == Role::Value);
                values.any(|name| name.range == *range)
            };
            if let Some((first, operator, is_equality)) = comparison.take()
                && (is_quoted && is_named(&first)
                    || self.text[first.clone()].starts_with('\'')
                        && count < self.found.all.len()
                        && is_named(&range))
            {
                self.found.comparisons.push(Comparison {
                    range: first.start..range.end,
                    operator,
                    is_equality,
                });
            }
            is_target = false;
            last = match is_quoted {
                true => Last::Quoted(range),
                false => Last::Operand(range),
            };
        }
    }

    /// Reads an operator: `Some(Some(true))` for `==`, `Some(Some(false))` for `/=`, `Some(None)` for another one.
    /// `None` if no operator of Fortran begins here.
    fn operator(&mut self, last: &Last, is_target: &mut bool) -> Option<Option<bool>> {
        let rest = self.rest();
        if rest.starts_with("->") {
            return None;
        }
        let is_unary = matches!(last, Last::Operator);
        if let Some(word) = dotted(rest) {
            self.at += word.len();
            *is_target = false;
            return Some(match &*word.to_ascii_lowercase() {
                ".eq." => Some(true),
                ".ne." => Some(false),
                _ => None,
            });
        }
        let longer = ["**", "==", "/=", "<=", ">=", "=>"];
        let is_longer = longer.iter().any(|it| rest.starts_with(it));
        let compares = match rest.get(..2) {
            Some("==") => Some(true),
            Some("/=") => Some(false),
            _ => None,
        };
        let c = self.peek()?;
        match c {
            '*' if !is_longer => *is_target = is_unary,
            '&' if is_unary => *is_target = true,
            '+' | '-' | '/' | '*' | '=' | '<' | '>' | ',' | ':' | '@' => *is_target = false,
            _ => return None,
        }
        self.at += 1 + usize::from(is_longer);
        Some(compares)
    }

    /// Reads a constant, a name, or an expression in brackets; `None` if none begins here.
    fn operand(&mut self, role: Role) -> Option<()> {
        match self.peek()? {
            '\'' => {
                let close = self.rest()[1..].find('\'')?;
                self.at += close + 2;
                Some(())
            }
            '(' => self.bracketed(role),
            '.' if dotted(self.rest()).is_some() => {
                self.at += dotted(self.rest())?.len();
                Some(())
            }
            '.' if !self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => None,
            c if c.is_ascii_digit() || c == '.' => {
                self.number();
                Some(())
            }
            _ => self.name(role),
        }
    }

    fn number(&mut self) {
        let rest = self.rest();
        let mut end = 0;
        let bytes = rest.as_bytes();
        while let Some(byte) = bytes.get(end) {
            let is_sign = matches!(byte, b'+' | b'-')
                && end > 0
                && matches!(bytes[end - 1], b'e' | b'E' | b'd' | b'D')
                && !rest.starts_with("0x");
            // `1.eq.2`, but `1.e5` and `1.d0`.
            let is_word = *byte == b'.' && dotted(&rest[end..]).is_some();
            let is_part = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
            if is_word || !(is_part || is_sign) {
                break;
            }
            end += 1;
        }
        self.at += end;
    }

    fn bracketed(&mut self, role: Role) -> Option<()> {
        let from = self.at;
        let close = matching(self.rest())?;
        // `(*p)%count` is a name as a whole.
        let is_named = self.rest()[close + 1..]
            .trim_start()
            .starts_with(['%', '(']);
        let place = self.found.all.len();
        match is_named {
            true => {
                self.inner(Role::Address)?;
                self.parts(from, place, role)
            }
            false => self.inner(role),
        }
    }

    /// Reads brackets and the text within; `None` for text that is not Fortran, or nested too deep.
    fn inner(&mut self, role: Role) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.at += 1;
        self.items(true, role)?;
        self.at += 1;
        self.depth -= 1;
        Some(())
    }

    fn word(&mut self) -> Option<Range<usize>> {
        self.blanks();
        let from = self.at;
        self.skip(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
        (self.at > from).then_some(from..self.at)
    }

    fn name(&mut self, role: Role) -> Option<()> {
        let first = self.word()?;
        let word = self.text[first.clone()].to_ascii_lowercase();
        let mut is_plain = true;
        while self.rest().trim_start().starts_with("::") {
            self.blanks();
            self.at += 2;
            self.word()?;
            is_plain = false;
        }
        let has_arguments = self.rest().trim_start().starts_with('(');
        let is_function = word.starts_with("$_") || COMPUTED.contains(&&*word);
        let within = match &*word {
            _ if !is_plain => None,
            word if !has_arguments && is_taken(word) => None,
            word if is_type(word) => Some(Role::Type),
            word if word == SIZEOF || INQUIRIES.contains(&word) => Some(Role::Inquiry),
            _ => is_function.then_some(role),
        };
        if let Some(within) = within {
            self.blanks();
            let known = self.found.all.len();
            if has_arguments {
                self.inner(if role == Role::Type { role } else { within })?;
            }
            if word == SIZEOF {
                let is_whole = |name: &Name| name.parts.is_empty();
                if self.found.all[known..].iter().all(is_whole) {
                    self.found.all.truncate(known);
                } else {
                    self.found.asked.push(first);
                }
            } else if word == ALLOCATED {
                self.found.asked.push(first);
            }
            return Some(());
        }
        self.parts(first.start, self.found.all.len(), role)
    }

    /// Reads the components and subscripts after a name that begins at offset `from`. The name is inserted at index
    /// `place`, before the names within it.
    fn parts(&mut self, from: usize, place: usize, role: Role) -> Option<()> {
        let (base, mut parts) = (self.at, Vec::new());
        loop {
            let end = self.at;
            self.blanks();
            match self.peek() {
                Some('%') => {
                    self.at += 1;
                    parts.push(Part::Component(self.word()?));
                }
                Some('(') => {
                    let begin = self.at + 1;
                    self.inner(if role == Role::Type {
                        role
                    } else {
                        Role::Value
                    })?;
                    parts.push(Part::Subscripts(begin..self.at - 1));
                }
                _ => {
                    self.at = end;
                    break;
                }
            }
        }
        let range = from..self.at;
        let role = self.assigned(&range, role);
        let is_known = parts.is_empty() && !is_taken(&self.text[from..base]);
        if role != Role::Type && (role != Role::Address || !is_known) {
            let name = Name {
                range,
                base,
                parts,
                role,
            };
            self.found.all.insert(place, name);
        }
        Some(())
    }

    /// The role of a name that may be assigned to. It is the address for a variable of gdb, and for a pointer that is
    /// assigned an address.
    fn assigned(&mut self, range: &Range<usize>, role: Role) -> Role {
        let behind = self.rest().trim_start().strip_prefix('=');
        let Some(value) = behind.filter(|it| !it.starts_with('=')) else {
            return role;
        };
        if self.text[range.clone()].starts_with('$') || value.trim_start().starts_with('&') {
            return Role::Address;
        }
        if self.text[..range.start].trim().is_empty() {
            self.found.assigned = Some(self.text.len() - value.len());
        }
        role
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_data_are_found_in_fortran_expressions() {
        let check = |expression: &str, expect: &[&str]| {
            let found = names(expression).expect(expression);
            let values = found.all.iter().filter(|it| it.role == Role::Value);
            let found: Vec<&str> = values.map(|it| &expression[it.range.clone()]).collect();
            assert_eq!(found, expect, "{expression}");
        };
        check("count + 1", &["count"]);
        check("p % count*i**n", &["p % count", "i", "n"]);
        check(
            "boxes(k, p%n)%heat > 2.5e-3",
            &["boxes(k, p%n)%heat", "k", "p%n"],
        );
        check("&count", &[]);
        check("*count + *(p%n) - i", &["i"]);
        check("a*b", &["a", "b"]);
        check("&(v(k))-&(v(1))", &["k"]);
        check("(*p)%count == 1", &["(*p)%count"]);
        check("(p)%v(k)", &["(p)%v(k)", "k"]);
        check("(i + 1) * n", &["i", "n"]);
        check("associated(p%own) .and. i.eq.1.and.flag", &["i", "flag"]);
        check("allocated(heat(k))", &["k"]);
        check(
            "size(v, n) + abs(heat) + mod(i, p%n)",
            &["heat", "i", "p%n"],
        );
        check("(real) i + (integer(kind=8)) n", &["i", "n"]);
        check("kept::total + KEPT::P%N", &["kept::total", "KEPT::P%N"]);
        check("count = count + 1", &["count", "count"]);
        check("$t = count", &["count"]);
        check("$t == count", &["$t", "count"]);
        check("p = &q", &[]);
        check("real_count + real_8", &["real_count"]);
        check("$_strlen(name) + $rip", &["name", "$rip"]);
        check("(1.0, x) == z", &["x", "z"]);
        check("1_8 + 2.d0 + .5 + 0x1f + 1.e+5 - .true.", &[]);
        check(".not. flag", &["flag"]);
        check("name == 'it is p%n'", &["name"]);
        check("v(1:n)@2", &["v(1:n)", "n"]);
        check("-*p+-n", &["n"]);
    }

    #[test]
    fn text_that_is_not_fortran_has_no_variable_names() {
        for text in [
            "a->b", "a && b", "a[1]", "\"x\"", "o.f", "!a", "{int} p", "a || b", "(a", "a)", "f(",
            "a; b",
        ] {
            assert_eq!(names(text), None, "{text}");
        }
        let deep = "(".repeat(DEPTH_MAX + 1) + "a" + &")".repeat(DEPTH_MAX + 1);
        assert_eq!(names(&deep), None);
        let long = "a+".repeat(NAMES_MAX) + "a";
        assert_eq!(names(&long), None);
    }

    #[test]
    fn names_are_classified_as_value_address_or_inquiry() {
        let roles = |expression: &str| {
            let found = names(expression).unwrap().all;
            let role = |it: &Name| (expression[it.range.clone()].to_owned(), it.role);
            found.iter().map(role).collect::<Vec<_>>()
        };
        let check = |expression: &str, expect: &[(&str, Role)]| {
            let expect = expect
                .iter()
                .map(|(name, role)| ((*name).to_owned(), *role));
            assert_eq!(
                roles(expression),
                expect.collect::<Vec<_>>(),
                "{expression}"
            );
        };
        check(
            "size(p%v) + n",
            &[("p%v", Role::Inquiry), ("n", Role::Value)],
        );
        check("&p%v(k)", &[("p%v(k)", Role::Address), ("k", Role::Value)]);
        check("*p%n", &[("p%n", Role::Address)]);
        check("p%own = &q", &[("p%own", Role::Address)]);
        check("sizeof(count) + sizeof(real)", &[]);
        check("sizeof(p%v)", &[("p%v", Role::Inquiry)]);
        check(
            "(*p%own)%n",
            &[("(*p%own)%n", Role::Value), ("p%own", Role::Address)],
        );
    }

    #[test]
    fn assigned_value_begins_after_the_equals_sign() {
        for (expression, value) in [
            ("p%n = 'x'", Some(" 'x'")),
            ("count=7", Some("7")),
            ("a == b", None),
            ("$t = n", None),
            ("i + n = 7", None),
        ] {
            let from = names(expression).unwrap().assigned;
            assert_eq!(from.map(|from| &expression[from..]), value, "{expression}");
        }
    }
}
