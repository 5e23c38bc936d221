//! Fast path for a message that is sent or received alone, as most commands and answers are. It bypasses the queues.

use std::time::Instant;

use bytes::Bytes;

use super::{Link, LinkError, LinkEvent, Stage, begin_record};
use crate::frame::{self, Frame};
use crate::ids::{Attempt, CommandId};
use crate::message::Block;

impl Link {
    /// Handles received bytes as [`Link::handle_bytes`] does, with a fast path for a single message in one record, as
    /// most commands and answers are. Such a message is returned as the body without its frame's length, in place in
    /// `input`; `None` stands for any other input. The message is not queued. It counts as taken after
    /// [`Link::take_message_bytes`], or once the owner has decoded it as a message of the control lane.
    pub(crate) fn handle_received<'a>(
        &mut self,
        now: Instant,
        input: &'a mut [u8],
    ) -> Result<Option<&'a [u8]>, LinkError> {
        let is_quiet = self.is_up() && self.events.is_empty() && self.deframer.is_between_frames();
        match self.records.as_mut().filter(|it| it.is_one(input)) {
            Some(records) if is_quiet => {
                let contents = records.open_one(input);
                let contents = contents.map_err(|error| self.fail(error))?;
                if self.heartbeat.heard(now) {
                    self.events.push_back(LinkEvent::Alive);
                } else if let Some(message) = frame::lone_message(contents) {
                    return Ok(Some(message));
                }
                let result = self.take_contents(contents);
                result.map_err(|error| self.fail(error))?;
            }
            _ => self.handle_bytes(now, input)?,
        }
        Ok(None)
    }

    /// Queues a message that [`Link::handle_received`] has returned.
    pub(crate) fn take_message_bytes(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let shared = Bytes::copy_from_slice(bytes);
        let result = match frame::decode(&shared) {
            Ok(Frame::Message(message)) => {
                self.take_message(message, bytes.len() + frame::HEADER_BYTES)
            }
            Ok(_) => unreachable!("only messages are handed over"),
            Err(error) => Err(error.into()),
        };
        result.map_err(|error| self.fail(error))
    }

    /// Queues an answer of one block, without an age and without missing tasks.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub(crate) fn send_answer(
        &mut self,
        id: CommandId,
        attempt: Attempt,
        block: &Block,
    ) -> Result<(), LinkError> {
        if let Stage::Failed(error) = &self.stage {
            return Err(error.clone());
        }
        begin_record(&mut self.control);
        frame::encode_answer(id, attempt, block, &mut self.control)?;
        self.check_control()
    }
}
