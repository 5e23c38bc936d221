//! Key bindings of the user, and the keys listed in the bottom line.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum number of key bindings.
const BINDINGS_MAX: usize = 200;
/// Keys with names.
const NAMED: [(&str, KeyCode); 16] = [
    ("Enter", KeyCode::Enter),
    ("Tab", KeyCode::Tab),
    ("BackTab", KeyCode::BackTab),
    ("Esc", KeyCode::Esc),
    ("Space", KeyCode::Char(' ')),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("Ins", KeyCode::Insert),
    ("Del", KeyCode::Delete),
    ("Backspace", KeyCode::Backspace),
];

/// An error in a key binding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// The binding is not a pair of keys.
    #[error("expected KEY=KEY, as in F8=n, not {0:?}")]
    NoPair(String),
    /// The key does not exist.
    #[error(
        "{0:?} is not a key: expected a letter or sign, F1 to F12, S-F11, ^X, Enter, Tab, Esc, Space, Up, Down, \
         Left, Right, PgUp, PgDn, Home, End, Ins, Del or Backspace"
    )]
    NoKey(String),
    /// There are too many bindings.
    #[error("more than {BINDINGS_MAX} keys are bound")]
    TooMany,
}

/// Keys that the user has bound to other keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(Vec<(KeyEvent, Option<KeyEvent>)>);

impl Bindings {
    /// Parses bindings from the settings: `F8=n` lets F8 act as `n`, `x=none` disables `x`.
    ///
    /// # Errors
    /// A binding is invalid, or there are too many.
    pub fn parse<'a>(all: impl IntoIterator<Item = &'a str>) -> Result<Self, BindingError> {
        let mut bindings = Vec::new();
        for pair in all {
            // `==c` binds the key `=`.
            let parts = match pair.strip_prefix('=') {
                Some(rest) => rest.strip_prefix('=').map(|meant| ("=", meant)),
                None => pair.split_once('='),
            };
            let (typed, meant) = parts.ok_or_else(|| BindingError::NoPair(pair.to_owned()))?;
            let meant = match meant {
                "none" => None,
                meant => Some(key(meant)?),
            };
            if bindings.len() == BINDINGS_MAX {
                return Err(BindingError::TooMany);
            }
            bindings.push((key(typed)?, meant));
        }
        Ok(Self(bindings))
    }

    /// The key whose action a key has; None if it is disabled. The last binding of a key counts.
    pub(crate) fn meant(&self, typed: KeyEvent) -> Option<KeyEvent> {
        let typed = plain(typed);
        let found = self.0.iter().rfind(|(known, _)| *known == typed);
        found.map_or(Some(typed), |(_, meant)| *meant)
    }

    /// The key that the user presses for the default action of this key. None if no key has that action.
    pub(crate) fn typed(&self, meant: KeyEvent) -> Option<KeyEvent> {
        if self.meant(meant) == Some(meant) {
            return Some(meant);
        }
        let all = self.0.iter().rev();
        let mut does = all.filter(|(typed, _)| self.meant(*typed) == Some(meant));
        does.next().map(|(typed, _)| *typed)
    }

    /// The bottom line of keys, with these bindings.
    pub(crate) fn footer(&self, line: &str) -> String {
        if self.0.is_empty() {
            return line.to_owned();
        }
        let bound = |group: &str| {
            let word = |(at, word): (usize, &str)| match key_of(group, at, word) {
                Some(key) => self.typed(key).map(name),
                None => Some(word.to_owned()),
            };
            let words: Option<Vec<String>> = group.split(' ').enumerate().map(word).collect();
            words.map(|words| words.join(" "))
        };
        let groups: Vec<String> = line.split("  ").filter_map(bound).collect();
        groups.join("  ")
    }

    /// A line for each binding, for the help screen.
    pub(crate) fn lines(&self) -> Vec<String> {
        let each = self.0.iter().map(|(typed, meant)| match meant {
            Some(meant) => format!("{:<8} as {}", name(*typed), name(*meant)),
            None => format!("{:<8} does nothing", name(*typed)),
        });
        each.collect()
    }
}

/// The key at this column of the bottom line, if there is one.
pub(crate) fn key_at(line: &str, column: usize) -> Option<KeyEvent> {
    let mut from = 0;
    for group in line.split("  ") {
        let to = from + group.chars().count();
        if (from..to).contains(&column) {
            let mut at = from;
            for (number, word) in group.split(' ').enumerate() {
                let end = at + word.chars().count();
                let found = key_of(group, number, word);
                if found.is_some() && ((at..=end).contains(&column) || !is_keys_only(group)) {
                    return found;
                }
                at = end + 1;
            }
            return None;
        }
        from = to + 2;
    }
    None
}

/// The key that a word of the bottom line stands for. In a group the first word is the key, and the others
/// describe it, unless all are keys.
fn key_of(group: &str, at: usize, word: &str) -> Option<KeyEvent> {
    match at == 0 || is_keys_only(group) {
        true => key(word).ok(),
        false => None,
    }
}

fn is_keys_only(group: &str) -> bool {
    group.split(' ').all(|word| key(word).is_ok())
}

/// Removes Shift from a letter, which is already upper case, and from BackTab.
fn plain(event: KeyEvent) -> KeyEvent {
    let mut modifiers = event.modifiers;
    if matches!(event.code, KeyCode::Char(_) | KeyCode::BackTab) {
        modifiers.remove(KeyModifiers::SHIFT);
    }
    KeyEvent::new(event.code, modifiers)
}

/// A key by its name.
fn key(word: &str) -> Result<KeyEvent, BindingError> {
    let error = || BindingError::NoKey(word.to_owned());
    let none = KeyModifiers::NONE;
    let mut chars = word.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Ok(KeyEvent::new(KeyCode::Char(c), none));
    }
    let mut chars = word.chars();
    if let (Some('^'), Some(c), None) = (chars.next(), chars.next(), chars.next()) {
        let code = KeyCode::Char(c.to_ascii_lowercase());
        return Ok(KeyEvent::new(code, KeyModifiers::CONTROL));
    }
    let (word, modifiers) = match word.strip_prefix("S-") {
        Some(rest) => (rest, KeyModifiers::SHIFT),
        None => (word, none),
    };
    let named = NAMED.iter().find(|(name, _)| *name == word);
    let code = match (named, word.strip_prefix('F')) {
        (Some((_, code)), _) => *code,
        (None, Some(number)) => {
            let number: u8 = number.parse().map_err(|_| error())?;
            match (1..=12).contains(&number) {
                true => KeyCode::F(number),
                false => return Err(error()),
            }
        }
        (None, None) => return Err(error()),
    };
    Ok(KeyEvent::new(code, modifiers))
}

/// A key's name.
fn name(event: KeyEvent) -> String {
    let named = NAMED.iter().find(|(_, code)| *code == event.code);
    let word = match (named, event.code) {
        (Some((name, _)), _) => (*name).to_owned(),
        (None, KeyCode::F(number)) => format!("F{number}"),
        (None, KeyCode::Char(c)) => c.to_string(),
        (None, _) => "?".to_owned(),
    };
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return format!("^{}", word.to_uppercase());
    }
    match event.modifiers.contains(KeyModifiers::SHIFT) {
        true => format!("S-{word}"),
        false => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(c: char) -> KeyEvent {
        KeyEvent::from(KeyCode::Char(c))
    }

    #[test]
    fn key_binding_replaces_a_key_by_another() {
        let bindings = Bindings::parse(["F8=n", "x=none", "^T=t", "==G", "c=x"]).unwrap();
        let f8 = KeyEvent::from(KeyCode::F(8));
        assert_eq!(bindings.meant(f8), Some(typed('n')));
        assert_eq!(bindings.meant(typed('x')), None);
        assert_eq!(bindings.meant(typed('=')), Some(typed('G')));
        assert_eq!(bindings.meant(typed('c')), Some(typed('x')));
        assert_eq!(bindings.meant(typed('n')), Some(typed('n')));
        let control = KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL);
        assert_eq!(bindings.meant(control), Some(typed('t')));
        // Terminals differ in how they report a capital letter.
        let capital = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(bindings.meant(capital), Some(typed('G')));
    }

    #[test]
    fn malformed_key_binding_is_refused() {
        for (text, error) in [
            ("n", BindingError::NoPair("n".to_owned())),
            ("F13=n", BindingError::NoKey("F13".to_owned())),
            ("x=Entr", BindingError::NoKey("Entr".to_owned())),
            ("=n", BindingError::NoPair("=n".to_owned())),
        ] {
            assert_eq!(Bindings::parse([text]), Err(error));
        }
        let many = vec!["a=b"; BINDINGS_MAX + 1];
        assert_eq!(Bindings::parse(many), Err(BindingError::TooMany));
    }

    #[test]
    fn footer_shows_bindings_and_takes_clicks() {
        const LINE: &str = "c n  b breakpoint  Enter do it  1-4 views  ? help";
        let bindings = Bindings::parse(["c=none", "n=c", "F8=n", "b=none"]).unwrap();
        let line = bindings.footer(LINE);
        assert_eq!(line, "n F8  Enter do it  1-4 views  ? help");
        assert_eq!(Bindings::default().footer(LINE), LINE);
        let at = |part: &str| key_at(LINE, LINE.find(part).unwrap());
        assert_eq!(at("n"), Some(typed('n')));
        assert_eq!(at("breakpoint"), Some(typed('b')));
        assert_eq!(at("it"), Some(KeyEvent::from(KeyCode::Enter)));
        assert_eq!(at("1-4"), None);
        assert_eq!(key_at(LINE, 400), None);
    }
}
