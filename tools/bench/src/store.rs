//! The key-value store of lesson 12: GET by READs, beside the same GET as a request. Its example `store_load` does both.

use crate::row::Row;
use crate::tools::{optimized, take_turns, Contender, Effort};
use anyhow::Result;

const WAYS: [(&str, &str); 2] = [("GET by READs", "read"), ("GET by a request", "request")];

pub fn figures(effort: Effort) -> Result<Vec<Row>> {
    let (load, count) = (optimized("examples/store_load", effort)?, effort.count(500));
    let program = format!("env RUST_LOG=off {load}");
    let contender = |(name, get): &(&str, &str)| {
        let client = format!("{program} client -a server -p {{port}} --keys 20");
        // The first client fills the table, and nobody looks how long that takes.
        let fill = format!("{client} --operations 100 --puts 100 --skew even >/dev/null");
        let server = format!("{program} server -n 2 -p {{port}}");
        Contender {
            name: (*name).into(),
            server,
            client: format!("sh -c \"{fill} && {client} --operations {count} --puts 0 --get {get}\""),
        }
    };
    let told = take_turns("bench-store", &WAYS.iter().map(contender).collect::<Vec<_>>(), effort)?;
    let rate = |name: &str| told.number(name, "operations_per_s");
    let [(read, _), (request, _)] = WAYS;
    Ok(vec![Row::beside(read, "GETs/s", &rate(read)?, request, &rate(request)?)])
}
