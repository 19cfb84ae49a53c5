//! Changes to the lessons, and what comes of them.
//!
//! [`change`] says what is to be changed and what must come of it, and [`load`] reads that. [`copy`] lays out a copy of the
//! lesson with the change in it, and builds it in a [`workspace`]; the lesson itself stays as it is. [`run`] takes the copy through the lab, or
//! lets the device in user space do so. [`judge`] looks in the run file for what must be there, [`trouble`] for what stands
//! out, and [`show`] prints all that for a person. [`proof`] lists what has to be tried to prove a change, and
//! [`differences`] what the device does otherwise.
//!
//! An [`exercise`] is a change that a person mends, and [`attempt`] says how far that is; in one in [`reading`], questions about
//! a capture are answered.

pub mod attempt;
pub mod change;
pub mod copy;
pub mod differences;
mod edit;
pub mod exercise;
pub mod judge;
pub mod load;
mod port;
pub mod project;
pub mod proof;
pub mod reading;
pub mod run;
mod seen;
pub mod show;
pub mod trouble;
pub mod workspace;
