//! Changes to the lessons, and what comes of them.
//!
//! [`change`] reads what is to be changed and what must come of it. [`copy`] lays out a copy of the lesson with the change in
//! it, and builds it; the lesson itself stays as it is. [`run`] takes the copy through the lab. [`judge`] looks in the run file
//! for what must be there, and [`show`] prints all that for a person. An [`exercise`] is a change that a person mends.

pub mod change;
pub mod copy;
pub mod exercise;
pub mod judge;
pub mod project;
pub mod run;
pub mod show;
