//! A run of a lesson is one file, which grows while it happens: packets and log lines in the order of cause and effect.
//!
//! [`pcapng`] writes frames, [`capture`] reads them; [`mod@file`] says how log lines are kept between them, which a [`recorder`]
//! takes from the [`lines`] of [`programs`], in [`blocks`]; [`ended`] tells how it went, [`exit`] how a program ended, and [`calls`] what it took. [`said`] knows what such a line says, and [`source`] which line of code it comes from.
//! The [`wire`] carries frames from node to node: [`rules`] choose packets that something should happen to, and a [`switch`] is what may be between. [`row`] tells a packet in [`words`], and one of [`iwarp`] likewise; [`lanes`] draws packets
//! beside the log lines, [`plot`] draws queues, rates and pauses over time. [`story`] knows what happens in each lesson, and [`files`] where all of it lies; what takes long tells what one is [`waiting`] for, and [`timing`] where a run's time went.

pub mod blocks;
pub mod calls;
pub mod capture;
pub mod ended;
pub mod exit;
pub mod file;
pub mod files;
pub mod iwarp;
pub mod lanes;
pub mod lines;
pub mod look;
pub mod pcapng;
mod picture;
pub mod plot;
pub mod programs;
pub mod recorder;
pub mod row;
pub mod rules;
pub mod said;
pub mod sighting;
pub mod source;
mod statement;
pub mod story;
pub mod switch;
pub mod timing;
pub mod waiting;
pub mod wire;
pub mod words;
