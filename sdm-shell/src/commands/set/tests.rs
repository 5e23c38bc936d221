//! Tests for set expressions: parsing, printing and resolving.

use proptest::prelude::*;

use super::*;

struct Session {
    tasks: IdSet,
}

impl Scope for Session {
    fn tasks(&self) -> &IdSet {
        &self.tasks
    }

    fn named(&self, name: &SetName) -> Result<IdSet, NameError> {
        Ok(match name {
            SetName::Word(word) if word == "stopped" => "0-5".parse().unwrap(),
            SetName::Word(word) => return Err(NameError::Unknown(word.clone())),
            SetName::Class(1) => "0-2".parse().unwrap(),
            SetName::Class(_) => return Err(NameError::NoClass(1)),
            SetName::Host(pattern) if pattern.matches("n01") => "0-3".parse().unwrap(),
            SetName::Host(_) => IdSet::new(),
            SetName::At(function) if function == "ns::f" => "6".parse().unwrap(),
            SetName::Place { line: 120, .. } => "7".parse().unwrap(),
            SetName::Breakpoint(3) => "1".parse().unwrap(),
            SetName::If(expression) if expression == "f(x) > ')'" => "2,4".parse().unwrap(),
            _ => IdSet::new(),
        })
    }
}

fn session() -> Session {
    Session {
        tasks: IdSet::all_below(8),
    }
}

#[test]
fn every_syntax_of_a_set_yields_its_ranks() {
    for (text, expect) in [
        ("all", "0-7"),
        ("ALL", "0-7"),
        ("0-3,7", "0-3,7"),
        ("0..3", "0-3"),
        ("0-6/2", "0,2,4,6"),
        ("5", "5"),
        ("all!3", "0-2,4-7"),
        ("!3", "0-2,4-7"),
        ("!(3,4)", "0-2,5-7"),
        ("0-3&2-5", "2-3"),
        ("0-3^2-5", "0-1,4-5"),
        // From left to right, as in ClusterShell.
        ("0-3,5!3,5&2-7", "2,5"),
        ("0-3,(5!5)", "0-3"),
        (" 0 , 7 ! 7 ", "0"),
        ("@stopped!@1", "3-5"),
        ("@host:n[01-04]&@stopped", "0-3"),
        ("@at:ns::f,@halo.c:120", "6-7"),
        ("@bp:3", "1"),
        ("@if:(f(x) > ')')", "2,4"),
        ("@stopped & (@1, 7)", "0-2"),
    ] {
        let set = SetExpr::parse(text, 0).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found = resolve(&set, &session()).unwrap();
        let expect: IdSet = expect.parse().unwrap();
        assert_eq!(found, expect, "{text}");
    }
}

#[test]
fn thread_number_follows_a_dot() {
    for (text, thread) in [
        ("3", None),
        ("3.2", Some(2)),
        ("0-3,7.1", Some(1)),
        ("@stopped.4", Some(4)),
        ("@halo.c:120.2", Some(2)),
        ("(@at:f).3", Some(3)),
        ("0..3", None),
        ("0..3.2", Some(2)),
    ] {
        assert_eq!(SetExpr::parse(text, 0).unwrap().thread(), thread, "{text}");
    }
}

/// The sign `|` is in front of the character at which the error must point.
#[test]
fn set_expression_error_points_at_its_character() {
    for text in [
        "|",
        "|x",
        "0-|",
        "0-3,|",
        "0..3,|x",
        "|-3",
        "0-3,|-",
        "3-|1",
        "0-8/|0",
        "3|/2",
        "|stopped",
        "@|",
        "@|0",
        "@bp:|x",
        "@host:n[|",
        "@host:n[|x]",
        "@at:|",
        "@halo.c:|",
        "@halo.c:|0",
        "@if:|x",
        "@if:|(x",
        "|(0-3",
        "(0-3,|)",
        "0-3 |7",
        "3.|0",
        "3.2|,5",
        "0-|99999999",
        "0-|99999999999999999999",
    ] {
        let at = text.find('|').unwrap();
        let plain = text.replacen('|', "", 1);
        let error = match SetExpr::parse(&plain, 10) {
            Ok(set) => panic!("{plain}: {set:?}"),
            Err(error) => error,
        };
        let expect = match plain.as_str() {
            // The bracket that is open is to blame.
            "@host:n[" => 7,
            _ => at,
        };
        assert_eq!(error.at, Some(10 + expect), "{plain}: {}", error.message);
    }
}

#[test]
fn error_in_a_set_points_at_the_unknown_name() {
    for (text, at, message) in [
        (
            "0-3,7-9",
            4,
            "no such ranks: 8-9 (this session has ranks 0-7)",
        ),
        (
            "0,@workers",
            2,
            "no set has the name `@workers`; `info sets` shows all",
        ),
        (
            "@1&@9",
            3,
            "the last answer has only one class of equal answers: @1",
        ),
    ] {
        let set = SetExpr::parse(text, 5).unwrap();
        let error = resolve(&set, &session()).unwrap_err();
        assert_eq!((error.at, error.message.as_str()), (Some(5 + at), message));
    }
}

#[test]
fn set_ends_at_its_delimiter() {
    let check = |text: &str, until, rest: &str| {
        let mut cursor = Cursor::new(text);
        SetExpr::take(&mut cursor, until).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(cursor.rest(), rest, "{text}");
    };
    check("0-3 yes", Until::Blank, "yes");
    check("@if:(a == 3),7 yes no", Until::Blank, "yes no");
    check("(0, 3) yes", Until::Blank, "yes");
    check("@host:n[1-2] , 3] bt", Until::Bracket, "bt");
    check("@if:(a[3] > 2)]bt", Until::Bracket, "bt");
}

#[test]
fn hostile_set_expressions_are_bounded() {
    let deep = "(".repeat(100_000);
    assert!(SetExpr::parse(&deep, 0).is_err());
    let not = format!("{}3", "!".repeat(60_000));
    assert!(SetExpr::parse(&not, 0).is_err());
    let many = "0-16777215/2,".repeat(5000);
    assert!(SetExpr::parse(&many, 0).is_err());
    let long = "1,".repeat(30_000);
    assert!(SetExpr::parse(&long, 0).is_err());
}

proptest! {
    #[test]
    fn set_parser_never_panics(text in "[0-9a-z@:.,!&^()\\[\\]/ *'\"\\\\-]{0,40}|.{0,40}") {
        fuzz_set_expr(text.as_bytes());
    }

    #[test]
    fn operators_follow_set_algebra(a in 0_u32..256, b in 0_u32..256) {
        let ids = |bits: u32| (0..8).filter(|id| bits >> id & 1 == 1).collect::<Vec<u32>>();
        let text = |bits: u32| {
            let ids: Vec<_> = ids(bits).iter().map(u32::to_string).collect();
            if ids.is_empty() { "(0!0)".to_owned() } else { format!("({})", ids.join(",")) }
        };
        let all: IdSet = IdSet::all_below(8);
        for (operator, expect) in [(',', a | b), ('!', a & !b), ('&', a & b), ('^', a ^ b)] {
            let set = SetExpr::parse(&format!("{}{operator}{}", text(a), text(b)), 0).unwrap();
            let found = resolve(&set, &Session { tasks: all.clone() }).unwrap();
            let expect: IdSet = ids(expect).into_iter().map(sdm_idset::TaskId).collect();
            prop_assert_eq!(found, expect);
        }
    }
}
