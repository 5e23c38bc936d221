//! The documents are short enough to be read: words, paragraphs and sentences have a bound, and decisions have one
//! form.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sources::root;

/// Maximum number of words of ARCHITECTURE.md.
const ARCHITECTURE_WORDS_MAX: usize = 3500;
/// Maximum number of words of one decision.
const DECISION_WORDS_MAX: usize = 400;
/// Maximum number of words of a paragraph, a point of a list, or a cell of a table.
const PARAGRAPH_WORDS_MAX: usize = 120;
/// Maximum number of words of a sentence; `;` and `:` end one.
const SENTENCE_WORDS_MAX: usize = 30;

/// Maximum number of characters of a line of CHANGELOG.md.
const CHANGE_CHARS_MAX: usize = 120;
/// Maximum number of lines of docs/performance.md.
const PERFORMANCE_LINES_MAX: usize = 200;

/// The headings of a decision, in their order.
const HEADINGS: [&str; 4] = ["Context", "Choice", "Rejected", "Test"];

/// Documents of which every paragraph and every sentence has its bound; the decisions are among them.
pub(super) const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs/agent.md",
    "docs/api.md",
    "docs/clusters.md",
    "docs/diagnosis.md",
    "docs/doctor.md",
    "docs/editors.md",
    "docs/errors.md",
    "docs/files.md",
    "docs/guide.md",
    "docs/install.md",
    "docs/invoke.md",
    "docs/launchers.md",
    "docs/limits.md",
    "docs/modules.md",
    "docs/own-manager.md",
    "docs/performance.md",
    "docs/pmix.md",
    "docs/reference.md",
    "docs/requirements.md",
    "docs/screen.md",
    "docs/simulator.md",
    "docs/skips.md",
    "docs/test-parts.md",
    "docs/tutorial.md",
    "docs/web.md",
];

/// Paragraphs that are longer: the document, and how the paragraph begins. No entry is added.
const LONG_PARAGRAPHS: &[(&str, &str)] = &[];
/// Sentences that are longer: the document, and how the sentence begins. No entry is added.
const LONG_SENTENCES: &[(&str, &str)] = &[];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The decisions' file names, in their order.
pub(super) fn decisions() -> Vec<String> {
    let folder = root().join("docs/adr");
    let mut found: Vec<String> = fs::read_dir(folder)
        .expect("there are decisions")
        .map(|entry| entry.expect("it can be read").file_name())
        .map(|name| name.into_string().expect("a name of text"))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    found.sort();
    found
}

fn documents() -> Vec<String> {
    let decisions = decisions().into_iter().map(|it| format!("docs/adr/{it}"));
    let others = DOCUMENTS.iter().map(|it| (*it).to_owned());
    others.chain(decisions).collect()
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// A point of a list without its mark.
fn point(line: &str) -> Option<&str> {
    let (mark, rest) = line.split_once(' ')?;
    let number = mark.strip_suffix('.');
    let is_number =
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()));
    (is_number || matches!(mark, "-" | "*")).then_some(rest)
}

/// Paragraphs, points of lists and cells of tables, each in one line; no examples, headings and pictures.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    let mut in_example = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.starts_with("```") {
            in_example = !in_example;
            is_open = false;
        } else if in_example || (line.starts_with("    ") && !is_open) {
        } else if bare.is_empty() || bare.starts_with('#') || bare.starts_with("![") {
            is_open = false;
        } else if let Some(row) = bare.strip_prefix('|') {
            found.extend(row.split(" | ").map(str::to_owned));
            is_open = false;
        } else if let Some(rest) = point(bare) {
            found.push(rest.to_owned());
            is_open = true;
        } else if let Some(last) = found.last_mut().filter(|_| is_open) {
            last.push(' ');
            last.push_str(bare);
        } else {
            found.push(bare.to_owned());
            is_open = true;
        }
    }
    found
}

/// The text with each piece of code as one word, and links without where they lead.
fn without_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        bare.push_str(if index % 2 == 0 { "code" } else { part });
    }
    let mut links = bare.split("](");
    let mut text = links.next().unwrap_or_default().to_owned();
    for link in links {
        text.push_str(link.split_once(')').map_or("", |(_, after)| after));
    }
    text
}

/// The sentences of a paragraph; `;` and `:` end one.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in without_code(paragraph).split_whitespace() {
        let last = found.last_mut().expect("there is one");
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
        let end = word.trim_end_matches([')', '"', '*']);
        if end.ends_with(['.', '!', '?', ';', ':']) {
            found.push(String::new());
        }
    }
    found
}

/// Pieces that are too long, with their words, and exceptions without a piece.
fn wrong<'a>(
    pieces: impl Iterator<Item = (&'a str, String)>,
    words_max: usize,
    exceptions: &[(&str, &str)],
) -> Vec<String> {
    let mut used = vec![false; exceptions.len()];
    let mut wrong = Vec::new();
    for (document, piece) in pieces.filter(|(_, piece)| words(piece) > words_max) {
        let mut known = exceptions.iter().zip(&mut used);
        match known.find(|((of, begins), _)| *of == document && piece.starts_with(begins)) {
            Some((_, used)) => *used = true,
            None => wrong.push(format!("{document}: {} words: {piece}", words(&piece))),
        }
    }
    let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
    wrong.extend(unused.map(|((of, begins), _)| format!("{of}: no exception any more: {begins}")));
    wrong
}

#[test]
fn paragraphs_and_sentences_are_short() {
    let texts: Vec<(String, Vec<String>)> = documents()
        .into_iter()
        .map(|it| (it.clone(), paragraphs(&read(&it))))
        .collect();
    let all = || {
        texts
            .iter()
            .flat_map(|(of, all)| all.iter().map(move |it| (&**of, it.clone())))
    };
    assert!(all().count() > 500, "{} are read", all().count());
    let mut long = wrong(all(), PARAGRAPH_WORDS_MAX, LONG_PARAGRAPHS);
    let each = all().flat_map(|(of, it)| sentences(&it).into_iter().map(move |it| (of, it)));
    long.extend(wrong(each, SENTENCE_WORDS_MAX, LONG_SENTENCES));
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn documents_are_within_their_length() {
    let count = words(&read("ARCHITECTURE.md"));
    assert!(
        count <= ARCHITECTURE_WORDS_MAX,
        "ARCHITECTURE.md: {count} words"
    );
    let count = read("docs/performance.md").lines().count();
    assert!(
        count <= PERFORMANCE_LINES_MAX,
        "docs/performance.md: {count} lines"
    );
    let changes = read("CHANGELOG.md");
    let long: Vec<&str> = changes
        .lines()
        .filter(|it| it.chars().count() > CHANGE_CHARS_MAX || it.starts_with(' '))
        .collect();
    assert!(
        long.is_empty(),
        "CHANGELOG.md: one line for each change: {long:#?}"
    );
}

/// Every decision is short, has the four headings, and is in both indexes by its title.
#[test]
fn decision_records_have_four_headings_and_index_entries() {
    let index = read("docs/adr/README.md");
    let summary = read("docs/SUMMARY.md");
    let decisions = decisions();
    assert!(decisions.len() > 50, "{decisions:?}");
    let mut wrong = Vec::new();
    for (place, name) in decisions.iter().enumerate() {
        let text = read(&format!("docs/adr/{name}"));
        let title = text.lines().next().and_then(|it| it.strip_prefix("# "));
        let title = title.unwrap_or_default();
        let number = format!("{:03}", place + 1);
        if !name.starts_with(&number) || !title.starts_with(&format!("{number}: ")) {
            wrong.push(format!("{name}: it is decision {number}"));
        }
        let headings: Vec<&str> = text
            .lines()
            .filter_map(|it| it.strip_prefix("## "))
            .collect();
        if headings != HEADINGS {
            wrong.push(format!("{name}: {headings:?}"));
        }
        if words(&text) > DECISION_WORDS_MAX {
            wrong.push(format!("{name}: {} words", words(&text)));
        }
        if !index.contains(&format!("[{title}]({name})")) {
            wrong.push(format!("{name}: not in docs/adr/README.md as {title}"));
        }
        if !summary.contains(&format!("(adr/{name})")) {
            wrong.push(format!("{name}: not in docs/SUMMARY.md"));
        }
    }
    let links = index.matches("](").count();
    if links != decisions.len() {
        wrong.push(format!("docs/adr/README.md: {links} links"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The name by which a link calls a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || "-_".contains(c) => Some(c),
        _ => None,
    });
    kept.collect()
}

/// True if a document has a heading, or a place of its own, of that name.
fn has_anchor(text: &str, name: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut names = headings.map(|line| anchor(line.trim_start_matches('#')));
    names.any(|it| it == name) || text.contains(&format!("<a id=\"{name}\">"))
}

/// Fault of a document's link.
fn dead(document: &str, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, name) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(document).parent().expect("it has one");
    let path = match file {
        "" => root().join(document),
        file => root().join(folder).join(file),
    };
    if !path.exists() {
        return Some(format!("{document}: there is no {target}"));
    }
    let is_there =
        name.is_empty() || has_anchor(&fs::read_to_string(path).expect("a document"), name);
    (!is_there).then(|| format!("{document}: {target} is no heading there"))
}

/// Links of documents, outside of examples, lead to files and headings that are there.
#[test]
fn document_links_lead_to_existing_files_and_headings() {
    let mut all: BTreeSet<String> = documents().into_iter().collect();
    all.extend(["CONTRIBUTING.md", "SECURITY.md", "docs/adr/README.md"].map(str::to_owned));
    let pages = fs::read_dir(root().join("docs")).expect("there are pages");
    let names = pages.map(|it| it.expect("it can be read").file_name());
    let names = names.filter_map(|it| it.into_string().ok());
    all.extend(
        names
            .filter(|it| it.ends_with(".md"))
            .map(|it| format!("docs/{it}")),
    );
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in all {
        for paragraph in paragraphs(&read(&document)) {
            for link in paragraph.split("](").skip(1) {
                count += 1;
                wrong.extend(dead(&document, link.split(')').next().unwrap_or_default()));
            }
        }
    }
    assert!(count > 150, "{count} links");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(dead("docs/guide.md", "no-such.md").is_some());
    assert!(dead("docs/guide.md", "install.md#no-such-heading").is_some());
}

#[test]
fn long_prose_is_detected() {
    let text = "# Head\n\nOne two\nthree. Four: five; six `a b c` [seven](x/y.md) eight.\n\n    code that is long\n\
                ```\nmore. code\n```\n- a point\n  of two lines\n12. a number\n| a cell | b. c |\n";
    let found = paragraphs(text);
    assert_eq!(
        found,
        [
            "One two three. Four: five; six `a b c` [seven](x/y.md) eight.",
            "a point of two lines",
            "a number",
            " a cell",
            "b. c |",
        ]
    );
    let first = sentences(&found[0]);
    assert_eq!(
        first,
        [
            "One two three.",
            "Four:",
            "five;",
            "six code [seven eight.",
            ""
        ]
    );
    let pieces = || [("a", "one two three".to_owned()), ("b", "one".to_owned())].into_iter();
    assert_eq!(
        wrong(pieces(), 2, &[]),
        ["a: 3 words: one two three".to_owned()]
    );
    assert!(wrong(pieces(), 2, &[("a", "one")]).is_empty());
    assert_eq!(
        wrong(pieces(), 3, &[("a", "one")]),
        ["a: no exception any more: one".to_owned()]
    );
}

/// `scripts/pictures` has made the pictures of the page that is served today.
#[test]
fn pictures_show_the_page_of_today() {
    let root = root();
    let sums = std::fs::read_to_string(root.join("docs/pictures/page.sha256"));
    let sums = sums.expect("scripts/pictures writes it");
    let named = |line: &str| line.split_whitespace().last().map(str::to_owned);
    let named: Vec<String> = sums.lines().filter_map(named).collect();
    let files = std::fs::read_dir(root.join("sdm-web/page")).expect("the page");
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.expect("a file").file_name();
        format!("sdm-web/page/{}", name.display())
    };
    let mut files: Vec<String> = files.map(file).collect();
    files.sort_unstable();
    assert_eq!(named, files, "scripts/pictures");
    let check = Command::new("/usr/bin/sha256sum")
        .args(["--check", "--quiet", "docs/pictures/page.sha256"])
        .current_dir(root)
        .output();
    let check = check.expect("coreutils are there");
    assert!(
        check.status.success(),
        "scripts/pictures: {}",
        String::from_utf8_lossy(&check.stdout)
    );
}
