//! Tests `docs/json.md` against the records: each kind is documented with its fields, and nothing is
//! documented that is never written.

mod page_samples;
mod queue_sample;
mod samples;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::record;
use crate::report::Report;
use samples::items;

const DOCUMENT: &str = include_str!("../../../../docs/json.md");

/// Every record, by its kind.
fn records() -> BTreeMap<&'static str, Vec<Value>> {
    let mut records: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for item in items() {
        let (kind, fields) = record(&item);
        records.entry(kind).or_default().push(fields);
    }
    records
}

/// Names of fields, and words that are values, at any depth.
fn words_of(value: &Value, keys: &mut BTreeSet<String>, values: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                keys.insert(name.clone());
                words_of(value, keys, values);
            }
        }
        Value::Array(all) => all.iter().for_each(|it| words_of(it, keys, values)),
        Value::String(text) => drop(values.insert(text.clone())),
        _ => {}
    }
}

/// The words in backticks that may be names.
fn named(text: &str) -> BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_name = |word: &&str| {
        let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(name)
    };
    quoted.filter(is_name).collect()
}

/// The part of the document below a heading.
fn chapter(heading: &str) -> &'static str {
    let rest = DOCUMENT.split(&format!("\n## {heading}\n")).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("no {heading}"));
    rest.split("\n## ").next().expect("its end")
}

/// The rows of the tables in a text: the names in the first column, and the remaining text.
fn rows(text: &str) -> Vec<(Vec<&str>, &str)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (names, rest) = row.split_once('|').expect("columns");
        let names = names.split('`').step_by(2).map(str::trim);
        (
            names.filter(|it| !it.is_empty() && *it != ",").collect(),
            rest,
        )
    })
    .collect()
}

/// Checks that one row of the document lists exactly the words that are written.
fn check_row(name: &str, said: &str, written: &[Value], common: &[&str]) {
    let said = named(said);
    let (mut keys, mut values) = (BTreeSet::new(), BTreeSet::new());
    written
        .iter()
        .for_each(|it| words_of(it, &mut keys, &mut values));
    for word in &said {
        let known = keys.contains(*word) || values.contains(*word);
        assert!(
            known || is_reference(word),
            "{name}: {word} is never written"
        );
    }
    for record in written {
        for field in record.as_object().expect("a record").keys() {
            let known = said.contains(field.as_str()) || common.contains(&field.as_str());
            assert!(known, "{name}: {field} is not documented");
        }
    }
}

/// True for words by which a row refers to another one.
fn is_reference(word: &str) -> bool {
    [
        "null", "sdm", "sight", "stop", "threads", "outliers", "display", "list",
    ]
    .contains(&word)
}

#[test]
fn every_json_kind_and_field_is_documented_and_written() {
    let records = records();
    let rows = rows(chapter("Kinds"));
    let documented: BTreeSet<&str> = rows.iter().flat_map(|(names, _)| names).copied().collect();
    let written: BTreeSet<&str> = records.keys().copied().collect();
    assert_eq!(documented, written);
    for (names, said) in rows {
        for name in names {
            // These two records have chapters of their own.
            if !["answer", "stop"].contains(&name) {
                check_row(name, said, &records[name], &[]);
            }
        }
    }
}

#[test]
fn every_page_kind_and_field_is_documented_and_written() {
    let records = page_samples::records();
    let rows = rows(chapter("A page's records"));
    let documented = rows.iter().flat_map(|(names, _)| names).copied();
    // The server of the page writes the notice of omitted records.
    let documented: BTreeSet<&str> = documented.filter(|name| *name != "left_out").collect();
    let written: BTreeSet<&str> = records.keys().map(String::as_str).collect();
    assert_eq!(documented, written);
    for name in &documented {
        let (_, said) = rows
            .iter()
            .find(|(names, _)| names.contains(name))
            .expect("it is there");
        check_row(name, said, std::slice::from_ref(&records[*name]), &[]);
    }
}

#[test]
fn every_stop_reason_is_documented_and_written() {
    let text = chapter("Kinds");
    let at = text.find("`reason` of a stop").expect("a paragraph");
    let stops = &records()["stop"];
    let said = named(&text[at..]);
    for stop in stops {
        let reason = stop["reason"].as_str().expect("a reason");
        assert!(said.contains(reason), "{reason} is not documented");
    }
    let row = rows(text).into_iter().find(|(names, _)| names == &["stop"]);
    let (_, row) = row.expect("a row of stops");
    check_row("stop", &format!("{row} {}", &text[at..]), stops, &[]);
}

#[test]
fn every_json_answer_is_documented_and_written() {
    let answer = &records()["answer"][0];
    let text = chapter("`answer`");
    let (fields, types) = text.split_once("Types of classes:").expect("two tables");
    let documented: BTreeSet<&str> = rows(fields)
        .iter()
        .flat_map(|(it, _)| it)
        .copied()
        .collect();
    let written = answer.as_object().expect("fields").keys();
    assert_eq!(documented, written.map(String::as_str).collect());
    let types: BTreeMap<&str, &str> = rows(types)
        .into_iter()
        .flat_map(|(names, said)| names.into_iter().map(move |name| (name, said)))
        .collect();
    let classes = answer["classes"].as_array().expect("classes");
    let kind = |class: &Value| class["type"].as_str().expect("a type").to_owned();
    let written: BTreeSet<String> = classes.iter().map(kind).collect();
    let documented: BTreeSet<String> = types.keys().map(|it| (*it).to_owned()).collect();
    assert_eq!(documented, written);
    for class in classes {
        let kind = kind(class);
        let common = ["tasks", "count", "type"];
        check_row(
            &kind,
            types[kind.as_str()],
            std::slice::from_ref(class),
            &common,
        );
    }
}

#[test]
fn every_report_field_is_documented_and_written() {
    let report = Report::of_no_session(Vec::new(), 124, "given up".to_owned());
    let written: Value = serde_json::from_str(&crate::report::json(&report)).expect("JSON");
    let documented = rows(chapter("`report.json`"));
    let documented: BTreeSet<&str> = documented.iter().flat_map(|(it, _)| it).copied().collect();
    let written = written.as_object().expect("fields").keys();
    assert_eq!(documented, written.map(String::as_str).collect());
}
