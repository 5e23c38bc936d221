//! Encoding of a list of stacks: each as its difference from the one before, strings once.

use std::collections::HashMap;

use sdm_core::aggregate::Rejected;

use super::capped::BUDGET_BYTES;
use super::coding::{Reader, Writer};
use crate::fold::STACK_FRAMES_MAX;
use crate::reply::StackFrame;

/// Approximate size of frames before encoding, in bytes.
pub(super) fn cost(frames: &[StackFrame]) -> usize {
    frames.iter().map(frame_cost).sum()
}

fn frame_cost(frame: &StackFrame) -> usize {
    16 + frame.module.len() + frame.function.len() + frame.file.len()
}

/// A writer of stacks, which is best used in an order in which equal beginnings are adjacent.
#[derive(Default)]
pub(super) struct FramesWriter<'a> {
    /// The distinct texts, in order of first use.
    texts: Vec<&'a str>,
    known: HashMap<&'a str, usize>,
    before: &'a [StackFrame],
}

impl<'a> FramesWriter<'a> {
    pub(super) fn write(&mut self, body: &mut Writer, frames: &'a [StackFrame]) {
        let alike = frames.iter().zip(self.before).take_while(|(a, b)| a == b);
        let shared = alike.count();
        body.size(shared);
        body.size(frames.len() - shared);
        for frame in &frames[shared..] {
            for text in [&frame.module, &frame.function, &frame.file] {
                body.size(self.index(text));
            }
            body.number(frame.line.into());
            body.number(frame.repeat.into());
        }
        self.before = frames;
    }

    /// Writes the strings, which precede the stacks.
    pub(super) fn write_texts(self, writer: &mut Writer) {
        writer.size(self.texts.len());
        for text in self.texts {
            writer.text(text);
        }
    }

    fn index(&mut self, text: &'a str) -> usize {
        *self.known.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }
}

/// A reader of the output of a [`FramesWriter`].
pub(super) struct FramesReader<'a> {
    texts: Vec<&'a str>,
    before: Vec<StackFrame>,
}

impl<'a> FramesReader<'a> {
    pub(super) fn read_texts(reader: &mut Reader<'a>) -> Result<Self, Rejected> {
        let mut texts = Vec::new();
        for _ in 0..reader.count()? {
            texts.push(reader.text()?);
        }
        let before = Vec::new();
        Ok(Self { texts, before })
    }

    /// Reads the next stack.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<Vec<StackFrame>, Rejected> {
        let shared = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
        if shared > self.before.len() {
            return Err(Rejected(
                "a stack shares more frames than the previous one has",
            ));
        }
        self.before.truncate(shared);
        let mut cost = cost(&self.before);
        for _ in 0..reader.count()? {
            let frame = self.frame(reader)?;
            cost += frame_cost(&frame);
            if self.before.len() >= STACK_FRAMES_MAX || cost > BUDGET_BYTES {
                return Err(Rejected("a stack has more frames than the maximum"));
            }
            self.before.push(frame);
        }
        Ok(self.before.clone())
    }

    fn frame(&self, reader: &mut Reader<'_>) -> Result<StackFrame, Rejected> {
        let mut text = || {
            let index = usize::try_from(reader.number()?).unwrap_or(usize::MAX);
            let text = self.texts.get(index);
            text.map(|text| (*text).to_owned()).ok_or(Rejected(
                "a stack refers to a text outside of the answer's table of texts",
            ))
        };
        let (module, function, file) = (text()?, text()?, text()?);
        let mut small = || {
            u32::try_from(reader.number()?).map_err(|_| Rejected("a line number exceeds 32 bits"))
        };
        Ok(StackFrame {
            module,
            function,
            file,
            line: small()?,
            repeat: small()?,
        })
    }
}
