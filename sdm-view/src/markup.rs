//! Escaping of text for HTML and XML.

use std::fmt::{self, Display, Write};

use crate::render::printable_lines;

/// Appends formatted text to a page, which cannot fail.
macro_rules! put {
    ($page:expr, $($what:tt)*) => {
        std::fmt::Write::write_fmt(&mut *$page, format_args!($($what)*))
            .expect("a string takes any text")
    };
}
pub(crate) use put;

/// Text for use between tags and in quoted attributes. It cannot open or close either, move a cursor, hide
/// text or change the direction of writing. Line feeds and tabs are kept.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in printable_lines(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // XML has no place for these.
                '\u{fffe}' | '\u{ffff}' => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped() {
        for (text, expect) in [
            ("a < b && c", "a &lt; b &amp;&amp; c"),
            (
                "\"><script>x('1')</script>",
                "&quot;&gt;&lt;script&gt;x(&#39;1&#39;)&lt;/script&gt;",
            ),
            ("\x1b[31m\u{0}\u{202e}", "\\x1b[31m\\x00\\u{202e}"),
            ("a\n\tb\u{fffe}", "a\n\tb\\u{fffe}"),
        ] {
            assert_eq!(Escaped(text).to_string(), expect);
        }
    }
}
