//! The sessions that the documentation shows ([`sdm_tests::guide`]), and the book that they are in.

use std::fs;
use std::path::Path;

use sdm_tests::guide::check;
use sdm_tests::place::Place;

#[test]
fn examples_of_the_guide_are_reproduced() {
    check("guide.md", &Place::new(), |_| {});
}

#[test]
fn examples_of_the_tutorial_are_reproduced() {
    check("tutorial.md", &Place::new(), |_| {});
}

/// Every page is in the book, and every page of the book exists.
#[test]
fn book_contains_every_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("there is a summary");
    let named: Vec<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    for name in &named {
        assert!(docs.join(name).is_file(), "{name}");
    }
    for entry in fs::read_dir(&docs).expect("there are docs") {
        let name = entry
            .expect("it can be read")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let is_page = name.ends_with(".md") && name != "SUMMARY.md";
        assert!(
            !is_page || named.contains(&&*name),
            "{name} is not in SUMMARY.md"
        );
    }
}
