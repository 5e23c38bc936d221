//! Expressions for the parts of a value, derived from the expression of the whole.

use sdm_debug::reply::VarObject;

use crate::memory;

/// The way in which an expression names the parts of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WholeKind {
    /// Members of a structure, or elements of an array.
    Plain,
    /// The value is a pointer: the parts are those of the object to which it points.
    Pointer,
    /// Elements of a Fortran array, or components of a derived type.
    Fortran,
    /// A pretty-printer has made the parts. A function of SDM's in gdb finds them by number.
    Made,
}

/// Values with pretty-printers whose parts have the names of elements and members.
const NAMED: [&str; 4] = ["std::vector<", "std::array<", "std::deque<", "std::pair<"];
/// Prefixes of such values, as their pretty-printers print them.
const NAMED_TEXTS: [&str; 2] = ["std::vector", "std::deque"];

impl WholeKind {
    /// The kind of a value, from the text that gdb has printed for it.
    pub(crate) fn of_text(text: &str) -> Self {
        if memory::pointer(text).is_some() {
            return Self::Pointer;
        }
        // The parts of a structure or array of Fortran. No value of C with parts is in parentheses.
        if text.starts_with('(') && text.ends_with(')') {
            return Self::Fortran;
        }
        // A pretty-printer's own words are before the parts.
        let (before, _) = text.split_once('{').unwrap_or_default();
        match before.ends_with(" = ") && !NAMED_TEXTS.iter().any(|of| text.starts_with(of)) {
            true => Self::Made,
            false => Self::Plain,
        }
    }

    /// The kind for a part whose value has this text.
    pub(crate) fn of(child: &VarObject, text: &str) -> Self {
        let of_type = |of: &str| child.type_name.starts_with(of);
        if child.pretty && !NAMED.iter().any(|of| of_type(of)) {
            return Self::Made;
        }
        if memory::pointer(text).is_some() {
            return Self::Pointer;
        }
        // A tuple of Rust is `(i32, f64)`, and an array of Fortran `real(kind=8) (4,5)`.
        match child.type_name.ends_with(')') && !of_type("(") || of_type("Type ") {
            true => Self::Fortran,
            false => Self::Plain,
        }
    }
}

/// A value whose parts are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentValue {
    /// The expression of the value; `None` if no expression names it.
    pub(crate) expression: Option<String>,
    pub(crate) kind: WholeKind,
}

impl ParentValue {
    /// The expression of a part of the value, with its number among the parts; `None` if no expression names it.
    pub(crate) fn part(&self, child: &VarObject, number: u32) -> Option<String> {
        let whole = self.expression.as_deref().map(operand)?;
        let part = child.expression.as_str();
        let index = part.trim_start_matches('[').trim_end_matches(']');
        let is_index = is_number(index.trim_start_matches('-'));
        match self.kind {
            WholeKind::Made => {
                let whole = self.expression.as_deref()?;
                Some(format!("$_sdm_child({whole}, {number})"))
            }
            WholeKind::Fortran if is_index => Some(subscripted(&whole, index, &child.type_name)),
            _ if is_index => Some(format!("{whole}[{index}]")),
            _ if part.starts_with('*') => Some(format!("*{whole}")),
            // The members of an anonymous member belong to the structure around it.
            _ if part.starts_with("<anonymous ") => Some(whole),
            // A part of a tuple of Rust.
            _ if part.strip_prefix("__").is_some_and(is_number) => {
                Some(format!("{whole}.{}", &part[2..]))
            }
            // A base class has the name of its type.
            _ if part == child.type_name => match self.kind {
                WholeKind::Pointer => Some(format!("*({part} *) {whole}")),
                _ => Some(format!("*({part} *) &{whole}")),
            },
            WholeKind::Pointer if is_name(part) => Some(format!("{whole}->{part}")),
            WholeKind::Fortran if is_name(part) => Some(format!("{whole}%{part}")),
            _ if is_name(part) => Some(format!("{whole}.{part}")),
            _ => None,
        }
    }
}

/// A part of a Fortran array with several dimensions: gdb lists by the last subscript first, `m(:,2)` and then `m(1,2)`.
fn subscripted(whole: &str, index: &str, type_name: &str) -> String {
    if let Some((first, last)) = whole.rsplit_once(':').filter(|_| whole.ends_with(')')) {
        return format!("{first}{index}{last}");
    }
    let bounds = type_name.rsplit_once(" (");
    let inner = bounds.map_or(0, |(_, bounds)| bounds.split(',').count());
    format!("{whole}({}{index})", ":,".repeat(inner))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// True for an element or section of a Fortran array, or a part of one: `a(2)%v`, `m(:,2)`.
fn is_element(expression: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_%(),:-".contains(c);
    expression.starts_with(|c: char| c.is_alphabetic()) && expression.chars().all(is_part)
}

/// The expression in parentheses, if a suffix would otherwise apply only to a part of it.
fn operand(expression: &str) -> String {
    let is_simple = |c: char| c.is_alphanumeric() || "_.[]>-:%".contains(c);
    let is_element = is_element(expression);
    match expression.chars().all(is_simple) && !expression.starts_with('-') || is_element {
        true => expression.to_owned(),
        false => format!("({expression})"),
    }
}

#[cfg(test)]
mod tests {
    use sdm_debug::reply::Value;

    use super::*;

    fn child(expression: &str, type_name: &str) -> VarObject {
        VarObject {
            name: "dap1.x".to_owned(),
            expression: expression.to_owned(),
            type_name: type_name.to_owned(),
            value: Value {
                text: String::new(),
                cut: None,
            },
            children: 0,
            more: false,
            pretty: false,
        }
    }

    #[test]
    fn member_expression_is_built_from_its_parent() {
        use WholeKind::{Fortran, Made, Plain, Pointer};
        for (whole, kind, part, type_name, expect) in [
            ("f", Plain, "data", "std::vector<int>", Some("f.data")),
            ("f.data", Plain, "[3]", "int", Some("f.data[3]")),
            ("a[1]", Plain, "0", "int", Some("a[1][0]")),
            ("p", Pointer, "x", "int", Some("p->x")),
            ("p->next", Pointer, "x", "int", Some("p->next->x")),
            ("n", Pointer, "*n", "int", Some("*n")),
            ("*n", Plain, "x", "int", Some("(*n).x")),
            ("a + 1", Plain, "x", "int", Some("(a + 1).x")),
            ("d", Plain, "Base", "Base", Some("*(Base *) &d")),
            ("u", Plain, "<anonymous union>", "union {...}", Some("u")),
            ("t", Fortran, "2", "real(kind=8)", Some("t(2)")),
            ("t", Fortran, "3", "real(kind=8) (4,5)", Some("t(:,:,3)")),
            (
                "t(:,:,3)",
                Fortran,
                "2",
                "real(kind=8) (4)",
                Some("t(:,2,3)"),
            ),
            ("t(:,2,3)", Fortran, "-1", "real(kind=8)", Some("t(-1,2,3)")),
            ("own", Fortran, "id", "integer(kind=4)", Some("own%id")),
            ("own%v", Fortran, "2", "integer(kind=4)", Some("own%v(2)")),
            ("t", Plain, "__1", "i32", Some("t.1")),
            ("m", Made, "[\"a\"]", "int", Some("$_sdm_child(m, 7)")),
            ("f", Plain, "<odd>", "int", None),
        ] {
            let whole = ParentValue {
                expression: Some(whole.to_owned()),
                kind,
            };
            let found = whole.part(&child(part, type_name), 7);
            assert_eq!(found.as_deref(), expect, "{whole:?} {part}");
        }
    }

    #[test]
    fn kind_of_value_is_derived_from_text_and_type() {
        let of = WholeKind::of_text;
        assert_eq!(of("{a = 1}"), WholeKind::Plain);
        assert_eq!(of("( id = 3, v = (1, 2) )"), WholeKind::Fortran);
        assert_eq!(of("(5)"), WholeKind::Fortran);
        assert_eq!(
            of("std::vector of length 2, capacity 2 = {1, 2}"),
            WholeKind::Plain
        );
        assert_eq!(of("std::map with 1 element = {[1] = 2}"), WholeKind::Made);
        assert_eq!(of("Grid of 2 x 2 = {1, 2, 3, 4}"), WholeKind::Made);
        assert_eq!(of("x::Cell {id: 3}"), WholeKind::Plain);
        assert_eq!(of("(struct node *) 0x5555"), WholeKind::Pointer);
        let tuple = child("__0", "(i32, f64)");
        assert_eq!(WholeKind::of(&tuple, "{...}"), WholeKind::Plain);
        let mut vector = child("data", "std::vector<double, std::allocator<double> >");
        vector.pretty = true;
        assert_eq!(WholeKind::of(&vector, "{...}"), WholeKind::Plain);
        vector.type_name = "std::map<int, int>".to_owned();
        assert_eq!(WholeKind::of(&vector, "{...}"), WholeKind::Made);
        let array = child("t", "real(kind=8) (10)");
        assert_eq!(WholeKind::of(&array, "(1, 2)"), WholeKind::Fortran);
        let derived = child("own", "Type cell");
        assert_eq!(WholeKind::of(&derived, "( id = 3 )"), WholeKind::Fortran);
    }
}
