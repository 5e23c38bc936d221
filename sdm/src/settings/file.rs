//! The settings file: TOML, with options outside of tables, in a command's table or in the table of a profile
//! (`[profile.NAME]`).

use sdm_text::printable_name;
use std::io::ErrorKind;
use std::path::Path;

use sdm_system::files;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::profile::PROFILES;
use super::{Origin, Setting, SettingsError};

/// Maximum size of a settings file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a file. A missing one counts as empty, unless `wanted` is true.
pub(super) fn read(path: &Path, wanted: bool) -> Result<Vec<Setting>, SettingsError> {
    let error = |what: String| SettingsError {
        place: printable_name(path),
        what,
    };
    // A setting can name a program: another user's are none.
    let file = match files::open_own(path) {
        Err(missing) if missing.kind() == ErrorKind::NotFound && !wanted => return Ok(Vec::new()),
        opened => opened.map_err(|why| error(why.to_string()))?,
    };
    let text = files::text_of(file, FILE_BYTES_MAX).map_err(|why| error(why.to_string()))?;
    parse(&text).map_err(|(line, what)| SettingsError {
        place: format!("{}:{line}", printable_name(path)),
        what,
    })
}

/// Parses settings. The error is the line number and the reason.
pub(super) fn parse(text: &str) -> Result<Vec<Setting>, (usize, String)> {
    let line_at = |at: usize| {
        text.as_bytes()[..at.min(text.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line_at(at), error.message().to_owned())
    })?;
    let mut settings = Vec::new();
    for (key, value) in table.get_ref() {
        let line = line_at(key.span().start);
        let name = key.get_ref().as_ref();
        let DeValue::Table(table) = value.get_ref() else {
            let origin = Origin::File(line);
            settings
                .push(setting(None, name, value, origin).map_err(|what| (line, what.to_string()))?);
            continue;
        };
        for (key, value) in table {
            let line = line_at(key.span().start);
            let key = key.get_ref().as_ref();
            if let (PROFILES, DeValue::Table(table)) = (name, value.get_ref()) {
                for (it, value) in table {
                    let line = line_at(it.span().start);
                    let setting = setting(None, it.get_ref(), value, Origin::Profile(line));
                    let mut setting = setting.map_err(|what| (line, what.to_string()))?;
                    setting.profile = Some(key.to_owned());
                    settings.push(setting);
                }
                continue;
            }
            let setting = setting(Some(name), key, value, Origin::Table(line));
            settings.push(setting.map_err(|what| (line, what.to_string()))?);
        }
    }
    Ok(settings)
}

/// A setting of this name has an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("{0}: expected a string, a number, true, false, or a list of them")]
struct NoValue(String);

fn setting(
    verb: Option<&str>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    origin: Origin,
) -> Result<Setting, NoValue> {
    let values = match value.get_ref() {
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| text_of(value.get_ref()));
            texts.collect::<Option<Vec<_>>>()
        }
        one => text_of(one).map(|text| vec![text]),
    };
    Ok(Setting {
        verb: verb.map(str::to_owned),
        profile: None,
        key: key.to_owned(),
        values: values.ok_or_else(|| NoValue(key.to_owned()))?,
        origin,
    })
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            number.ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(is) => Some(is.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "timeout = 7\n[run]\nhost = [\"a\", 'b'] # c\n[profile.big]\nn = 0x40\nwhere = true\n";

    /// Changes, removes or truncates the text at each byte. Errors name a line of the text.
    #[test]
    fn damaged_settings_are_parsed_or_refused_by_line() {
        let whole = TEXT.as_bytes();
        assert_eq!(parse(TEXT).map(|settings| settings.len()), Ok(4));
        let mut read = 0;
        let mut check = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            match parse(&text) {
                Ok(settings) => read += settings.len(),
                Err((line, what)) => {
                    let lines = text.split('\n').count();
                    assert!((1..=lines).contains(&line), "{line} of {lines}: {text:?}");
                    assert!(!what.is_empty());
                }
            }
        };
        for at in 0..whole.len() {
            check(&whole[..at]);
            check(&[&whole[..at], &whole[at + 1..]].concat());
            for byte in b"\0\n\"'[]{}=.,#\\9\x80\xff" {
                check(&[&whole[..at], &[*byte], &whole[at + 1..]].concat());
                check(&[&whole[..at], &[*byte], &whole[at..]].concat());
            }
        }
        // Several places at once, by a generator whose numbers are the same in each run.
        let mut word = 1_u64;
        let mut below = |bound: usize| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(word >> 33).expect("31 bits") % bound
        };
        for _ in 0..5000 {
            let mut bytes = whole.to_vec();
            for _ in 0..=below(6) {
                let at = below(bytes.len());
                match below(3) {
                    0 => bytes[at] = u8::try_from(below(256)).expect("a byte"),
                    1 => drop(bytes.splice(at..at, whole[below(whole.len())..].iter().copied())),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            check(&bytes);
        }
        assert!(read > 1000, "{read}");
    }
}
