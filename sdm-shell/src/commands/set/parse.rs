//! Parsing of a set's text into a [`SetExpr`].

use sdm_debug::quotes::outside_quotes;
use sdm_hosts::hostlist::HostPattern;
use sdm_idset::{ID_MAX, IdSet, Stride, TaskId};

use super::{Node, Operator, SetExpr, SetName, Until};

/// Maximum length in bytes of a text that is a set as a whole.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Maximum nesting depth of parentheses and `!` in a set.
const DEPTH_MAX: u32 = 32;
/// Maximum number of elements of one set.
const ELEMENTS_MAX: u32 = 8192;
/// Maximum number of tasks in all ranges of one set. It limits the parsing time.
const IDS_NAMED_MAX: u64 = 2 * (ID_MAX as u64 + 1);
/// Maximum length of the expression of an `@if`, in bytes.
const IF_BYTES_MAX: usize = 4096;

/// The text of an error for a set beyond [`DEPTH_MAX`].
fn too_deep() -> String {
    format!("parentheses and `!` of a set are nested more than {DEPTH_MAX} deep")
}

/// A syntax error in a set: `what` is wrong, at byte `at` of the text.
#[derive(Debug)]
pub(super) struct SetError {
    pub(super) at: usize,
    pub(super) what: String,
}

/// Parses a set at the start of `text`. Returns the set and the number of bytes used.
pub(super) fn parse(text: &str, until: Until) -> Result<(SetExpr, usize), SetError> {
    let mut parser = Parser {
        text,
        at: 0,
        until,
        elements: 0,
        ids_named: 0,
    };
    if text.len() > TEXT_BYTES_MAX && until == Until::End {
        return Err(parser.error_at(0, "the set is longer than 65536 bytes"));
    }
    parser.blanks();
    let start = parser.at;
    let node = parser.chain(0)?;
    let thread = parser.thread()?;
    let end = parser.at;
    parser.end()?;
    let set = SetExpr {
        text: text[start..end].trim_end().to_owned(),
        at: 0,
        node,
        thread,
    };
    Ok((set, parser.at))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    until: Until,
    elements: u32,
    ids_named: u64,
}

impl<'a> Parser<'a> {
    fn chain(&mut self, depth: u32) -> Result<Node, SetError> {
        let first = self.element(depth)?;
        let mut rest = Vec::new();
        loop {
            let here = self.at;
            self.inner_blanks(depth);
            let Some(operator) = self.operator() else {
                self.at = here;
                break;
            };
            self.inner_blanks(depth);
            rest.push((operator, self.element(depth)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Node::Chain(Box::new(first), rest))
    }

    fn element(&mut self, depth: u32) -> Result<Node, SetError> {
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            return Err(self.error(format!("the set has more than {ELEMENTS_MAX} elements")));
        }
        match self.peek() {
            Some('0'..='9') => self.range(),
            Some('@') => self.name(),
            Some('(') => {
                let open = self.at;
                if depth == DEPTH_MAX {
                    return Err(self.error(too_deep()));
                }
                self.at += 1;
                self.blanks();
                let node = self.chain(depth + 1)?;
                self.blanks();
                match self.peek() {
                    Some(')') => self.at += 1,
                    Some(_) => return Err(self.error("expected `,`, `!`, `&`, `^` or `)`")),
                    None => return Err(self.error_at(open, "this `(` is not closed")),
                }
                Ok(node)
            }
            Some('!') => {
                self.at += 1;
                if depth == DEPTH_MAX {
                    return Err(self.error(too_deep()));
                }
                let node = self.element(depth + 1)?;
                Ok(Node::Chain(
                    Box::new(Node::All),
                    vec![(Operator::Without, node)],
                ))
            }
            Some(c) if c.is_ascii_alphabetic() => self.all(),
            _ => Err(self.error("expected a set of ranks: 0-3,7 or all or @stopped")),
        }
    }

    fn all(&mut self) -> Result<Node, SetError> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let word = &rest[..end];
        if !word.eq_ignore_ascii_case("all") {
            return Err(self.error(format!(
                "expected a set of ranks, not `{word}`; a named set is written `@{word}`"
            )));
        }
        self.at += end;
        Ok(Node::All)
    }

    fn range(&mut self) -> Result<Node, SetError> {
        let at = self.at;
        let first = self.id()?;
        let (mut last, mut step) = (first, 1);
        if self.eat("..") || self.eat("-") {
            let here = self.at;
            last = self.id()?;
            if last < first {
                return Err(self.error_at(here, "expected a last rank not smaller than the first"));
            }
            if self.eat("/") {
                let here = self.at;
                step = self.id()?;
                if step == 0 {
                    return Err(self.error_at(here, "expected a step of at least 1"));
                }
            }
        } else if self.peek() == Some('/') {
            return Err(self.error("expected a range before the step, as in 0-8/2"));
        }
        let stride = Stride::new(TaskId(first), TaskId(last), step)
            .ok_or_else(|| self.error_at(at, "expected a range"))?;
        self.ids_named += stride.count();
        if self.ids_named > IDS_NAMED_MAX {
            return Err(self.error_at(
                at,
                format!("the ranges have more than {IDS_NAMED_MAX} ranks in total"),
            ));
        }
        let mut ids = IdSet::new();
        ids.insert_stride(stride);
        Ok(Node::Ids { ids, at })
    }

    fn id(&mut self) -> Result<u32, SetError> {
        let at = self.at;
        let id = self.number()?;
        if id > ID_MAX {
            return Err(self.error_at(at, format!("expected a number of at most {ID_MAX}")));
        }
        Ok(id)
    }

    fn number(&mut self) -> Result<u32, SetError> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let digits = &rest[..end];
        if digits.is_empty() {
            return Err(self.error("expected a number"));
        }
        let Ok(value) = digits.parse() else {
            return Err(self.error("expected a smaller number"));
        };
        self.at += end;
        Ok(value)
    }

    fn name(&mut self) -> Result<Node, SetError> {
        let at = self.at;
        self.at += 1;
        let name = if self.peek().is_some_and(|c| c.is_ascii_digit()) && !self.is_file() {
            let here = self.at;
            match self.number()? {
                0 => return Err(self.error_at(here, "classes are counted from 1")),
                number => SetName::Class(number),
            }
        } else if self.eat("bp:") {
            SetName::Breakpoint(self.number()?)
        } else if self.eat("host:") {
            let here = self.at;
            let pattern = self.word(true);
            if pattern.is_empty() {
                return Err(self.error_at(here, "expected a host, as in @host:n[01-04]"));
            }
            let read = HostPattern::parse(pattern);
            SetName::Host(read.map_err(|wrong| self.error_at(here + wrong.at, wrong.what))?)
        } else if self.eat("at:") {
            match self.word(false) {
                "" => return Err(self.error("expected a function, as in @at:exchange")),
                function => SetName::At(function.to_owned()),
            }
        } else if self.eat("if:") {
            SetName::If(self.condition()?)
        } else {
            self.file_or_word()?
        };
        Ok(Node::Named { name, at })
    }

    /// True if a file name begins with the digit here: `@2d.c:7`.
    fn is_file(&self) -> bool {
        let rest = self.rest();
        let word = &rest[..word_end(rest, false)];
        word.contains(':')
    }

    fn file_or_word(&mut self) -> Result<SetName, SetError> {
        let at = self.at;
        let rest = self.rest();
        let word = &rest[..word_end(rest, false)];
        if let Some((file, line)) = word.rsplit_once(':') {
            if file.is_empty() {
                return Err(self.error("expected a file before the `:`"));
            }
            self.at += file.len() + 1;
            let here = self.at;
            if line.is_empty() {
                return Err(self.error("expected a line, as in @halo.c:120"));
            }
            return match self.number()? {
                0 => Err(self.error_at(here, "lines are counted from 1")),
                line => Ok(SetName::Place {
                    file: file.to_owned(),
                    line,
                }),
            };
        }
        // The part after a dot is a thread: `@stopped.2`.
        let word = word.split('.').next().unwrap_or(word);
        if word.is_empty() {
            return Err(self.error_at(at, "expected a name: @stopped, @1, @host:n1, @at:main"));
        }
        self.at += word.len();
        Ok(SetName::Word(word.to_owned()))
    }

    /// Takes the text up to the next operator, blank or bracket. With `brackets`, a `[...]` of a host name
    /// is part of it.
    fn word(&mut self, brackets: bool) -> &'a str {
        let rest = self.rest();
        let end = word_end(rest, brackets);
        self.at += end;
        &rest[..end]
    }

    /// Parses `(EXPRESSION)`. Brackets outside of quotes must be balanced.
    fn condition(&mut self) -> Result<String, SetError> {
        let open = self.at;
        let rest = self.rest();
        if !rest.starts_with('(') {
            return Err(self.error("expected brackets, as in @if:(x > 3)"));
        }
        let mut depth = 0_u32;
        for (index, c) in outside_quotes(rest) {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let expression = rest[1..index].trim();
                if expression.is_empty() || index > IF_BYTES_MAX {
                    return Err(self.error("expected an expression, as in @if:(x > 3)"));
                }
                self.at += index + 1;
                return Ok(expression.to_owned());
            }
        }
        Err(self.error_at(open, "this `(` is not closed"))
    }

    fn thread(&mut self) -> Result<Option<u32>, SetError> {
        if !self.eat(".") {
            return Ok(None);
        }
        let at = self.at;
        let thread = self.number()?;
        if thread == 0 {
            return Err(self.error_at(at, "threads are counted from 1"));
        }
        Ok(Some(thread))
    }

    /// Checks that the set ends here, and skips its closing bracket.
    fn end(&mut self) -> Result<(), SetError> {
        let here = self.at;
        self.blanks();
        match (self.until, self.peek()) {
            (Until::Blank | Until::End, None) => Ok(()),
            (Until::Blank, Some(_)) if self.at > here => Ok(()),
            (Until::Bracket, Some(']')) => {
                self.at += 1;
                Ok(())
            }
            (Until::Bracket, None) => Err(self.error("expected `]` after the set")),
            (_, Some(c)) => {
                let after_thread = self.text[..self.at].contains('.') && is_operator(c);
                Err(self.error(if after_thread {
                    "expected the end of the set: give the thread once, at the end".to_owned()
                } else {
                    format!("expected `,`, `!`, `&`, `^` or the end of the set, not `{c}`")
                }))
            }
        }
    }

    fn operator(&mut self) -> Option<Operator> {
        let operator = match self.peek()? {
            ',' => Operator::Either,
            '!' => Operator::Without,
            '&' => Operator::Both,
            '^' => Operator::OneOf,
            _ => return None,
        };
        self.at += 1;
        Some(operator)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips blanks around an operator, unless a blank ends the set.
    fn inner_blanks(&mut self, depth: u32) {
        if self.until != Until::Blank || depth > 0 {
            self.blanks();
        }
    }

    fn error(&self, what: impl Into<String>) -> SetError {
        self.error_at(self.at, what)
    }

    fn error_at(&self, at: usize, what: impl Into<String>) -> SetError {
        SetError {
            at,
            what: what.into(),
        }
    }
}

fn is_operator(c: char) -> bool {
    matches!(c, ',' | '!' | '&' | '^')
}

fn word_end(text: &str, brackets: bool) -> usize {
    let mut inside = false;
    for (index, c) in text.char_indices() {
        match c {
            '[' if brackets && !inside => inside = true,
            ']' if inside => inside = false,
            _ if inside => {}
            c if is_operator(c) || c.is_whitespace() => return index,
            '(' | ')' | '[' | ']' => return index,
            _ => {}
        }
    }
    text.len()
}
