//! The files of a report, and writing them.

use sdm_text::{printable_name, record};
use std::io;
use std::path::{Path, PathBuf};

use sdm_view::escape::shown;
use sdm_view::report::{Report, html, json, junit, text};

use crate::LocalMachine;

/// The error for a report file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", printable_name(file))]
pub struct NotWritten {
    /// The path of the file.
    pub file: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFiles {
    /// The path of the HTML page.
    pub page: PathBuf,
    /// The path of the text file of one screen, next to the page.
    pub text: PathBuf,
    /// The path of the JSON file, next to the page.
    pub json: PathBuf,
    /// The path of the JUnit file for a build server. None if it is not requested.
    pub junit: Option<PathBuf>,
}

impl ReportFiles {
    /// The page with the other files next to it.
    #[must_use]
    pub fn of_page(page: PathBuf, junit: Option<PathBuf>) -> Self {
        let mut files = Self {
            text: page.with_extension("txt"),
            json: page.with_extension("json"),
            page,
            junit,
        };
        // If the page itself has such a name, the other file gets another one.
        if files.text == files.page {
            files.text = files.page.with_extension("screen.txt");
        }
        if files.json == files.page {
            files.json = files.page.with_extension("data.json");
        }
        files
    }

    /// Writes all files on a machine, each atomically. An existing file is kept until it is replaced.
    ///
    /// # Errors
    /// [`NotWritten`] names the first file that could not be written. Later files are not tried.
    pub fn write(&self, report: &Report, machine: &mut dyn LocalMachine) -> Result<(), NotWritten> {
        let mut write = |path: &Path, content: String| {
            let written = machine.write_file(path, content.as_bytes());
            written.map_err(|error| NotWritten {
                file: path.to_owned(),
                error,
            })
        };
        write(&self.page, html(report))?;
        write(&self.text, shown(&text(report)))?;
        write(&self.json, record(&json(report)))?;
        match &self.junit {
            Some(path) => write(path, junit(report)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_report_have_distinct_names() {
        let names = |page: &str| {
            let files = ReportFiles::of_page(page.into(), None);
            [files.text, files.json].map(|path| path.display().to_string())
        };
        assert_eq!(names("a/report.html"), ["a/report.txt", "a/report.json"]);
        assert_eq!(names("r.txt"), ["r.screen.txt", "r.json"]);
        assert_eq!(names("r.json"), ["r.txt", "r.data.json"]);
    }
}
