//! Evaluates expressions over variables in C syntax. Those of Fortran may have `+`, `-`, `*`, `/`, elements `a(i)`
//! and components `a%b`.

use gimli::UnitOffset;

use super::scope::{Object, Scope, Storage};
use super::value::{Number, ObjectValue, Value};

/// Maximum length of an expression, in bytes.
const BYTES_MAX: usize = 1024;
/// Maximum nesting depth of an expression.
const DEPTH_MAX: u32 = 32;

/// The binary operators with their precedence; a longer operator precedes its own prefixes.
const OPERATORS: [(&str, u32); 18] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// The value of an expression; `None` if it cannot be computed without side effects or calls. `variable` returns the
/// address of a variable that has no debug information.
pub(crate) fn evaluate(
    scope: &Scope<'_>,
    expression: &str,
    variable: &dyn Fn(&str) -> Option<u64>,
) -> Option<Value> {
    let has_effect = ["++", "--", "**", "//"]
        .iter()
        .any(|it| expression.contains(it));
    if expression.len() > BYTES_MAX || has_effect {
        return None;
    }
    let mut parser = Parser {
        scope,
        variable,
        rest: expression.trim(),
        depth: 0,
        is_fortran: scope.is_fortran(),
    };
    let value = parser.binary(0)?;
    let value = parser.plain(value)?;
    parser.rest.is_empty().then_some(value)
}

/// An operand: a value, or a variable that is not loaded yet.
enum Operand {
    Value(Value),
    Variable(Object),
}

struct Parser<'a> {
    scope: &'a Scope<'a>,
    variable: &'a dyn Fn(&str) -> Option<u64>,
    rest: &'a str,
    depth: u32,
    is_fortran: bool,
}

impl<'a> Parser<'a> {
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn plain(&self, operand: Operand) -> Option<Value> {
        match operand {
            Operand::Value(value) => Some(value),
            Operand::Variable(object) => self.scope.load(object),
        }
    }

    fn number(&self, operand: Operand) -> Option<Number> {
        match self.plain(operand)? {
            Value::Number(number) => Some(number),
            Value::Pointer { .. } | Value::Object(_) => None,
        }
    }

    fn binary(&mut self, above: u32) -> Option<Operand> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut left = self.unary()?;
        loop {
            let rest = self.rest;
            let found = OPERATORS.iter().find(|(text, _)| rest.starts_with(text));
            let Some((text, binds)) = found.filter(|(_, binds)| *binds > above) else {
                break;
            };
            // `%` separates names of members in Fortran.
            if self.is_fortran && !matches!(*text, "+" | "-" | "*" | "/") {
                return None;
            }
            self.take(text);
            let right = self.binary(*binds)?;
            left = Operand::Value(self.joined(text, left, right)?);
        }
        self.depth -= 1;
        Some(left)
    }

    fn joined(&self, operator: &str, left: Operand, right: Operand) -> Option<Value> {
        let left = self.plain(left)?;
        if let (Value::Pointer { at, to }, "+" | "-") = (&left, operator) {
            let by = self.number(right)?;
            let by = if operator == "+" { by.value } else { -by.value };
            return self.moved(*at, *to, by);
        }
        let (a, b) = (self.number(Operand::Value(left))?, self.number(right)?);
        let truth = |is: bool| Some(Value::Number(Number::int(i128::from(is))));
        let (x, y) = (a.value, b.value);
        let value = match operator {
            "||" => return truth(x != 0 || y != 0),
            "&&" => return truth(x != 0 && y != 0),
            "==" => return truth(x == y),
            "!=" => return truth(x != y),
            "<" => return truth(x < y),
            ">" => return truth(x > y),
            "<=" => return truth(x <= y),
            ">=" => return truth(x >= y),
            "<<" => x.checked_shl(u32::try_from(y).ok().filter(|by| *by < 32)?)?,
            ">>" => x.checked_shr(u32::try_from(y).ok().filter(|by| *by < 64)?)?,
            "|" => x | y,
            "^" => x ^ y,
            "&" => x & y,
            "+" => x.checked_add(y)?,
            "-" => x.checked_sub(y)?,
            "*" => x.checked_mul(y)?,
            "/" => x.checked_div(y)?,
            "%" => x.checked_rem(y)?,
            _ => return None,
        };
        // C converts a negative operand if the signs of the types differ. That is not supported.
        if a.is_unsigned != b.is_unsigned && (x < 0 || y < 0) {
            return None;
        }
        Number::of(value, &a, &b).map(Value::Number)
    }

    fn moved(&self, at: u64, to: Option<UnitOffset>, by: i128) -> Option<Value> {
        let size = i128::from(self.scope.size(to?)?);
        let at = i128::from(at).checked_add(size.checked_mul(by)?)?;
        let at = u64::try_from(at).ok()?;
        Some(Value::Pointer { at, to })
    }

    fn unary(&mut self) -> Option<Operand> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let operand = self.prefixed();
        self.depth -= 1;
        operand
    }

    fn prefixed(&mut self) -> Option<Operand> {
        let value = |value: Value| Some(Operand::Value(value));
        if self.take("-") {
            let operand = self.unary()?;
            let number = self.number(operand)?;
            let negative = Number::of(-number.value, &number, &number)?;
            return value(Value::Number(negative));
        }
        if self.take("+") {
            let operand = self.unary()?;
            return value(Value::Number(self.number(operand)?));
        }
        if self.is_fortran {
            return self.postfixed();
        }
        if self.take("!") {
            let operand = self.unary()?;
            let is_zero = self.number(operand)?.value == 0;
            return value(Value::Number(Number::int(i128::from(is_zero))));
        }
        if self.take("&") {
            return self.address();
        }
        if self.take("*") {
            let operand = self.unary()?;
            return pointed(&self.plain(operand)?).map(Operand::Variable);
        }
        if self.take("(void *)") || self.take("(void*)") {
            let operand = self.unary()?;
            let at = match self.plain(operand)? {
                Value::Pointer { at, .. } => at,
                Value::Number(number) => u64::try_from(number.value).ok()?,
                Value::Object(_) => return None,
            };
            return value(Value::Pointer { at, to: None });
        }
        if self.take("(int)") {
            let operand = self.unary()?;
            let number = self.number(operand)?.value;
            let is_int = i32::try_from(number).is_ok();
            return is_int.then(|| Operand::Value(Value::Number(Number::int(number))));
        }
        self.postfixed()
    }

    fn address(&mut self) -> Option<Operand> {
        let name = name_at(self.rest);
        let is_alone = self.rest.len() == name.len();
        if is_alone && self.scope.find(name).is_none() {
            let at = (self.variable)(name)?;
            self.take(name);
            return Some(Operand::Value(Value::Pointer { at, to: None }));
        }
        match self.unary()? {
            Operand::Variable(Object {
                place: Storage::At(at),
                kind,
            }) => Some(Operand::Value(Value::Pointer { at, to: Some(kind) })),
            Operand::Variable(_) | Operand::Value(_) => None,
        }
    }

    fn postfixed(&mut self) -> Option<Operand> {
        let mut operand = self.primary()?;
        loop {
            if self.is_fortran {
                let Operand::Variable(object) = &operand else {
                    return (!self.rest.starts_with(['(', '%'])).then_some(operand);
                };
                operand = match () {
                    () if self.take("(") => {
                        let indices = self.indices()?;
                        Operand::Variable(self.scope.element(object, &indices)?)
                    }
                    () if self.take("%") => {
                        let of = self.scope.load(object.clone())?;
                        let name = name_at(self.rest);
                        let Value::Object(of) = of else { return None };
                        let member = self.scope.member(&of, &name.to_ascii_lowercase())?;
                        self.take(name);
                        Operand::Variable(member)
                    }
                    () => return Some(operand),
                };
                continue;
            }
            if self.take("[") {
                let index = self.binary(0)?;
                let index = self.number(index)?.value;
                if !self.take("]") {
                    return None;
                }
                let Value::Pointer { at, to } = self.plain(operand)? else {
                    return None;
                };
                operand = Operand::Variable(pointed(&self.moved(at, to, index)?)?);
                continue;
            }
            let of = if self.take("->") {
                Value::Object(ObjectValue(pointed(&self.plain(operand)?)?))
            } else if self.take(".") {
                self.plain(operand)?
            } else {
                return (!self.rest.starts_with('(')).then_some(operand);
            };
            let name = name_at(self.rest);
            let Value::Object(of) = of else { return None };
            operand = Operand::Variable(self.scope.member(&of, name)?);
            self.take(name);
        }
    }

    /// The indices of an array element, up to the closing parenthesis; `None` if one is not a number.
    fn indices(&mut self) -> Option<Vec<i128>> {
        let mut indices = Vec::new();
        loop {
            let index = self.binary(0)?;
            indices.push(self.number(index)?.value);
            if self.take(")") {
                return Some(indices);
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    fn primary(&mut self) -> Option<Operand> {
        if self.take("(") {
            let inner = self.binary(0)?;
            return self.take(")").then_some(inner);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            let word = name_at(self.rest);
            let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
            let number = match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                // Octal numbers are not supported.
                None if digits.len() > 1 && digits.starts_with('0') => return None,
                None => digits.parse().ok()?,
            };
            self.take(word);
            let mut value = Number::int(i128::from(number));
            if i32::try_from(number).is_err() {
                value.bytes = 8;
            }
            value.is_unsigned = word.contains(['u', 'U']);
            // A number such as `1.5`, or Fortran's `1_8`, is not an integer in C's form.
            let is_whole = !self.rest.starts_with('.') && !word.contains('_');
            return is_whole.then_some(Operand::Value(Value::Number(value)));
        }
        let name = name_at(self.rest);
        if name.is_empty() {
            return None;
        }
        self.take(name);
        if self.is_fortran {
            let found = self.scope.find(&name.to_ascii_lowercase());
            return found.map(Operand::Variable);
        }
        let found = self.scope.find(name).or_else(|| self.of_this(name));
        let constant = || self.scope.enumerator(name).map(Number::int);
        match found {
            Some(object) => Some(Operand::Variable(object)),
            None => Some(Operand::Value(Value::Number(constant()?))),
        }
    }

    /// A member of the C++ object on which the function was called (`this`); `None` if there is none.
    fn of_this(&self, name: &str) -> Option<Object> {
        let this = self.scope.find("this")?;
        let this = ObjectValue(pointed(&self.scope.load(this)?)?);
        self.scope.member(&this, name)
    }
}

/// The object to which a pointer points; `None` for other values, or if the object's type is unknown.
fn pointed(value: &Value) -> Option<Object> {
    match *value {
        Value::Pointer { at, to: Some(kind) } => {
            let place = Storage::At(at);
            Some(Object { place, kind })
        }
        _ => None,
    }
}

/// The identifier or number at the start of a text; empty if there is none.
fn name_at(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}
