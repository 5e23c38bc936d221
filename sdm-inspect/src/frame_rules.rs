//! Unwind rules from a file's call frame information.

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, Encoding, Evaluation,
    EvaluationResult, Expression, FrameDescriptionEntry, ParsedEhFrameHdr, Register, RegisterRule,
    UnwindContext, UnwindSection, Value,
};

use crate::elf::{Image, Slice};
use crate::snapshot::{RETURN_ADDRESS, Registers, STACK_POINTER, Thread};

/// Maximum number of operations of an expression that are evaluated, since a file could have an endless expression.
const OPERATIONS_MAX: u32 = 4096;
/// Size of an address, in bytes.
const ADDRESS_BYTES: u8 = 8;

/// The result of unwinding one frame: the caller's registers.
pub(crate) struct Step {
    /// The registers of the caller.
    pub(crate) caller: Registers,
    /// Canonical frame address of the frame that unwinding has left.
    pub(crate) cfa: u64,
    /// True if the frame that unwinding has left is the trampoline that called a signal handler.
    pub(crate) is_signal: bool,
}

/// The reason why a frame cannot be unwound.
pub(crate) enum NoStep {
    /// The function has no caller.
    Bottom,
    /// No rule is known, or a value that it needs.
    Unknown,
    /// The rule needs memory at this address, which was not read.
    Missing(u64),
}

/// The unwind tables of a file: `.eh_frame`, and `.debug_frame`.
pub(crate) struct Rules {
    eh_frame: EhFrame<Slice>,
    index: Option<ParsedEhFrameHdr<Slice>>,
    debug_frame: DebugFrame<Slice>,
    bases: BaseAddresses,
}

impl Rules {
    /// The tables of a file; `debug` is the separate file with its debug information, if there is one.
    pub(crate) fn of(image: &Image, debug: Option<&Image>) -> Self {
        let mut bases = BaseAddresses::default();
        let address = |name| image.section_address(name);
        if let Some(at) = address(".eh_frame") {
            bases = bases.set_eh_frame(at);
        }
        if let Some(at) = address(".eh_frame_hdr") {
            bases = bases.set_eh_frame_hdr(at);
        }
        if let Some(at) = address(".text") {
            bases = bases.set_text(at);
        }
        if let Some(at) = address(".got") {
            bases = bases.set_got(at);
        }
        let section = |name| image.section(name);
        let index = EhFrameHdr::from(section(".eh_frame_hdr"));
        let own = section(".debug_frame");
        let other = debug.map(|debug| debug.section(".debug_frame"));
        let mut debug_frame = DebugFrame::from(other.filter(|_| own.is_empty()).unwrap_or(own));
        debug_frame.set_address_size(ADDRESS_BYTES);
        Self {
            eh_frame: EhFrame::from(section(".eh_frame")),
            index: index.parse(&bases, ADDRESS_BYTES).ok(),
            debug_frame,
            bases,
        }
    }

    /// Unwinds from the function at an address of the file to its caller.
    pub(crate) fn step(
        &self,
        address: u64,
        thread: &Thread,
        registers: &Registers,
    ) -> Result<Step, NoStep> {
        if let Some(entry) = self.loaded(address) {
            let at = At(&self.eh_frame, &self.bases, &entry, address);
            return at.step(thread, registers);
        }
        let entry =
            self.debug_frame
                .fde_for_address(&self.bases, address, DebugFrame::cie_from_offset);
        let entry = entry.map_err(|_| NoStep::Unknown)?;
        At(&self.debug_frame, &self.bases, &entry, address).step(thread, registers)
    }

    /// True if the file has a rule for the function at an address.
    pub(crate) fn is_known(&self, address: u64) -> bool {
        self.begins(address).is_some()
    }

    /// Start of the function at an address; `None` if the file has no rule for it.
    pub(crate) fn begins(&self, address: u64) -> Option<u64> {
        if let Some(entry) = self.loaded(address) {
            return Some(entry.initial_address());
        }
        let cie = DebugFrame::cie_from_offset;
        let entry = self.debug_frame.fde_for_address(&self.bases, address, cie);
        entry.ok().map(|entry| entry.initial_address())
    }

    fn loaded(&self, address: u64) -> Option<FrameDescriptionEntry<Slice>> {
        let cie = EhFrame::cie_from_offset;
        let table = self.index.as_ref().and_then(ParsedEhFrameHdr::table);
        let found = match table {
            Some(table) => table.fde_for_address(&self.eh_frame, &self.bases, address, cie),
            None => self.eh_frame.fde_for_address(&self.bases, address, cie),
        };
        found.ok()
    }
}

/// A section with unwind tables, its base addresses, the entry of a function in it, and the address in the function.
struct At<'a, S>(
    &'a S,
    &'a BaseAddresses,
    &'a FrameDescriptionEntry<Slice>,
    u64,
);

impl<S: UnwindSection<Slice>> At<'_, S> {
    fn step(&self, thread: &Thread, registers: &Registers) -> Result<Step, NoStep> {
        let Self(section, bases, entry, address) = *self;
        let encoding = entry.cie().encoding();
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(section, bases, &mut context, address);
        let row = row.map_err(|_| NoStep::Unknown)?;
        let machine = Machine { thread, registers };
        let expression =
            |it: &gimli::UnwindExpression<usize>| it.get(section).map_err(|_| NoStep::Unknown);
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                machine.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(it) => machine.evaluate(expression(it)?, encoding, None)?,
        };
        let mut caller = registers.kept();
        caller.set(STACK_POINTER, Some(cfa));
        let returns_by = entry.cie().return_address_register();
        for (register, rule) in row.registers() {
            let value = match rule {
                RegisterRule::Undefined if *register == returns_by => return Err(NoStep::Bottom),
                RegisterRule::Undefined => None,
                RegisterRule::SameValue => registers.get(register.0),
                RegisterRule::Offset(by) => Some(machine.word(cfa.wrapping_add_signed(*by))?),
                RegisterRule::ValOffset(by) => Some(cfa.wrapping_add_signed(*by)),
                RegisterRule::Register(other) => registers.get(other.0),
                RegisterRule::Expression(it) => {
                    let place = machine.evaluate(expression(it)?, encoding, Some(cfa))?;
                    Some(machine.word(place)?)
                }
                RegisterRule::ValExpression(it) => {
                    Some(machine.evaluate(expression(it)?, encoding, Some(cfa))?)
                }
                RegisterRule::Constant(value) => Some(*value),
                _ => return Err(NoStep::Unknown),
            };
            caller.set(register.0, value);
        }
        if row.register(returns_by).is_none() {
            return Err(NoStep::Unknown);
        }
        caller.set(RETURN_ADDRESS, caller.get(returns_by.0));
        Ok(Step {
            caller,
            cfa,
            is_signal: entry.is_signal_trampoline(),
        })
    }
}

/// The registers and memory with which an expression is evaluated.
struct Machine<'a> {
    thread: &'a Thread,
    registers: &'a Registers,
}

impl Machine<'_> {
    fn register(&self, register: Register) -> Result<u64, NoStep> {
        self.registers.get(register.0).ok_or(NoStep::Unknown)
    }

    fn word(&self, address: u64) -> Result<u64, NoStep> {
        self.thread.word(address).ok_or(NoStep::Missing(address))
    }

    fn evaluate(
        &self,
        expression: Expression<Slice>,
        encoding: Encoding,
        initial: Option<u64>,
    ) -> Result<u64, NoStep> {
        let mut evaluation: Evaluation<Slice> = expression.evaluation(encoding);
        evaluation.set_max_iterations(OPERATIONS_MAX);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let unknown = |_| NoStep::Unknown;
        let mut state = evaluation.evaluate().map_err(unknown)?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.register(register)?);
                    evaluation.resume_with_register(value)
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let bytes = self.thread.bytes(address, usize::from(size));
                    let bytes = bytes.ok_or(NoStep::Missing(address))?;
                    let mut word = [0; 8];
                    let to = word.get_mut(..bytes.len()).ok_or(NoStep::Unknown)?;
                    to.copy_from_slice(bytes);
                    evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(word)))
                }
                _ => return Err(NoStep::Unknown),
            }
            .map_err(unknown)?;
        }
        match evaluation.result().first().map(|piece| &piece.location) {
            Some(gimli::Location::Address { address }) => Ok(*address),
            Some(gimli::Location::Value { value }) => value.to_u64(u64::MAX).map_err(unknown),
            _ => Err(NoStep::Unknown),
        }
    }
}
