//! The learner's own NIC, `mine-nic/`: a copy of the device's core in which bodies of functions are missing.
//!
//! A [`hole`] is such a body, and its page. [`cut`] finds bodies and puts others in their place. [`copy`] lays the copy out, and
//! once more when the project has changed. [`build`] builds it: with a [`judge`], who says of a hole whether it is filled; and with the
//! course's device around it, on which lessons run. [`blame`] finds the hole in which a fault is. [`stairs`] knows which ones, and from when on.

pub mod blame;
pub mod build;
pub mod copy;
pub mod cut;
pub mod hole;
pub mod judge;
pub mod stairs;
