//! Where reports go.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Report;

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The page.
    pub page: PathBuf,
    /// One screen of text; beside the page.
    pub text: PathBuf,
    /// For programs; beside the page.
    pub json: PathBuf,
    /// For a build server, where one is wanted.
    pub junit: Option<PathBuf>,
}

impl Files {
    /// A page and what stands beside it.
    #[must_use]
    pub fn of_page(page: PathBuf, junit: Option<PathBuf>) -> Self {
        let mut files = Self {
            text: page.with_extension("txt"),
            json: page.with_extension("json"),
            page,
            junit,
        };
        // A page called by one of these endings keeps it.
        if files.text == files.page {
            files.text = files.page.with_extension("screen.txt");
        }
        if files.json == files.page {
            files.json = files.page.with_extension("data.json");
        }
        files
    }

    /// Writes all of them, each as a whole or not at all: what was there before stays until then.
    ///
    /// # Errors
    /// Which could not be written, and why.
    pub fn write(&self, report: &Report) -> Result<(), String> {
        let write = |path: &Path, text: String| {
            replace(path, &text).map_err(|error| format!("write {}: {error}", path.display()))
        };
        write(&self.page, super::html(report))?;
        write(&self.text, super::text(report))?;
        write(&self.json, super::json(report))?;
        match &self.junit {
            Some(path) => write(path, super::junit(report)),
            None => Ok(()),
        }
    }
}

/// Writes beside a file, then puts it in the file's place.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may never have been made.
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_a_page_has_a_name_of_its_own() {
        let names = |page: &str| {
            let files = Files::of_page(page.into(), None);
            [files.text, files.json].map(|path| path.display().to_string())
        };
        assert_eq!(names("a/report.html"), ["a/report.txt", "a/report.json"]);
        assert_eq!(names("r.txt"), ["r.screen.txt", "r.json"]);
        assert_eq!(names("r.json"), ["r.txt", "r.data.json"]);
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_kept() {
        let folder = std::env::temp_dir().join(format!("sdm-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("report.html");
        replace(&file, "one").unwrap();
        replace(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert!(replace(&folder.join("none/report.html"), "x").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
