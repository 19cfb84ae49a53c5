//! What the command line offers.

use common::args::{Opt, Side::Client, Side::Server};

pub const FILE: Opt = Opt::text(Server, "file", "none", "Keep what is acknowledged in this file");
pub const SLOWLY: Opt =
    Opt::number_or(Server, "slowly", "0", "Write a record in two halves, so many milliseconds apart");
/// The wait makes client 1's PUT the first, also on a busy machine.
pub const DO: Opt = Opt::text(Client, "do", "wait #000, put fruit# apple, get fruit#, get fruit#, ask fruit#", DOES);
const DOES: &str =
    "What to do: put KEY VALUE, get KEY (by READs), ask KEY (by a request), await KEY (until it is there), \
                    lock, unlock, add KEY NUMBER (get and put), wait MS; # is the client's number";
