//! What is written, read again; and what must not be taken for it.

use common::Metadata;

use crate::layout::*;
use crate::model::{Gradient, Weights};

const OLD: Weights = [1.0, -2.0, 3.5, 0.0, 1e-9, 7.25, -0.0, 1e300];

#[test]
fn a_torn_board_is_found_wherever_it_is_torn() {
    let (old, new) = (board(6, &OLD), board(7, &OLD.map(|weight| weight * 1.01 + 1.0)));
    assert_eq!(read_board(&old), Some((6, OLD)));
    assert_eq!((old.len(), new.len()), (BOARD_LEN, BOARD_LEN));
    // Whichever part the device read late, from the front or from the back.
    for cut in 1..BOARD_LEN {
        for (first, rest) in [(&old, &new), (&new, &old)] {
            let copy = [&first[..cut], &rest[cut..]].concat();
            assert!(copy == *first || copy == *rest || read_board(&copy).is_none(), "cut at {cut}");
        }
    }
    assert_eq!(read_board(&[0; BOARD_LEN]), None, "memory that nobody has written is no board");
}

#[test]
fn what_is_written_is_what_is_read() {
    let gradient = Gradient { loss: 0.125, slope: OLD };
    assert_eq!((read_slot(&slot(&gradient)), slot(&gradient).len()), (gradient, SLOT_LEN));
    assert_eq!(round_and_worker(immediate(LAST_ROUND as u32, 8)), (LAST_ROUND as u32, 8));
    assert_ne!(immediate(LAST_ROUND as u32, u8::MAX), STOP);
}

#[test]
fn strangers_are_known_by_what_they_say() {
    let padded = |mut bytes: Vec<u8>, len| {
        bytes.resize(len, 0);
        bytes
    };
    assert_eq!(read_hello(&padded(hello(3), 56)), Some(3));
    assert_eq!((read_hello(b"PS09"), read_hello(&[0; 56])), (None, None));
    let buffer = |len| Metadata { addr: 0x1000, rkey: 7, len };
    let (board, slot, counter) = (buffer(BOARD_LEN as u32), buffer(SLOT_LEN as u32), buffer(8));
    let welcome = Welcome { board, slot, counter, worker: 2 };
    assert_eq!(Welcome::decode(&padded(welcome.encode(), 196)), Ok(welcome));
    assert!(Welcome::decode(&Welcome { counter: buffer(16), ..welcome }.encode()).is_err());
    assert!(Welcome::decode(&Welcome { worker: 0, ..welcome }.encode()).is_err());
    assert!((0..49).all(|len| Welcome::decode(&welcome.encode()[..len]).is_err()));
}
