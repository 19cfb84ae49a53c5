//! The scripts of tools/lab/, and the Makefile, on machines that are invented for them.

mod capture;
mod doctor;
mod make;
mod setup;
