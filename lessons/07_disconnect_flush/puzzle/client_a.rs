//! Client a.

use common::{Result, WorkCompletion};

use super::{show, show_status, PostedReceive};

pub fn on_completion(wc: &WorkCompletion, receive: &PostedReceive) -> Result<()> {
    show_status(wc);
    if wc.is_flush() {
        return Ok(());
    }
    show(&wc.clone().into_success()?, receive)
}
