//! What the device does otherwise than the kernel's driver, as far as changes show it: rows of `tools/device/differences.toml` name them.

use crate::change::Break;
use crate::files::read;
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

const FILE: &str = "tools/device/differences.toml";

/// A row, as far as it matters here.
#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    changes: Vec<String>,
}

/// The full names of the changes that come otherwise on the device.
pub fn named(project: &Project, all: &[Break]) -> Result<Vec<String>> {
    let rows: BTreeMap<String, Vec<Row>> = basic_toml::from_str(&read(&project.root.join(FILE))?).context(FILE)?;
    let named: Vec<String> = rows.into_values().flatten().flat_map(|row| row.changes).collect();
    for name in &named {
        let is_tried = all.iter().any(|it| it.change.name.to_string() == *name && it.is_for_device());
        ensure!(is_tried, "{FILE} names the change {name}: there is none that runs on the device");
    }
    Ok(named)
}
