//! Tests of ranks that stay in their calls and exchange data.

use super::*;

/// A wait without end looks the same as the transfer of much data.
#[test]
fn ranks_exchanging_data_prove_no_deadlock() {
    const RECEIVING: &str = "main:80 exchange:60 MPI_Recv:60";
    let look: Look<'_> = &[("0-2,4-7", WAITING, "", ""), ("3", RECEIVING, "", "")];
    let mut seen = observed(&[look, look, look]);
    receive(&mut seen, "3", "2");
    reduce_all(&mut seen, "0-2,4-7");
    check(&seen, Step::Deadlock, "2-3", "");
    for who in ["0-7", "3"] {
        seen.samples[1].marks.exchanged = set(who);
        let part = "ranks exchange data while they stay in their calls";
        check(&seen, Step::CannotTell, "", part);
        let told = judge(&seen);
        assert_eq!(told.doubtful, set("0-7"));
        let told = told.findings.iter().find(|it| it.tasks == set("3"));
        let told = told.unwrap();
        assert!(told.what.starts_with("staying in MPI_"), "{told:?}");
        let said = told.evidence.iter();
        let said = said.filter(|line| line.starts_with("data was exchanged"));
        assert_eq!(said.count(), 1, "{told:?}");
    }
    // A rank that waits for a running one may share memory with it.
    let look = |inner| {
        [
            ("0-2", WAITING, "", ""),
            ("3", "main:80 work:31", "", inner),
        ]
    };
    let mut seen = observed(&[&look("x"), &look("y"), &look("x")]);
    seen.samples[1].marks.exchanged = set("0-2");
    check(&seen, Step::HeldUp, "3", "");
}

/// A change in shared memory can be caused by running ranks. A sample while only the waiting ranks run shows whether it
/// was.
#[test]
fn ranks_that_exchange_nothing_while_alone_are_deadlocked() {
    let look = |inner| {
        [
            ("0-1", "main:80 work:31", "", inner),
            ("2-3", "main:80 exchange:60 MPI_Recv:60", "", ""),
        ]
    };
    let mut seen = observed(&[&look("x"), &look("y")]);
    receive(&mut seen, "2", "3");
    receive(&mut seen, "3", "2");
    seen.samples[1].marks.exchanged = set("0-3");
    check(&seen, Step::CannotTell, "", "ranks exchange data");
    assert_eq!(judge(&seen).doubtful, set("2-3"));
    type Part = fn(&mut Probes) -> &mut IdSet;
    let alone = |part: Part, who: &str| {
        let mut alone = observed(&[&look("y")]).samples.remove(0);
        alone.forget(&set("0-1"));
        *part(&mut alone) = set(who);
        let mut seen = seen.clone();
        seen.add_alone(&set("2-3"), &alone);
        seen
    };
    let parts: [Part; 3] = [
        |alone| &mut alone.marks.exchanged,
        |alone| &mut alone.marks.inner_changed,
        |alone| &mut alone.marks.partial,
    ];
    for part in parts {
        check(&alone(part, "2-3"), Step::CannotTell, "", "ranks exchange");
        check(&alone(part, "3"), Step::CannotTell, "", "ranks exchange");
        check(&alone(part, ""), Step::Deadlock, "", "(2 -> 3 -> 2)");
    }
    // The holder of a lock is known regardless of exchanged data.
    seen.samples[1].waits.push((set("3"), circle_of_locks()));
    check(&seen, Step::Deadlock, "3", "in a cycle");
}
