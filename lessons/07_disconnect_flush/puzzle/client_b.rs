//! Client b.

use common::{Result, WorkCompletion};

use super::{show, show_status, PostedReceive};

pub fn on_completion(wc: &WorkCompletion, receive: &PostedReceive) -> Result<()> {
    show_status(wc);
    show(&wc.clone().into_success()?, receive)
}
