//! The diagnosis that a batch run makes by itself.

use sdm_diagnose::{Diagnosis, Observed};

use super::{LINE, Looks, Subject};
use crate::shell::SessionHandle;

/// Number of samples of a diagnosis that a batch run makes by itself.
const SAMPLES: u32 = 3;

/// The proof that running tasks cannot go on. Nothing is shown, and the tasks run on.
pub(in crate::shell) async fn proof_of_hang(session: &SessionHandle) -> Option<Diagnosis> {
    let to = session.all();
    let (free, spec) = session.read(|model| model.without_gdb(&to));
    let mut subject = Subject {
        line: LINE,
        spec,
        to,
        free,
        first: None,
    };
    let looks = Looks::of(SAMPLES, None);
    let found = subject.diagnose(session, looks, Observed::default()).await;
    found.map(|it| it.0).filter(|found| found.step.is_proved())
}
