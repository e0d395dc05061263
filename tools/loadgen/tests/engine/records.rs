//! Records of single requests, and what they add up to.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_probe::progress::{Control, Record, Runner};
use bolide_probe::report::Failure;

use crate::plans::{plan, prepare, requests};
use crate::planted::{BODY, Behaviour, Plant, Planted};

#[test]
fn each_request_has_a_record_or_a_share_of_them() {
    let server = Planted::start(Behaviour::every(10, Plant::WrongBody));
    for (share, expected) in [(1.0, 400..=400), (0.1, 10..=90), (0.0, 0..=0)] {
        let mut plan = plan(server.address);
        plan.recorded_share = Some(share);
        let mut engine = prepare(&plan);
        let all = Rc::<RefCell<Vec<Record>>>::default();
        let told = Rc::clone(&all);
        engine.record_to(Box::new(move |phase, records| {
            assert_eq!(phase, "closed");
            told.borrow_mut().extend_from_slice(records);
        }));
        let report = engine.run(&requests(400), &mut |_| Control::Continue);
        let all = all.borrow();
        assert!(expected.contains(&all.len()), "{}", all.len());
        assert!(all.iter().all(|record| record.status == 200));
        assert!(all.iter().all(|record| record.bytes == BODY.len() as u64));
        if share < 1.0 {
            continue;
        }
        let wrong = all.iter().filter(|record| record.failure == Some(Failure::Body)).count();
        assert_eq!((wrong as u64, report.counts.failed), (40, 40));
        let slowest = all.iter().map(|record| record.latency_ns).max().unwrap() as f64;
        assert!((slowest / report.times.latency.max_ns as f64 - 1.0).abs() < 0.01, "{slowest}");
    }
}

#[test]
fn a_request_that_is_never_answered_has_a_record_too() {
    let server = Planted::start(Behaviour::every(2, Plant::Close));
    let mut plan = plan(server.address);
    (plan.connections, plan.threads, plan.recorded_share) = (1, 1, Some(1.0));
    let mut engine = prepare(&plan);
    let all = Rc::<RefCell<Vec<Record>>>::default();
    let told = Rc::clone(&all);
    engine.record_to(Box::new(move |_, records| told.borrow_mut().extend_from_slice(records)));
    engine.run(&requests(4), &mut |_| Control::Continue);
    let failures: Vec<_> =
        all.borrow().iter().map(|record| (record.status, record.failure)).collect();
    let lost = (0, Some(Failure::Reset));
    assert_eq!(failures, [(200, None), lost, (200, None), lost]);
}
