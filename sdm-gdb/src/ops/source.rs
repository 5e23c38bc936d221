//! Lists source lines, types and shared libraries.

use sdm_debug::reply::{Library, SourceText};
use sdm_debug::{Failure, FailureCode, Reply};

use crate::gdb::Gdb;
use crate::text::base_name;
use crate::text::console_line;

/// The convenience variable for a value whose type is asked for.
const TYPED: &str = "$_sdm_typed";

/// Parses a line of `list`: its number, a tab, the text. `None` for another line.
fn listed(line: &str) -> Option<(u32, &str)> {
    let (number, text) = line.split_once('\t')?;
    Some((number.trim().parse().ok()?, text))
}

/// Source lines, as gdb's `list` prints them.
pub(crate) async fn list(gdb: &Gdb, what: &str) -> Result<Reply, Failure> {
    if what.contains(['\n', '\0']) {
        let text = "list: the location must be on one line";
        return Err(Failure::new(FailureCode::BadCommand, text));
    }
    let line = format!("list {what}");
    let (result, printed) = gdb
        .send(console_line(line.trim_end()))
        .capture()
        .printed()
        .await;
    result?;
    let file = gdb.mi("-file-list-exec-source-file").await?;
    let mut lines = printed.lines().filter_map(listed).peekable();
    let Some((first, _)) = lines.peek().copied() else {
        let text = format!("no source: {}", printed.trim());
        return Err(Failure::new(FailureCode::Gdb, text));
    };
    // Of several locations with headings of their own (an overloaded function) only the first is returned.
    let mut numbered = first..;
    let lines = lines.take_while(|(number, _)| numbered.next() == Some(*number));
    Ok(Reply::Source(SourceText {
        file: file
            .text("file")
            .map(base_name)
            .unwrap_or_default()
            .to_owned(),
        path: file.text("fullname").unwrap_or_default().to_owned(),
        first,
        lines: lines.map(|(_, text)| text.to_owned()).collect(),
    }))
}

pub(crate) async fn type_of(gdb: &Gdb, expression: &str, full: bool) -> Result<Reply, Failure> {
    let word = if full { "ptype" } else { "whatis" };
    let expression = super::history::own(gdb, expression)?;
    let plain = super::pointers::plain(gdb, &expression).await;
    let ask = async |expression: &str| {
        let line = console_line(&format!("{word} {expression}"));
        let (result, printed) = gdb.send(line).capture().printed().await;
        result.map(|_| Reply::Text(printed.trim_end().to_owned()))
    };
    let failure = match ask(&plain).await {
        Err(failure) if failure.code == FailureCode::Gdb => failure,
        answer => return answer,
    };
    // gdb takes some names of Fortran for its own words (`rank`). SDM's functions give their values, but gdb does not
    // call a function to find a type. Nor does it read memory, so that it does not follow a reference to a pointer.
    let is_harmless = super::strides::is_harmless(gdb, &expression).await;
    let valued = match super::pointers::valued(gdb, "", &expression).await {
        Ok(valued) if is_harmless || valued != expression => valued,
        _ => return Err(failure),
    };
    let kept = gdb
        .mi(console_line(&format!("set {TYPED} = {valued}")))
        .await;
    match kept.is_ok() {
        true => ask(TYPED).await.map_err(|_| failure),
        false => Err(failure),
    }
}

pub(crate) async fn libraries(gdb: &Gdb) -> Result<Reply, Failure> {
    let results = gdb.mi("-file-list-shared-libraries").await?;
    let library = |library: &sdm_mi::Results| Library {
        path: library.text("target-name").unwrap_or_default().to_owned(),
        symbols: library.text("symbols-loaded") == Some("1"),
    };
    let libraries = results.tuples("shared-libraries").map(library);
    Ok(Reply::Libraries(libraries.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_output_lines_are_parsed() {
        assert_eq!(listed("12\tint x;"), Some((12, "int x;")));
        assert_eq!(listed("12\t"), Some((12, "")));
        assert_eq!(listed("file: \"a.c\", line number: 3"), None);
        assert_eq!(listed("12"), None);
    }
}
