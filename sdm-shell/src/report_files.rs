//! Where reports go.

use std::path::{Path, PathBuf};

use sdm_view::escape::{record, shown};
use sdm_view::report::{Report, html, json, junit, text};

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFiles {
    /// The page.
    pub page: PathBuf,
    /// One screen of text; beside the page.
    pub text: PathBuf,
    /// For programs; beside the page.
    pub json: PathBuf,
    /// For a build server, where one is wanted.
    pub junit: Option<PathBuf>,
}

impl ReportFiles {
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
        let write = |path: &Path, content: String| {
            sdm_core::files::replace(path, content.as_bytes())
                .map_err(|error| format!("write {}: {error}", path.display()))
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
    fn what_stands_beside_a_page_has_a_name_of_its_own() {
        let names = |page: &str| {
            let files = ReportFiles::of_page(page.into(), None);
            [files.text, files.json].map(|path| path.display().to_string())
        };
        assert_eq!(names("a/report.html"), ["a/report.txt", "a/report.json"]);
        assert_eq!(names("r.txt"), ["r.screen.txt", "r.json"]);
        assert_eq!(names("r.json"), ["r.txt", "r.data.json"]);
    }
}
