//! Changes to the lessons, and what comes of them.
//!
//! A change is a [`page`] in Markdown, of one of five [`kind`]s, and [`changes`] finds those of a lesson. [`change`] says what is changed, by which
//! [`edit`]s, and how it must end is [expected](judge::expected). [`copy`] lays out a copy of the lesson with the change in it, and builds
//! it in a [`workspace`]; the lesson itself stays as it is. [`run`] takes the copy through the lab, or lets the device in user
//! space do so; texts that nobody knows beforehand are [`drawn`]. [judge](judge::judge()) looks in the run file for what must be there, [`trouble`] for what stands out, and [`show`] prints all
//! that for a person, pages as [`markdown`] for a terminal. [`proof`] lists what must be tried to prove a change, [`edited`] builds what is tried in C and in Python, and [`differences`]
//! has what the device does otherwise.
//!
//! A [`step`] is what a learner adds to a program of her [own](mine), which is judged like a change. Its [`task`] is told in her
//! language. What runs beside her program, [`build`] builds.
//!
//! A hole is a function of the device's core that a learner writes: see [`nic`].
//!
//! An [`exercise`] is a change that a person mends, or questions about a capture, for [`reading`]. [`attempt`] is what somebody
//! has made of it, and [`verdict`] what the judge says of that.

#![allow(missing_docs)] // Names that say it all need no comment.

pub mod ahead;
pub mod attempt;
pub mod build;
pub mod change;
pub mod changes;
pub mod copy;
pub mod differences;
mod drawn;
pub mod edit;
pub mod edited;
mod enough;
pub mod exercise;
mod forbidden;
pub mod handed_in;
pub mod kind;
pub mod markdown;
pub mod mine;
pub mod nic;
pub mod page;
pub mod port;
pub mod progress;
pub mod project;
pub mod proof;
pub mod reading;
pub mod reference;
pub mod run;
pub mod sandbox;
pub mod show;
pub mod step;
pub mod task;
pub mod trouble;
pub mod verdict;
pub mod workspace;
