//! Layout of JSON for comparison line by line. Short values are on one line, and names are sorted.

use serde_json::Value;

/// Maximum length of a line with an object or list, in characters.
const LINE_MAX: usize = 140;

/// The text of a value, with a newline at its end.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text.push('\n');
    sdm_text::record(&text)
}

fn write(text: &mut String, value: &Value, indent: usize) {
    let begin = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
    let line = on_one_line(value);
    let is_leaf = !matches!(value, Value::Object(_) | Value::Array(_));
    if is_leaf || begin + line.chars().count() <= LINE_MAX {
        text.push_str(&line);
        return;
    }
    let (open, close) = brackets(value);
    text.push(open);
    for (number, (name, part)) in parts(value).enumerate() {
        text.push_str(if number > 0 { ",\n" } else { "\n" });
        text.push_str(&" ".repeat(indent + 1));
        text.push_str(&name);
        write(text, part, indent + 1);
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push(close);
}

fn on_one_line(value: &Value) -> String {
    if !matches!(value, Value::Object(_) | Value::Array(_)) {
        return value.to_string();
    }
    let (open, close) = brackets(value);
    let parts = parts(value).map(|(name, part)| name + &on_one_line(part));
    let parts: Vec<String> = parts.collect();
    format!("{open}{}{close}", parts.join(", "))
}

fn brackets(value: &Value) -> (char, char) {
    if value.is_object() {
        ('{', '}')
    } else {
        ('[', ']')
    }
}

/// The elements of an object or list, each with its quoted name if it has one.
fn parts(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let mut fields: Vec<_> = value.as_object().into_iter().flatten().collect();
    fields.sort_by_key(|(name, _)| *name);
    let fields = fields.into_iter();
    let fields = fields.map(|(name, part)| (format!("{}: ", Value::from(name.as_str())), part));
    let items = value.as_array().into_iter().flatten();
    fields.chain(items.map(|part| (String::new(), part)))
}
