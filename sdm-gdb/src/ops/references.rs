//! Has gdb print referenced values in place of addresses.
//!
//! gdb prints the address for a reference that is a structure member, a container element or a lambda capture. The
//! address says nothing of the value, and equal addresses in all tasks look like equal values. A pretty-printer in
//! gdb's Python prints the referenced value there. It handles only references, and only while its own setting is on.
//! It is created on first use. In a gdb without Python the addresses remain.

use sdm_debug::quotes::{outside_quotes, referred};

use super::history;
use crate::gdb::Gdb;
use crate::state::console_capture::CapturedOutput;
use crate::text::console_line;
use sdm_mi::quote;

/// Command prefix with which values show the objects of references.
pub(super) const FOLLOWING: &str = "with print sdm-references on -- ";

/// The pretty-printer. References inside an object are followed too, up to a limit, as structures may refer to
/// themselves.
const PRINTER: &str = "
import gdb
if not hasattr(gdb, 'sdm_references'):
  class Referred:
    def __init__(self, value):
      self.value = value
    def to_string(self):
      options = gdb.print_options() if hasattr(gdb, 'print_options') else {}
      options = {'format': options['format']} if 'format' in options else {}
      gdb.sdm_references.depth += 1
      try:
        return self.value.referenced_value().format_string(**options)
      except Exception as error:
        return '<error reading variable: %s>' % error
      finally:
        gdb.sdm_references.depth -= 1
  class References(gdb.Parameter):
    'Print what references within values refer to.'
    set_doc = show_doc = __doc__
    name = 'sdm-references'
    def __init__(self):
      super().__init__('print sdm-references', gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
      self.value = False
      self.depth = 0
    def get_set_string(self):
      return ''
    def __call__(self, value):
      if self.value and self.depth < 3:
        if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
          return Referred(value)
  gdb.sdm_references = References()
  gdb.pretty_printers.append(gdb.sdm_references)
";

/// True if a printed value contains a reference shown as an address.
pub(super) fn are_within(printed: &str) -> bool {
    let printed = referred(history::shown(printed));
    outside_quotes(printed).any(|(at, c)| c == '@' && printed[at..].starts_with("@0x"))
}

/// Creates the setting in gdb; false if gdb has no Python.
pub(super) async fn make_printer(gdb: &Gdb) -> bool {
    let line = console_line(&format!("python exec({PRINTER:?})"));
    gdb.send(line).capture().printed().await.0.is_ok()
}

/// A printed value with the objects of its references. `again` prints the value once more, without side effects.
pub(super) async fn followed(
    gdb: &Gdb,
    place: &str,
    again: &str,
    printed: CapturedOutput,
) -> CapturedOutput {
    if !are_within(&printed) || !make_printer(gdb).await {
        return printed;
    }
    let command = quote(format!("{FOLLOWING}{again}").as_bytes());
    let line = format!("-interpreter-exec {place}console {command}");
    match gdb.send(line).capture().printed().await {
        (Ok(_), followed) => followed,
        (Err(_), _) => printed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_within_values_are_found() {
        for within in [
            "{cell = @0x7ffe, tag = 7}",
            "(Holder &) @0x7ffe: {cell = @0x7ff0}",
            "$3 = (Holder &) @0x7ffe: {cell = @0x7ff0}",
            "std::tuple containing = {[1] = @0x7ff0: 5}",
        ] {
            assert!(are_within(within), "{within}");
        }
        for without in [
            "@0x7ffe: 5",
            "$3 = (Cell &) @0x7ffe: {id = 1}",
            "\"@0x7\"",
            "64 '@'",
        ] {
            assert!(!are_within(without), "{without}");
        }
    }
}
