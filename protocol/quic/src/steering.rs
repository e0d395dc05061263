//! RFC 9000 §5.1: the kernel reads the worker's number in identifiers, as [`Identifiers`](crate::identifiers::Identifiers) does.

use bolide_buffers::BpfInstruction;

use crate::identifiers::{HANDSHAKE, LENGTH, LONG, TYPE_BITS};

/// Loads from the packet: one byte, and two.
const LOAD_BYTE: u16 = 0x30;
const LOAD_TWO: u16 = 0x28;
const AND: u16 = 0x54;
const REMAINDER: u16 = 0x94;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const RETURN_RESULT: u16 = 0x16;

/// A number that no socket has.
const NONE: u32 = u32::MAX;

/// A program that returns the number of the worker, of so many, whose connection a datagram names. It returns none for packets whose
/// identifiers clients choose (Initial and 0-RTT, RFC 9000 §7.2): all of a client's come to one worker by its address.
#[must_use]
pub fn steering(workers: usize) -> Vec<BpfInstruction> {
    let workers = u32::from(u16::try_from(workers.max(1)).unwrap_or(u16::MAX));
    let step =
        |code, if_true, if_false, operand| BpfInstruction { code, if_true, if_false, operand };
    vec![
        step(LOAD_BYTE, 0, 0, 0),
        step(JUMP_IF_ANY_BIT, 2, 0, LONG.into()),
        // A short header: the identifier follows the first byte.
        step(LOAD_TWO, 0, 0, 1),
        step(JUMP, 0, 0, 5),
        step(AND, 0, 0, TYPE_BITS.into()),
        step(JUMP_IF_EQUAL, 0, 5, HANDSHAKE.into()),
        // A long header: the version and the identifier's length come before it.
        step(LOAD_BYTE, 0, 0, 5),
        step(JUMP_IF_EQUAL, 0, 3, LENGTH as u32),
        step(LOAD_TWO, 0, 0, 6),
        step(REMAINDER, 0, 0, workers),
        step(RETURN_RESULT, 0, 0, 0),
        step(RETURN, 0, 0, NONE),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use quinn_proto::ConnectionIdGenerator;

    use super::*;
    use crate::identifiers::{Identifiers, Owner};

    /// Does what the kernel does with such a program (bpf(4)).
    fn run(program: &[BpfInstruction], packet: &[u8]) -> u32 {
        let (mut result, mut at) = (0_u32, 0);
        loop {
            let BpfInstruction { code, if_true, if_false, operand } = program[at];
            let place = operand as usize;
            let jump = |holds: bool| usize::from(if holds { if_true } else { if_false });
            at += 1;
            match code {
                LOAD_BYTE | LOAD_TWO => {
                    let length = if code == LOAD_BYTE { 1 } else { 2 };
                    // A load from beyond the packet ends the program.
                    let Some(bytes) = packet.get(place..place + length) else { return 0 };
                    result = bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte));
                }
                AND => result &= operand,
                REMAINDER => result %= operand,
                JUMP => at += place,
                JUMP_IF_EQUAL => at += jump(result == operand),
                JUMP_IF_ANY_BIT => at += jump(result & operand != 0),
                RETURN => return operand,
                RETURN_RESULT => return result,
                other => panic!("{other:#x}"),
            }
        }
    }

    #[test]
    fn the_kernel_chooses_the_worker_that_the_identifier_names() {
        for workers in [1, 2, 3, 7, 1000] {
            let program = steering(workers);
            for worker in [0, workers / 2, workers - 1] {
                let id = Identifiers::new(worker, workers, 9).generate_cid();
                let short = [&[0x40], &id[..], &[0; 20]].concat();
                let long = |kind: u8| [&[LONG | kind, 0, 0, 0, 1, 8], &id[..], &[0; 20]].concat();
                assert_eq!(run(&program, &short), worker as u32);
                assert_eq!(run(&program, &long(HANDSHAKE)), worker as u32);
                for chosen_by_clients in [0, 0x10] {
                    assert_eq!(run(&program, &long(chosen_by_clients)), NONE);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn no_datagram_is_steered_to_a_worker_that_would_pass_it_on(
            mut bytes in vec(any::<u8>(), 0..40),
            workers in 1_usize..9,
            has_our_length in any::<bool>(),
        ) {
            if let Some(version) = bytes.get_mut(1..6).filter(|_| has_our_length) {
                version.copy_from_slice(&[0, 0, 0, 1, LENGTH as u8]);
            }
            let to = run(&steering(workers), &bytes);
            if to != NONE {
                let owner = Identifiers::new(to as usize, workers, 0).owner(&bytes);
                prop_assert!(!matches!(owner, Owner::Worker(_)), "to {to}: {owner:?}");
            }
        }
    }
}
