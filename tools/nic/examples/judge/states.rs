//! The moves of a queue pair of a reliable connection, as the specification has them (volume 1, table 96 in 11.2.5.2): what each
//! needs, and what it takes besides.

use crate::came;
use crate::Verdict;
use nic::memory::Memory;
use nic::outside::Ctx;
use nic::qp::{mask, Attributes, Qp, Settings, State};
use nic::time::Time;

/// From the beginning to where it can send.
pub const WAY: [(State, State); 3] = [(State::Reset, State::Init), (State::Init, State::Rtr), (State::Rtr, State::Rts)];

const ALL: [State; 6] = [State::Reset, State::Init, State::Rtr, State::Rts, State::Sqd, State::Err];

/// An attribute's name in C, without what all of them begin with; and its bit.
#[rustfmt::skip]
const ATTRIBUTES: [(&str, u32); 18] = [
    ("CUR_STATE", mask::CUR_STATE), ("EN_SQD_ASYNC_NOTIFY", mask::EN_SQD_ASYNC_NOTIFY),
    ("ACCESS_FLAGS", mask::ACCESS_FLAGS), ("PKEY_INDEX", mask::PKEY_INDEX), ("PORT", mask::PORT),
    ("QKEY", mask::QKEY), ("AV", mask::AV), ("PATH_MTU", mask::PATH_MTU), ("TIMEOUT", mask::TIMEOUT),
    ("RETRY_CNT", mask::RETRY_CNT), ("RNR_RETRY", mask::RNR_RETRY), ("RQ_PSN", mask::RQ_PSN),
    ("MAX_QP_RD_ATOMIC", mask::MAX_QP_RD_ATOMIC), ("MIN_RNR_TIMER", mask::MIN_RNR_TIMER), ("SQ_PSN", mask::SQ_PSN),
    ("MAX_DEST_RD_ATOMIC", mask::MAX_DEST_RD_ATOMIC), ("PATH_MIG_STATE", mask::PATH_MIG_STATE),
    ("DEST_QPN", mask::DEST_QPN),
];

/// The moves, and after them, or instead of others, RESET and ERR. Alternative paths are no part of this device.
#[rustfmt::skip]
const MOVES: [(State, State, &str, &str); 8] = [
    (State::Reset, State::Init, "PKEY_INDEX PORT ACCESS_FLAGS", ""),
    (State::Init, State::Init, "", "PKEY_INDEX PORT ACCESS_FLAGS"),
    (State::Init, State::Rtr, "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER", "PKEY_INDEX ACCESS_FLAGS"),
    (State::Rtr, State::Rts, "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC", "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER"),
    (State::Rts, State::Rts, "", "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER"),
    (State::Rts, State::Sqd, "", "EN_SQD_ASYNC_NOTIFY"),
    (State::Sqd, State::Rts, "", "CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER"),
    (State::Sqd, State::Sqd, "",
     "PKEY_INDEX PORT AV ACCESS_FLAGS TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC MIN_RNR_TIMER"),
];

/// What a move needs, and what it takes besides; None if there is none.
fn row(from: State, to: State) -> Option<(u32, u32)> {
    match to {
        State::Err if from == State::Reset => None,
        State::Reset | State::Err => Some((0, 0)),
        _ => {
            let (.., needed, taken) = MOVES.iter().find(|(a, b, ..)| (*a, *b) == (from, to))?;
            Some((bits(needed), bits(taken)))
        }
    }
}

fn bits(names: &str) -> u32 {
    let is_named = |name: &str| names.split(' ').any(|other| other == name);
    ATTRIBUTES.iter().filter(|(name, _)| is_named(name)).map(|(_, bit)| bit).sum()
}

/// The mask of a move that is there.
pub fn needed(from: State, to: State) -> u32 {
    mask::STATE | row(from, to).map_or(0, |(needed, _)| needed)
}

pub fn refused(from: State, to: State) -> String {
    format!("{from} to {to} with all that it needs: that's a move. Yours refuses it.")
}

/// Tries each move with what it needs, without each thing that it needs, and with each other thing.
pub fn moves() -> Verdict {
    let mut looked = 0;
    for (from, to) in ALL.iter().flat_map(|from| ALL.map(|to| (*from, to))) {
        let tried = |brought: u32| tried(from, to, brought);
        let Some((needed, taken)) = row(from, to) else {
            // With what a move to this state needs elsewhere, too.
            for brought in
                MOVES.iter().filter(|(_, other, ..)| *other == to).map(|(.., names, _)| bits(names)).chain([0])
            {
                if tried(brought)? {
                    return Err(format!("{from} to {to} isn't a move. Yours makes it."));
                }
                looked += 1;
            }
            continue;
        };
        if !tried(needed)? {
            return Err(refused(from, to));
        }
        for (name, bit) in ATTRIBUTES {
            if needed & bit != 0 && tried(needed & !bit)? {
                return Err(format!("{from} to {to} needs {name}. Yours makes the move without it."));
            }
            let takes = (needed | taken) & bit != 0;
            match (tried(needed | bit)?, takes) {
                (true, false) => {
                    return Err(format!("{from} to {to} doesn't accept {name}. Yours makes the move with it."))
                }
                (false, true) => return Err(format!("{from} to {to} accepts {name}. Yours refuses the move with it.")),
                _ => looked += 1,
            }
        }
    }
    Ok(format!("{looked} moves are made, or refused, as in the specification's table."))
}

/// Whether a new queue pair that has gone there makes this move.
fn tried(from: State, to: State, brought: u32) -> Result<bool, String> {
    let attributes = Attributes { peer: Some([127, 0, 0, 3].into()), mtu: 1024, ..Attributes::default() };
    came::now(format!("the move {from} to {to}"));
    let (mut qp, mut memory) = (Qp::new(Settings::default()), Memory::default());
    let mut out = Ctx::new(Time::START, &mut memory);
    let mut step = |before: State, to: State| {
        qp.modify(needed(before, to), to, &attributes, &mut out).map_err(|_| refused(before, to))
    };
    match from {
        State::Err => {
            step(State::Reset, State::Init)?;
            step(State::Init, State::Err)?;
        }
        State::Sqd => {
            WAY.iter().try_for_each(|(before, to)| step(*before, *to))?;
            step(State::Rts, State::Sqd)?;
        }
        _ => WAY.iter().take_while(|(before, _)| *before != from).try_for_each(|(before, to)| step(*before, *to))?,
    }
    Ok(qp.modify(mask::STATE | brought, to, &attributes, &mut out).is_ok())
}
