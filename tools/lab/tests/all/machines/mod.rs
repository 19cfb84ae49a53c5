//! The lab itself: its machines, its wire, its shell, other people's programs in it, and what it does when its host is the
//! problem.

mod falls;
mod faults;
mod foreign;
mod link;
mod nodes;
mod nvme;
mod programs;
mod shell;
mod two_machines;
