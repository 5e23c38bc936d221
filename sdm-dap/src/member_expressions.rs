//! Expressions for the parts of a value, derived from the expression of the whole.

use sdm_debug::calls::is_gdb_function;
use sdm_debug::reply::VarObject;

use crate::memory;

/// The way in which an expression names the parts of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WholeKind {
    /// Members of a structure, or elements of an array.
    Plain,
    /// The value is a pointer: the parts are those of the object to which it points.
    Pointer,
    /// A reference of C++ to an object, which can be of a derived class.
    Reference,
    /// As `Pointer`, in Rust, which has no `->`.
    RustPointer,
    /// Elements of a Fortran array or section, or components of a derived type.
    Fortran,
    /// A row of a Fortran array: each `:` of its expression stands for a subscript that is to be filled in.
    FortranRow,
    /// A pretty-printer has made the parts. A function of SDM's in gdb finds them by number.
    Made,
}

/// Values with pretty-printers whose parts have the names of elements and members.
const NAMED: [&str; 4] = ["std::vector<", "std::array<", "std::deque<", "std::pair<"];
/// Prefixes of the printed values of [`NAMED`], as their pretty-printers write them.
const NAMED_TEXTS: [&str; 2] = ["std::vector", "std::deque"];
/// Beginnings of the types of pointers in Rust.
const RUST_POINTERS: [&str; 3] = ["*mut ", "*const ", "&"];

impl WholeKind {
    /// The kind of a value's parts, from the text that gdb has printed for the value.
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

    /// The kind of a value's parts, from the variable object of the value.
    pub(crate) fn of(object: &VarObject) -> Self {
        let of_type = |of: &str| object.type_name.starts_with(of);
        if object.pretty && !NAMED.iter().any(|of| of_type(of)) {
            return Self::Made;
        }
        if RUST_POINTERS.iter().any(|of| of_type(of)) && !of_type("&[") && !of_type("&str") {
            return Self::RustPointer;
        }
        if of_type("PTR TO -> (") {
            return Self::Fortran;
        }
        if memory::pointer(&object.value.text).is_some() {
            return Self::Pointer;
        }
        if object.type_name.ends_with(" &") {
            return Self::Reference;
        }
        // A tuple of Rust is `(i32, f64)`, and an array of Fortran `real(kind=8) (4,5)`.
        match object.type_name.ends_with(')') && !of_type("(") || of_type("Type ") {
            true => Self::Fortran,
            false => Self::Plain,
        }
    }

    fn is_fortran(self) -> bool {
        matches!(self, Self::Fortran | Self::FortranRow)
    }
}

/// A value whose parts are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentValue {
    /// The expression of the value; `None` if no expression names it.
    pub(crate) expression: Option<String>,
    pub(crate) kind: WholeKind,
    /// The type of the value; for a pointer or a reference that of the object that it has. Empty if it is not known.
    pub(crate) type_name: String,
}

impl ParentValue {
    /// True for a variable by its name: only of such gdb tells the type of the object behind a reference.
    pub(crate) fn is_variable(&self) -> bool {
        self.expression.as_deref().is_some_and(is_name)
    }

    /// The value, as it is known by its parts. An object with a base class may be behind a reference or a pointer to
    /// that class.
    pub(crate) fn with_parts(&self, children: &[VarObject]) -> Self {
        let mut known = self.clone();
        let is_derived = children.iter().any(|it| it.expression == it.type_name);
        if !is_derived {
            known.type_name.clear();
        }
        if self.kind == WholeKind::Reference {
            known.kind = WholeKind::Plain;
            if let Some(whole) = known.expression.as_deref().filter(|_| is_derived) {
                known.kind = WholeKind::Pointer;
                known.expression = Some(format!("&{}", operand(whole)));
                known.type_name = self.type_name.replace(" &", " *");
            }
        }
        // gdb knows the object behind a variable, but not behind a function.
        let is_made = |it: &&str| it.starts_with("$_sdm_child(");
        if let Some(whole) = known.expression.as_deref().filter(is_made)
            && known.kind == WholeKind::Pointer
            && is_derived
        {
            known.expression = Some(format!("({}) {whole}", known.type_name));
        }
        known
    }

    /// A part of the value as a value with parts of its own, by its number among the parts.
    pub(crate) fn part(&self, child: &VarObject, number: u32) -> Self {
        let is_row = index(child).is_some() && child.type_name.ends_with(')');
        let is_section = || {
            self.expression
                .as_deref()
                .is_some_and(|it| section(it).is_some())
        };
        let kind = match self.kind {
            WholeKind::FortranRow if is_row => WholeKind::FortranRow,
            WholeKind::Fortran if is_row && !is_section() => WholeKind::FortranRow,
            kind if kind.is_fortran() => WholeKind::Fortran,
            _ => WholeKind::of(child),
        };
        Self {
            expression: self.named(child, number),
            kind,
            type_name: child.type_name.clone(),
        }
    }

    /// The expression of a part of the value, with its number among the parts; `None` if no expression names it.
    fn named(&self, child: &VarObject, number: u32) -> Option<String> {
        use WholeKind::{Fortran, FortranRow, Made, Pointer, RustPointer};
        let expression = self.expression.as_deref()?;
        if self.kind == Made {
            return Some(format!("$_sdm_child({expression}, {number})"));
        }
        let part = child.expression.as_str();
        if let Some(index) = index(child) {
            return match self.kind {
                FortranRow => filled(expression, index),
                Fortran => subscripted(expression, index, &child.type_name),
                RustPointer => Some(format!("(*{})[{index}]", operand(expression))),
                _ => Some(format!("{}[{index}]", operand(expression))),
            };
        }
        let whole = match self.kind {
            RustPointer if !part.starts_with('*') => format!("(*{})", operand(expression)),
            _ => operand(expression),
        };
        let of = match (self.kind, &*self.type_name) {
            (Pointer, name) if !name.is_empty() => format!("({name}) {whole}"),
            _ => whole.clone(),
        };
        match self.kind {
            _ if part.starts_with('*') => Some(format!("*{whole}")),
            // The members of an anonymous member belong to the structure around it. The number that tells the variants of
            // Rust's enumerations apart has no name either.
            _ if part.starts_with("<anonymous ") => {
                child.type_name.ends_with("{...}").then_some(of)
            }
            // A part of a tuple of Rust. `t.1.0` would contain the number `1.0`.
            _ if part.strip_prefix("__").is_some_and(is_number) => {
                let last = whole.rsplit('.').next().unwrap_or_default();
                match is_number(last) {
                    true => Some(format!("({whole}).{}", &part[2..])),
                    false => Some(format!("{whole}.{}", &part[2..])),
                }
            }
            // A base class has the name of its type.
            Pointer if part == child.type_name => Some(format!("*({part} *) {of}")),
            _ if part == child.type_name => Some(format!("*({part} *) &{whole}")),
            // The parts of a variant of Rust are those of its enumeration.
            _ if is_variant(child) => Some(whole),
            Pointer if is_name(part) => Some(format!("{whole}->{part}")),
            Fortran | FortranRow if is_name(part) => Some(format!("{whole}%{part}")),
            _ if is_name(part) => Some(format!("{whole}.{part}")),
            _ => None,
        }
    }
}

/// The subscript of an element, as gdb shows it. `None` for a member that is no element.
fn index(child: &VarObject) -> Option<&str> {
    let index = child
        .expression
        .trim_start_matches('[')
        .trim_end_matches(']');
    is_number(index.trim_start_matches('-')).then_some(index)
}

/// True for the variant of an enumeration of Rust: its type is `r::Shape::Line` where its name is `Line`.
fn is_variant(child: &VarObject) -> bool {
    let name = child.expression.as_str();
    let path = child.type_name.strip_suffix(name);
    name.starts_with(|c: char| c.is_uppercase()) && path.is_some_and(|it| it.ends_with("::"))
}

/// The expression of a part of a Fortran array or section; `None` if no expression names it. gdb lists parts by the
/// last subscript first: `m(:,2)`, then `m(1,2)`.
fn subscripted(whole: &str, index: &str, type_name: &str) -> Option<String> {
    if let Some((base, mut subscripts, at)) = section(whole) {
        let within = within_section(base, subscripts[at], at + 1, index.parse().ok()?)?;
        subscripts[at] = &within;
        return Some(format!("{base}({})", subscripts.join(",")));
    }
    // gdb takes such a name in front of brackets for its own function.
    if is_gdb_function(whole) {
        return None;
    }
    let bounds = type_name.rsplit_once(" (");
    let inner = bounds.map_or(0, |(_, bounds)| bounds.split(',').count());
    Some(format!("{}({}{index})", operand(whole), ":,".repeat(inner)))
}

/// The expression of an element or a smaller part of a row of a Fortran array. `None` if the expression of the row has
/// no `:`.
fn filled(row: &str, index: &str) -> Option<String> {
    let (first, last) = row.rsplit_once(':')?;
    Some(format!("{first}{index}{last}"))
}

/// The array of a section `m(1:3,2)`, its subscripts, and the place of the last one with several values. `None` for an
/// expression that is not a section. Elements of a section are counted from 1.
fn section(expression: &str) -> Option<(&str, Vec<&str>, usize)> {
    let inner = expression.strip_suffix(')')?;
    let mut depth = 0_usize;
    let open = inner.char_indices().rev().find(|(_, c)| match c {
        ')' => {
            depth += 1;
            false
        }
        '(' => {
            depth = depth.wrapping_sub(1);
            depth == usize::MAX
        }
        _ => false,
    });
    let (base, subscripts) = (&inner[..open?.0], &inner[open?.0 + 1..]);
    let subscripts = apart(subscripts, ',');
    let at = subscripts.iter().rposition(|it| apart(it, ':').len() > 1)?;
    let is_array = base.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')'));
    is_array.then_some((base, subscripts, at))
}

/// The parts of a text between separators that are not in brackets.
fn apart(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == separator && depth == 0
    })
    .collect()
}

/// Converts the index of an element of a section, counted from 1, to the subscript in the array itself. `None` if the
/// first subscript of the section is not known.
fn within_section(base: &str, part: &str, dimension: usize, index: i64) -> Option<String> {
    let ends = apart(part, ':');
    let step = ends.get(2).map_or("1", |it| it.trim());
    let known: Option<i64> = step.parse().ok();
    let first = match (ends[0].trim(), known) {
        ("", Some(1..)) => format!("lbound({base},{dimension})"),
        ("", Some(_)) => format!("ubound({base},{dimension})"),
        ("", None) => return None,
        (first, _) => first.to_owned(),
    };
    let steps = index.checked_sub(1)?;
    let Some(known) = known else {
        return Some(format!("{first}+({step})*{steps}"));
    };
    let distance = steps.checked_mul(known)?;
    Some(match first.parse::<i64>() {
        Ok(first) => first.checked_add(distance)?.to_string(),
        Err(_) if distance == 0 => first,
        Err(_) => format!("{first}{distance:+}"),
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// True for an element or section of a Fortran array, or a part of one: `a(i+1)%v`, `m(:,2)`.
fn is_element(expression: &str) -> bool {
    let mut depth = 0_i32;
    let mut is_part = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c.is_alphanumeric() || "_%()".contains(c) || depth > 0 && ",:+-*".contains(c)
    };
    expression.starts_with(|c: char| c.is_alphabetic()) && expression.chars().all(&mut is_part)
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

    use super::WholeKind::{Plain, Pointer, Reference};
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
        use WholeKind::{Fortran, FortranRow, Made, RustPointer};
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
                FortranRow,
                "2",
                "real(kind=8) (4)",
                Some("t(:,2,3)"),
            ),
            (
                "t(:,2,3)",
                FortranRow,
                "-1",
                "real(kind=8)",
                Some("t(-1,2,3)"),
            ),
            ("own", Fortran, "id", "integer(kind=4)", Some("own%id")),
            ("own%v", Fortran, "2", "integer(kind=4)", Some("own%v(2)")),
            ("size", Fortran, "2", "integer(kind=4)", None),
            ("t", Plain, "__1", "i32", Some("t.1")),
            ("t.1", Plain, "__0", "i32", Some("(t.1).0")),
            ("r", RustPointer, "id", "i32", Some("(*r).id")),
            ("r", RustPointer, "*r", "u8", Some("*r")),
            ("s", Plain, "Line", "r::Shape::Line", Some("s")),
            ("s", Plain, "<anonymous union>", "u64", None),
            ("m", Made, "[\"a\"]", "int", Some("$_sdm_child(m, 7)")),
            ("f", Plain, "<odd>", "int", None),
        ] {
            let whole = ParentValue {
                expression: Some(whole.to_owned()),
                kind,
                type_name: String::new(),
            };
            let found = whole.part(&child(part, type_name), 7).expression;
            assert_eq!(found.as_deref(), expect, "{whole:?} {part}");
        }
    }

    #[test]
    fn member_of_a_derived_class_is_named_through_its_base() {
        let base = child("b::Base", "b::Base");
        let parts = [base.clone(), child("own", "int")];
        let union = child("<anonymous union>", "union {...}");
        for (whole, kind, type_name, expect) in [
            (
                "p",
                Pointer,
                "b::D *",
                ["*(b::Base *) (b::D *) p", "p->own", "(b::D *) p"],
            ),
            (
                "r",
                Reference,
                "b::D &",
                ["*(b::Base *) (b::D *) (&r)", "(&r)->own", "(b::D *) (&r)"],
            ),
            ("d", Plain, "b::D", ["*(b::Base *) &d", "d.own", "d"]),
            (
                "$_sdm_child(u, 0)",
                Pointer,
                "b::D *",
                [
                    "*(b::Base *) (b::D *) ((b::D *) $_sdm_child(u, 0))",
                    "((b::D *) $_sdm_child(u, 0))->own",
                    "(b::D *) ((b::D *) $_sdm_child(u, 0))",
                ],
            ),
        ] {
            let whole = ParentValue {
                expression: Some(whole.to_owned()),
                kind,
                type_name: type_name.to_owned(),
            };
            let found = [&base, &parts[1], &union].map(|part| {
                let named = whole.with_parts(&parts).part(part, 0).expression;
                named.unwrap_or_default()
            });
            assert_eq!(found, expect);
            let plain = whole.with_parts(&parts[1..]).part(&parts[1], 0).expression;
            assert!(!plain.is_some_and(|it| it.contains("b::D")));
        }
    }

    #[test]
    fn part_of_a_section_is_named_as_an_element_of_the_array() {
        for (section, number, expect) in [
            ("t(1:3,1)", 1, "t(1,1)"),
            ("t(2,3:5)", 3, "t(2,5)"),
            ("o%v(-2:0)", 2, "o%v(-1)"),
            ("t(1:9:2,1)", 3, "t(5,1)"),
            ("t(9:1:-2)", 2, "t(7)"),
            ("t(:,2)", 1, "t(lbound(t,1),2)"),
            ("t(:,2)", 3, "t(lbound(t,1)+2,2)"),
            ("t(::-1)", 2, "t(ubound(t,1)-1)"),
            ("t(i(1,2):,:4)", 2, "t(i(1,2):,lbound(t,2)+1)"),
            ("t(n-1:n+1)", 2, "t(n-1+1)"),
            ("t(1:9:s)", 3, "t(1+(s)*2)"),
            ("a(2:3)%c(0:1)", 2, "a(2:3)%c(1)"),
        ] {
            let whole = ParentValue {
                expression: Some(section.to_owned()),
                kind: WholeKind::Fortran,
                type_name: String::new(),
            };
            let part = whole.part(&child(&number.to_string(), "real(kind=8)"), 0);
            assert_eq!(part.expression.as_deref(), Some(expect), "{section}");
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
        assert_eq!(WholeKind::of(&tuple), WholeKind::Plain);
        let mut vector = child("data", "std::vector<double, std::allocator<double> >");
        vector.pretty = true;
        assert_eq!(WholeKind::of(&vector), WholeKind::Plain);
        vector.type_name = "std::map<int, int>".to_owned();
        assert_eq!(WholeKind::of(&vector), WholeKind::Made);
        let array = child("t", "real(kind=8) (10)");
        assert_eq!(WholeKind::of(&array), WholeKind::Fortran);
        let pointer = child("p", "*mut r::Cell");
        assert_eq!(WholeKind::of(&pointer), WholeKind::RustPointer);
        let derived = child("own", "Type cell");
        assert_eq!(WholeKind::of(&derived), WholeKind::Fortran);
    }
}
