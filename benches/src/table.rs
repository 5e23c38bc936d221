//! Tables: Markdown on stdout, CSV in a file.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// Environment variable with the folder for CSV files; `target/bench` where it is not set.
pub const OUT_VARIABLE: &str = "SDM_BENCH_OUT";

/// A table with a name.
#[derive(Clone, Debug)]
pub struct Table {
    name: &'static str,
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table; `name` is that of its CSV file.
    #[must_use]
    pub fn new(name: &'static str, title: impl Into<String>, head: &[&str]) -> Self {
        Self {
            name,
            title: title.into(),
            head: head.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: one cell per column.
    ///
    /// # Panics
    /// If the number of cells is another: the caller's error.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// Prints the table and writes its CSV file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&self) -> Result<()> {
        println!("{}", self.markdown());
        let folder = std::env::var_os(OUT_VARIABLE)
            .map_or_else(|| PathBuf::from("target/bench"), PathBuf::from);
        let path = folder.join(self.name).with_extension("csv");
        let csv = self.csv()?;
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, csv))
            .with_context(|| format!("write {}", path.display()))
    }

    fn markdown(&self) -> String {
        let mut text = format!("**{}**\n\n", self.title);
        let rule = vec!["---".to_owned(); self.head.len()];
        for row in [&self.head, &rule].into_iter().chain(&self.rows) {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }

    fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in [&self.head].into_iter().chain(&self.rows) {
            writer.write_record(row)?;
        }
        Ok(writer.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_written_as_csv_and_markdown() {
        let mut table = Table::new("t", "A title", &["n", "what"]);
        table.row(vec!["1".into(), "a, \"b\"".into()]);
        assert_eq!(table.csv().unwrap(), b"n,what\n1,\"a, \"\"b\"\"\"\n");
        let expect = "**A title**\n\n| n | what |\n| --- | --- |\n| 1 | a, \"b\" |\n";
        assert_eq!(table.markdown(), expect);
    }
}
