//! Evaluator for the expressions of the fake: integers, names, `+ - * / %`, comparisons, `&& ||` and parentheses.

use sdm_debug::{Failure, FailureCode};

/// Maximum length of an expression, in bytes. It also limits the nesting.
const EXPRESSION_BYTES_MAX: usize = 1024;

/// The value of `expression` in gdb's notation. `lookup` returns the text of the value of a name; `None` if there is no
/// such name.
pub(super) fn evaluate(
    expression: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Failure> {
    let expression = expression.trim();
    // A name may stand for a value that is not a number.
    if let Some(text) = lookup(expression) {
        return Ok(text);
    }
    if expression.len() > EXPRESSION_BYTES_MAX {
        let text = format!("expression longer than {EXPRESSION_BYTES_MAX} bytes");
        return Err(Failure::new(FailureCode::Limit, text));
    }
    let mut parser = Parser {
        rest: expression,
        lookup,
    };
    let value = parser.either()?;
    match parser.skip() {
        "" => Ok(value.to_string()),
        rest => Err(syntax(rest)),
    }
}

struct Parser<'a> {
    rest: &'a str,
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Parser<'_> {
    fn skip(&mut self) -> &str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    /// Consumes the next operator if it is one of `operators`; otherwise `None`.
    fn operator(&mut self, operators: &str) -> Option<char> {
        let next = self.skip().chars().next()?;
        operators.contains(next).then(|| {
            self.rest = &self.rest[1..];
            next
        })
    }

    /// Consumes the next symbol if it is one of `symbols`; otherwise `None`.
    fn symbol(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        let rest = self.skip();
        let next = *symbols.iter().find(|symbol| rest.starts_with(**symbol))?;
        self.rest = &self.rest[next.len()..];
        Some(next)
    }

    fn either(&mut self) -> Result<i128, Failure> {
        let mut value = self.both()?;
        while self.symbol(&["||"]).is_some() {
            let right = self.both()?;
            value = i128::from(value != 0 || right != 0);
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<i128, Failure> {
        let mut value = self.comparison()?;
        while self.symbol(&["&&"]).is_some() {
            let right = self.comparison()?;
            value = i128::from(value != 0 && right != 0);
        }
        Ok(value)
    }

    fn comparison(&mut self) -> Result<i128, Failure> {
        let left = self.sum()?;
        let Some(symbol) = self.symbol(&["==", "!=", "<=", ">=", "<", ">"]) else {
            return Ok(left);
        };
        let right = self.sum()?;
        Ok(i128::from(match symbol {
            "==" => left == right,
            "!=" => left != right,
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            _ => left > right,
        }))
    }

    fn sum(&mut self) -> Result<i128, Failure> {
        let mut value = self.product()?;
        while let Some(operator) = self.operator("+-") {
            let right = self.product()?;
            value = match operator {
                '+' => value.checked_add(right),
                _ => value.checked_sub(right),
            }
            .ok_or_else(overflow)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, Failure> {
        let mut value = self.factor()?;
        while let Some(operator) = self.operator("*/%") {
            let right = self.factor()?;
            if right == 0 && operator != '*' {
                return Err(gdb("Division by zero"));
            }
            value = match operator {
                '*' => value.checked_mul(right),
                '/' => value.checked_div(right),
                _ => value.checked_rem(right),
            }
            .ok_or_else(overflow)?;
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<i128, Failure> {
        match self.operator("-(") {
            Some('-') => return self.factor()?.checked_neg().ok_or_else(overflow),
            Some(_) => {
                let value = self.either()?;
                return match self.operator(")") {
                    Some(_) => Ok(value),
                    None => Err(syntax(self.rest)),
                };
            }
            None => {}
        }
        let rest = self.rest;
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        match word.bytes().next() {
            None => Err(syntax(rest)),
            Some(b'0'..=b'9') => word
                .parse()
                .map_err(|_| gdb(&format!("Invalid number \"{word}\"."))),
            Some(_) => {
                let text = (self.lookup)(word)
                    .ok_or_else(|| gdb(&format!("No symbol \"{word}\" in current context.")))?;
                text.parse()
                    .map_err(|_| gdb("Argument to arithmetic operation not a number or boolean."))
            }
        }
    }
}

fn gdb(text: &str) -> Failure {
    Failure::new(FailureCode::Gdb, text)
}

fn overflow() -> Failure {
    gdb("Numeric constant too large.")
}

fn syntax(rest: &str) -> Failure {
    gdb(&format!("A syntax error in expression, near `{rest}'."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str) -> String {
        let lookup = |name: &str| match name {
            "rank" => Some("7".to_owned()),
            "name" => Some("\"halo\"".to_owned()),
            _ => None,
        };
        match evaluate(expression, &lookup) {
            Ok(text) => text,
            Err(failure) => failure.text,
        }
    }

    #[test]
    fn fake_gdb_evaluates_expressions() {
        let check =
            |expression: &str, expect| assert_eq!(value(expression), expect, "{expression}");
        check("rank", "7");
        check(" rank % 4", "3");
        check("1 + 2 * (3 - rank)", "-7");
        check("-rank + 100 / 7", "7");
        check("rank > 6 && rank <= 7 || 0", "1");
        check("(rank == 3) + (rank != 3)", "1");
        check("rank < 3 || rank >= 8", "0");
        check("rank >", "A syntax error in expression, near `'.");
        check("name", "\"halo\"");
        check("nmae", "No symbol \"nmae\" in current context.");
        check("rank +", "A syntax error in expression, near `'.");
        check("(1", "A syntax error in expression, near `'.");
        check("1 2", "A syntax error in expression, near `2'.");
        check("", "A syntax error in expression, near `'.");
        check("rank / 0", "Division by zero");
        check("rank % 0", "Division by zero");
        check("12x", "Invalid number \"12x\".");
        check("é", "A syntax error in expression, near `é'.");
        let check_nested = "(".repeat(2000);
        check(&check_nested, "expression longer than 1024 bytes");
    }
}
