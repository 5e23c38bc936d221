//! Tests of listeners: the contents, the order and the bounds of their notices.

use super::*;
use sdm_runtime::model::listeners::NOTICES_MAX;
use sdm_runtime::wire::event::Failure;

#[test]
fn listeners_receive_events_of_their_element_or_children() {
    let (mut model, manager) = cluster();
    let mut listen = |interest| model.listen(interest).expect("there is room");
    let of_job = listen(Interest::Children(manager, Kind::Job, 200));
    let of_node = listen(Interest::Children(manager, Kind::Node, 111));
    let one = listen(Interest::Element(manager, Kind::Process, 303));
    let machine = listen(Interest::Children(manager, Kind::Machine, 101));
    let other = listen(Interest::Children(manager, Kind::Job, 201));
    model.apply(
        manager,
        &change(
            Kind::Process,
            "200",
            "300-307 processState=RUNNING; 303 processPID=5",
        ),
    );
    let changed = |parts: &[(&str, &str)]| {
        let parts = parts.iter().map(|(id, ids)| ((*id).to_owned(), set(ids)));
        What::Changed(parts.collect())
    };
    let notice = model.poll(of_job).expect("one for all of them");
    assert_eq!(
        notice.what,
        changed(&[("processState", "300-307"), ("processPID", "303")])
    );
    assert_eq!((notice.parent, notice.kind), (Some(200), Kind::Process));
    assert_eq!(model.poll(of_job), None);
    let notice = model.poll(of_node).expect("its processes have changed");
    assert_eq!(
        notice.what,
        changed(&[("processState", "302-303"), ("processPID", "303")])
    );
    let notice = model.poll(one).expect("it has changed");
    let What::Attributes(303, values) = &notice.what else {
        panic!("{notice:?}");
    };
    let values = values
        .iter()
        .map(|(id, value)| (id.as_str(), value.as_ref().map(ToString::to_string)));
    let expected = [
        ("processState", Some("RUNNING".to_owned())),
        ("processPID", Some("5".to_owned())),
    ];
    assert!(values.eq(expected));
    assert_eq!((model.poll(machine), model.poll(other)), (None, None));

    // Setting an equal value is no change.
    assert_eq!(
        model.apply(
            manager,
            &change(Kind::Process, "200", "300-307 processState=RUNNING")
        ),
        0
    );
    assert_eq!(model.poll(of_job), None);

    model.apply(manager, &remove(Kind::Job, "", "200"));
    assert_eq!(
        model.poll(of_job).map(|it| it.what.clone()),
        Some(What::Removed(set("300-307")))
    );
    assert_eq!(
        model.poll(of_node).map(|it| it.what.clone()),
        Some(What::Removed(set("302-303")))
    );
    assert_eq!(
        model.poll(one).map(|it| it.what.clone()),
        Some(What::Removed(set("303")))
    );
    let notice = model.poll(machine).expect("no process runs there any more");
    assert_eq!(notice.what, changed(&[("nodeProcessState", "110-113")]));
}

#[test]
fn removed_and_later_added_listeners_get_no_earlier_notice() {
    let (mut model, manager) = cluster();
    let first = model.listen(Interest::All).expect("there is room");
    let second = model.listen(Interest::All).expect("there is room");
    model.apply(manager, &change(Kind::Node, "", "110 nodeState=DOWN"));
    model.apply(manager, &change(Kind::Node, "", "111 nodeState=DOWN"));
    assert!(model.poll(first).is_some());
    // After its first notice the first listener drops the second and itself, and adds a third.
    model.drop_listener(second);
    model.drop_listener(first);
    let third = model.listen(Interest::All).expect("there is room");
    assert_eq!(
        [first, second, third].map(|it| model.poll(it)),
        [None, None, None]
    );
    for at in 0..=NOTICES_MAX {
        let state = if at % 2 == 0 { "UP" } else { "DOWN" };
        model.apply(
            manager,
            &change(Kind::Node, "", &format!("110 nodeState={state}")),
        );
    }
    assert_eq!(
        model.poll(third).map(|it| it.what.clone()),
        Some(What::Missed)
    );
    assert_eq!(
        std::iter::from_fn(|| model.poll(third)).count(),
        NOTICES_MAX
    );
}

#[test]
fn manager_state_follows_the_transition_table() {
    let (mut model, manager) = cluster();
    let listener = model.listen(Interest::Element(manager, Kind::ResourceManager, BASE));
    let listener = listener.expect("there is room");
    assert!(model.set_manager_state(manager, "STARTED").is_err());
    assert!(model.set_manager_state(manager, "STARTING").is_ok());
    assert!(model.set_manager_state(manager, "STARTED").is_ok());
    assert_eq!(std::iter::from_fn(|| model.poll(listener)).count(), 2);
    let said = change(
        Kind::ResourceManager,
        "",
        "100 rmState=STARTING rmType=slurm",
    );
    assert_eq!(model.apply(manager, &said), 1);
    let said = change(Kind::ResourceManager, "", "100 rmType=slurm");
    assert_eq!(model.apply(manager, &said), 0);
    assert_eq!(
        value(&model, manager, Kind::ResourceManager, BASE, "rmType"),
        "slurm"
    );

    model.mark_stale(manager, "the connection is lost");
    assert!(model.set_manager_state(manager, "ERROR").is_ok());
    assert_eq!(model.stale(manager), Some("the connection is lost"));
    assert_eq!(
        model
            .elements(manager, Kind::Process)
            .map(RoaringBitmap::len),
        Some(8)
    );
    model.forget_elements(manager);
    assert_eq!(
        (model.stale(manager), model.elements(manager, Kind::Process)),
        (None, Some(&RoaringBitmap::new()))
    );
    assert_eq!(
        value(&model, manager, Kind::ResourceManager, BASE, "name"),
        "here"
    );
    assert_eq!(
        value(&model, manager, Kind::ResourceManager, BASE, "rmState"),
        "ERROR"
    );

    let message = Event::Message("INFO".to_owned(), Failure::default());
    while model.poll(listener).is_some() {}
    model.apply(manager, &message);
    let heard = model.poll(listener).map(|it| it.what.clone());
    assert_eq!(
        heard,
        Some(What::Message("INFO".to_owned(), Failure::default()))
    );
    model.remove_manager(manager);
    assert_eq!(model.managers().count(), 0);
    assert_eq!(model.apply(manager, &message), 0);
}

#[test]
fn listener_queue_is_bounded_in_bytes() {
    let (mut model, manager) = cluster();
    let listener = model.listen(Interest::All).expect("there is room");
    for _ in 0..100 {
        let text = "x".repeat(1 << 20);
        let failure = Failure {
            code: String::new(),
            text,
        };
        model.apply(manager, &Event::Message("INFO".to_owned(), failure));
    }
    assert_eq!(
        model.poll(listener).map(|it| it.what.clone()),
        Some(What::Missed)
    );
    assert_eq!(std::iter::from_fn(|| model.poll(listener)).count(), 31);
}
