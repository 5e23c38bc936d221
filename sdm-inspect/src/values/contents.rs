//! The bytes of all variables of a function, and the values of its parameters.

use super::scope::Scope;
use super::value::Value;

/// Maximum number of bytes of a variable that are compared.
const VARIABLE_BYTES_MAX: u64 = 4096;

impl Scope<'_> {
    /// The function's variables, each with its name and its bytes up to `VARIABLE_BYTES_MAX`. The bytes are `None` for
    /// a variable that has no location or cannot be read.
    pub(crate) fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let variables = self.locals().into_iter();
        let contents = variables.map(|local| {
            let bytes = self.object(local.offset).and_then(|object| {
                let size = self.size(object.kind)?.min(VARIABLE_BYTES_MAX);
                self.bytes(&object.place, size)
            });
            (local.name, bytes)
        });
        contents.collect()
    }

    /// The parameters in order, each with its value; `None` if the value cannot be read.
    pub(crate) fn parameters(&self) -> Vec<(String, Option<Value>)> {
        let locals = self.locals().into_iter();
        let parameters = locals.filter(|local| local.is_parameter);
        parameters
            .map(|local| {
                let value = self.object(local.offset).and_then(|it| self.load(it));
                (local.name, value)
            })
            .collect()
    }
}
