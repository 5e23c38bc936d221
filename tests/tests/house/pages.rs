//! The manual pages: each begins with examples, has its options in short groups, and ends with the exit status.

use std::fs;

use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;

/// Maximum number of options in one section.
const OPTIONS_MAX: usize = 14;

/// The titles of a page's sections, each with its number of options.
fn sections(page: &str) -> Vec<(&str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix(".SH ") {
            found.push((title.trim_matches('"'), 0));
        } else if let Some((_, count)) = found.last_mut() {
            *count += usize::from(line.starts_with("\\fB\\-"));
        }
    }
    found
}

/// The faults of a page of a command.
fn faults(page: &str) -> Vec<String> {
    let sections = sections(page);
    let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
    let mut wrong = Vec::new();
    if !titles.starts_with(&["NAME", "EXAMPLES", "SYNOPSIS"]) {
        wrong.push(format!("it does not begin with examples: {titles:?}"));
    }
    if !titles.ends_with(&["EXIT STATUS", "SEE ALSO"]) {
        wrong.push(format!("it does not end with the exit status: {titles:?}"));
    }
    let long = sections.iter().filter(|(_, count)| *count > OPTIONS_MAX);
    wrong.extend(long.map(|(title, count)| format!("{count} options in {title}")));
    wrong
}

#[test]
fn manual_pages_have_examples_groups_and_exit_status() {
    let place = Place::new();
    let _done = Sdm::new(&place, "man")
        .args(["share/man1"])
        .finish()
        .code(0);
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(place.path().join("share/man1")).expect("they are written") {
        let path = entry.expect("it can be read").path();
        let page = fs::read_to_string(&path).expect("a page");
        let all = faults(&page).into_iter();
        wrong.extend(all.map(|fault| format!("{}: {fault}", path.display())));
        count += 1;
    }
    assert!(count > 40, "{count} pages");
    assert!(wrong.is_empty(), "{wrong:#?}");
    let prompt = fs::read_to_string(place.path().join("share/man7/sdm-prompt.7"));
    let prompt = prompt.expect("it is written beside man1");
    let titles: Vec<&str> = sections(&prompt).into_iter().map(|(it, _)| it).collect();
    assert_eq!(titles[..3], ["NAME", "EXAMPLES", "DESCRIPTION"]);
}

#[test]
fn incomplete_manual_pages_are_detected() {
    let page = |options: usize| {
        let options = "\\fB\\-\\-x\\fR\n".repeat(options);
        format!(
            ".SH NAME\n.SH EXAMPLES\n.SH SYNOPSIS\n.SH \"OTHER HOSTS\"\n{options}.SH \"EXIT STATUS\"\n\
             .SH \"SEE ALSO\"\n"
        )
    };
    assert_eq!(faults(&page(OPTIONS_MAX)), Vec::<String>::new());
    assert_eq!(faults(&page(OPTIONS_MAX + 1)).len(), 1);
    assert_eq!(faults(&page(1).replace("EXAMPLES", "EXTRA")).len(), 1);
    assert_eq!(faults(&page(1).replace("EXIT STATUS", "EXTRA")).len(), 1);
}
