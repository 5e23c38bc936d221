//! Answers of MI commands inside a command line of gdb: `with print elements 9 -- interpreter-exec mi3
//! "-stack-..."`.

use super::{Record, ResultClass};

/// Joins the answer of an inner MI command to the answer of the command line around it. The inner answer has no token.
/// It precedes the outer one, with no other answer in between.
#[derive(Debug, Default)]
pub(super) struct InnerAnswer(Option<Record>);

impl InnerAnswer {
    /// Takes the next record and returns the record to report. `None` if `record` is the answer of an inner command: it
    /// is kept for the outer answer.
    pub(super) fn join(&mut self, record: Record) -> Option<Record> {
        use ResultClass::{Done, Error};
        match &record {
            Record::Result {
                token: None,
                class: Done | Error,
                ..
            }
            | Record::TooLong { token: None, .. } => {
                self.0 = Some(record);
                None
            }
            Record::Result {
                token: outer,
                class,
                ..
            } => {
                let inner = self.0.take().filter(|_| *class == Done);
                Some(match inner {
                    Some(inner) => numbered(inner, *outer),
                    None => record,
                })
            }
            _ => Some(record),
        }
    }
}

fn numbered(mut inner: Record, outer: Option<u64>) -> Record {
    if let Record::Result { token, .. } | Record::TooLong { token, .. } = &mut inner {
        *token = outer;
    }
    inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_line;

    #[test]
    fn answer_of_a_nested_mi_command_joins_the_outer_answer() {
        let check = |inside: &str, outside: &str, expect: &str| {
            let mut inner = InnerAnswer::default();
            assert_eq!(inner.join(parse_line(inside.as_bytes())), None);
            let prompt = parse_line(b"=x");
            assert_eq!(inner.join(prompt.clone()), Some(prompt));
            let joined = inner.join(parse_line(outside.as_bytes()));
            let expect = parse_line(expect.as_bytes());
            assert_eq!(joined, Some(expect), "{inside} {outside}");
            let next = parse_line(b"4^done");
            assert_eq!(inner.join(next.clone()), Some(next));
        };
        let failed = r#"^error,msg="no""#;
        check("^done,a=[]", "3^done", "3^done,a=[]");
        check(failed, "3^done", r#"3^error,msg="no""#);
        check("^done,a=[]", r#"3^error,msg="no""#, r#"3^error,msg="no""#);
        let mut inner = InnerAnswer::default();
        let running = parse_line(b"^running");
        assert_eq!(inner.join(running.clone()), Some(running));
        let too_long = |token| Record::TooLong { token, bytes: 9 };
        assert_eq!(inner.join(too_long(None)), None);
        assert_eq!(inner.join(parse_line(b"5^done")), Some(too_long(Some(5))));
    }
}
