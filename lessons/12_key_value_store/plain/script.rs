//! What a client should do, as words: `put k v`.

use std::{thread::sleep, time::Duration};

use common::{deadline::Deadline, *};

use super::layout::*;
use crate::{client::Desk, client::AGAIN, record::Record};

/// Does one thing, and says what happened.
pub fn follow(desk: &mut Desk, what: &str) -> Result<Option<String>> {
    let before = desk.reads;
    Ok(match what.split_whitespace().collect::<Vec<_>>()[..] {
        ["put", name, value] => Some(format!("version {}", desk.put(&key(name)?, value)?)),
        ["get", name] => Some(in_words(desk.get(&key(name)?)?) + &format!(", {} READs", desk.reads - before)),
        ["ask", name] => Some(in_words(desk.ask(&key(name)?)?) + ", one request"),
        ["add", name, more] => {
            let old = desk.get(&key(name)?)?.and_then(|record| record.value.parse().ok()).unwrap_or(0u64);
            let new = (old + more.parse::<u64>().unwrap_or(0)).to_string();
            Some(format!("{new}, version {}", desk.put(&key(name)?, &new)?))
        }
        ["await", name] => wait_for_key(desk, &key(name)?).map(|()| None)?,
        ["lock"] => desk.lock().map(|()| None)?,
        ["unlock"] => desk.unlock().map(|()| None)?,
        ["wait", millis] => {
            sleep(Duration::from_millis(millis.parse().unwrap_or(0)));
            None
        }
        _ => return Err(Error::content(format!("{what:?} is unknown"), "See `lesson-12 client --help`")),
    })
}

/// Waits until somebody has PUT it.
fn wait_for_key(desk: &mut Desk, key: &Key) -> Result<()> {
    let deadline = Deadline::answer("a key that another client is to PUT");
    while desk.get(key)?.is_none() {
        deadline.left()?;
        sleep(10 * AGAIN);
    }
    Ok(())
}

fn in_words(found: Option<Record>) -> String {
    found.map_or("nothing".into(), |record| format!("{}, version {}", record.value, record.version))
}
