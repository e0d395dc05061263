use super::*;
use crate::kernel::MioKernel;

struct Nothing;

impl Service for Nothing {
    type Session = u64;
    type Message = ();

    fn open(&mut self, _: &crate::Accepted, _: std::time::Instant) -> Option<(u64, After)> {
        None
    }

    fn turn(&mut self, _: &mut u64, _: &mut Turn<'_, ()>) -> After {
        After::FINISHED
    }

    fn shut_down(&mut self, _: &mut u64, _: &mut Turn<'_, ()>) -> After {
        After::FINISHED
    }
}

#[test]
fn a_slot_adds_little_to_its_session() {
    let own = size_of::<Slot<MioKernel, Nothing>>() - size_of::<u64>();
    assert!(own <= 112, "{own}");
}
