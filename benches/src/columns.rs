//! Reader of a bench's CSV file, by the names of its columns.

use std::path::Path;

use anyhow::{Context, Result};
use csv::{Reader, StringRecord};

/// A table that was read back.
pub struct Columns {
    file: String,
    head: StringRecord,
    rows: Vec<StringRecord>,
}

/// A row, as a function from a column's name to its cell; empty for an unknown column.
pub type Row<'a> = &'a dyn Fn(&str) -> &'a str;

impl Columns {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not CSV.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.display().to_string();
        let read = || -> Result<(StringRecord, Vec<StringRecord>)> {
            let mut reader = Reader::from_path(path)?;
            let head = reader.headers()?.clone();
            Ok((head, reader.records().collect::<Result<_, _>>()?))
        };
        let (head, rows) = read().with_context(|| format!("read {file}"))?;
        Ok(Self { file, head, rows })
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.head.iter()
    }

    /// Calls `look` with each row.
    pub fn each(&self, mut look: impl FnMut(Row<'_>)) {
        for row in &self.rows {
            look(&|column| self.cell(row, column));
        }
    }

    /// The numbers in two columns, for the rows that `wanted` accepts.
    ///
    /// # Errors
    /// There is no such column, or a cell is no number.
    pub fn points(
        &self,
        x: &str,
        y: &str,
        wanted: impl Fn(Row<'_>) -> bool,
    ) -> Result<Vec<(f64, f64)>> {
        let number = |row, column: &str| -> Result<f64> {
            let cell = self.cell(row, column);
            let parsed = cell.parse();
            parsed.with_context(|| format!("{}: {column}: {cell:?}", self.file))
        };
        let rows = self.rows.iter();
        let wanted = rows.filter(|row| wanted(&|column| self.cell(row, column)));
        wanted
            .map(|row| Ok((number(row, x)?, number(row, y)?)))
            .collect()
    }

    fn cell<'a>(&self, row: &'a StringRecord, column: &str) -> &'a str {
        let at = self.head.iter().position(|name| name == column);
        at.and_then(|at| row.get(at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plot_points_are_read_from_named_csv_columns() {
        let path = std::env::temp_dir().join(format!("sdm-columns-{}.csv", std::process::id()));
        std::fs::write(&path, "n,\"kind, of\",ms\n16,a,0.5\n32,b,1\n64,a,x\n").unwrap();
        let columns = Columns::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(columns.names().collect::<Vec<_>>(), ["n", "kind, of", "ms"]);
        let of = |kind: &'static str, y| columns.points("n", y, move |row| row("kind, of") == kind);
        assert_eq!(of("b", "ms").unwrap(), [(32.0, 1.0)]);
        let error = of("a", "ms").unwrap_err().to_string();
        assert!(error.ends_with("ms: \"x\""), "{error}");
        assert!(of("b", "us").is_err());
    }
}
