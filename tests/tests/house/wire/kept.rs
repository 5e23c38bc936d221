//! Files with recorded wire bytes, and the rule that changed bytes need a new wire version.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::WIRE_VERSION;

/// The bytes of one value.
pub(super) struct Entry {
    /// Name of the value: `Command::Step`.
    pub(super) name: String,
    /// Its bytes on the wire.
    pub(super) bytes: Vec<u8>,
}

/// Number of bytes in one line of a file.
const ROW_BYTES: usize = 16;
const HEAD: &str = "# Wire version ";
/// Text before the hash of everything above it, in the last line.
const SEAL: &str = "\n# Seal ";

/// Every file of kept bytes. A missing file is not rewritten, as the record of its bytes would be lost.
const FILES: [&str; 6] = ["commands", "keep", "merged", "messages", "replies", "sets"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/wire")
}

/// Compares entries with `golden/wire/NAME.txt`; with `UPDATE_GOLDEN=1` rewrites the file where the rule allows it.
pub(super) fn check(name: &str, entries: &[Entry]) {
    let path = folder().join(format!("{name}.txt"));
    let kept = match fs::read_to_string(&path) {
        Ok(kept) => Some(kept),
        Err(error) if error.kind() == ErrorKind::NotFound && !FILES.contains(&name) => None,
        Err(error) => panic!(
            "{}: {error}: take it back as it was (`git checkout -- {0}`); what changes in it is judged by what it kept",
            path.display()
        ),
    };
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    match judge(kept.as_deref(), entries, WIRE_VERSION) {
        Verdict::Same => {}
        Verdict::Allowed(text) if update => {
            fs::write(&path, text).expect("a file");
            assert!(
                FILES.contains(&name),
                "{}: it was written; name it in FILES, in tests/tests/house/wire/kept.rs",
                path.display()
            );
        }
        Verdict::Edited => panic!(
            "{}: it was changed by hand: take it back as it was (`git checkout -- {0}`), then \
             `UPDATE_GOLDEN=1 cargo test -p sdm-tests --test house wire` adds what may be added",
            path.display()
        ),
        Verdict::Allowed(_) => panic!(
            "{}: the file is not of this version, or lacks a variant: `UPDATE_GOLDEN=1 cargo test -p sdm-tests --test house wire` \
             writes it anew",
            path.display()
        ),
        Verdict::Refused(why) => panic!(
            "{}: {why}; members of version {WIRE_VERSION} would misread each other. Append to enums instead of changing them, or \
             raise WIRE_VERSION in sdm-core/src/frame.rs, which every file then names, and write the files anew with \
             `UPDATE_GOLDEN=1 cargo test -p sdm-tests --test house wire`",
            path.display()
        ),
    }
}

/// Outcome of the comparison of a file of kept bytes with the present ones.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The file agrees with the present bytes.
    Same,
    /// The file may become this text: the version was raised, or variants were added.
    Allowed(String),
    /// The file was edited by hand: an entry removed from it would return with other bytes.
    Edited,
    /// Kept bytes have changed or disappeared, and the version is unchanged.
    Refused(String),
}

/// Judges entries against the kept text; `None` for a file that never existed.
fn judge(kept: Option<&str>, now: &[Entry], version: u8) -> Verdict {
    let text = written(now, version);
    let Some(kept) = kept else {
        return Verdict::Allowed(text);
    };
    if text == kept {
        return Verdict::Same;
    }
    if !is_sealed(kept) {
        return Verdict::Edited;
    }
    let (before, entries) = read(kept);
    if version > before {
        return Verdict::Allowed(text);
    }
    if version < before {
        return Verdict::Refused(format!("the version was {before} and is {version}"));
    }
    let now: BTreeMap<&str, &[u8]> = now.iter().map(|e| (&*e.name, &*e.bytes)).collect();
    let other = |entry: &&Entry| now.get(&*entry.name) != Some(&&*entry.bytes);
    let changed: Vec<&str> = entries.iter().filter(other).map(|e| &*e.name).collect();
    if changed.is_empty() {
        return Verdict::Allowed(text);
    }
    Verdict::Refused(format!(
        "other bytes than before, or none: {}",
        changed.join(", ")
    ))
}

fn written(entries: &[Entry], version: u8) -> String {
    let mut text = format!("{HEAD}{version}\n");
    for Entry { name, bytes } in entries {
        writeln!(text, "\n{name}").expect("memory");
        for row in bytes.chunks(ROW_BYTES) {
            let hex: String = row.iter().map(|byte| format!(" {byte:02x}")).collect();
            let shown = |byte: &u8| match byte {
                b' '..=b'~' => char::from(*byte),
                _ => '.',
            };
            let shown: String = row.iter().map(shown).collect();
            writeln!(text, "  {hex:<48}  |{shown}|").expect("memory");
        }
    }
    let seal = seal(&text);
    text + &seal
}

/// The last line of a file, which shows whether the text above has been changed.
fn seal(above: &str) -> String {
    format!("{SEAL}{:016x}\n", xxh3_64(above.as_bytes()))
}

fn is_sealed(text: &str) -> bool {
    let above = text.rsplit_once(SEAL).map(|(above, _)| above);
    above.is_some_and(|above| text == format!("{above}{}", seal(above)))
}

/// The version and the entries of a file.
fn read(text: &str) -> (u8, Vec<Entry>) {
    let mut version = 0;
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(number) = line.strip_prefix(HEAD) {
            version = number.parse().expect("a version");
        } else if line.starts_with('#') {
            break;
        } else if !line.starts_with(' ') {
            entries.push(Entry {
                name: line.to_owned(),
                bytes: Vec::new(),
            });
        } else {
            let (hex, _) = line.split_once('|').expect("a row of bytes");
            let row = hex.split_whitespace();
            let row = row.map(|byte| u8::from_str_radix(byte, 16).expect("a byte"));
            let entry = entries.last_mut().expect("a name above its bytes");
            entry.bytes.extend(row);
        }
    }
    (version, entries)
}

#[test]
fn changed_wire_bytes_require_a_new_wire_version() {
    let entry = |name: &str, bytes: &[u8]| Entry {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
    };
    let old = [
        entry("A::B", b"\0two words, a few more"),
        entry("A::C", &[]),
    ];
    let kept = written(&old, 3);
    assert_eq!(judge(Some(&kept), &old, 3), Verdict::Same);
    let appended = [
        entry("A::B", &old[0].bytes),
        entry("A::C", &[]),
        entry("A::D", &[2]),
    ];
    let text = written(&appended, 3);
    assert_eq!(judge(Some(&kept), &appended, 3), Verdict::Allowed(text));
    let changed = [entry("A::B", &[1]), entry("A::D", &[])];
    let why = "other bytes than before, or none: A::B, A::C".to_owned();
    assert_eq!(judge(Some(&kept), &changed, 3), Verdict::Refused(why));
    let text = written(&changed, 4);
    assert_eq!(judge(Some(&kept), &changed, 4), Verdict::Allowed(text));
    // A version that was raised without a change is written into the file as well.
    let text = written(&old, 4);
    assert_eq!(judge(Some(&kept), &old, 4), Verdict::Allowed(text));
    let why = "the version was 3 and is 2".to_owned();
    assert_eq!(judge(Some(&kept), &old, 2), Verdict::Refused(why));
    assert_eq!(judge(None, &old, 1), Verdict::Allowed(written(&old, 1)));
    // Neither one entry nor all of them can be removed and rewritten with other bytes.
    let without = kept.replace("A::C\n", "");
    assert_eq!(judge(Some(&without), &changed, 3), Verdict::Edited);
    assert_eq!(judge(Some(""), &changed, 3), Verdict::Edited);
}

#[test]
fn every_file_of_wire_bytes_is_checked_by_a_test() {
    let mut found: Vec<String> = fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().trim_end_matches(".txt").to_owned())
        .collect();
    found.sort();
    assert_eq!(found, FILES, "a file that nothing is held against, or none");
}
