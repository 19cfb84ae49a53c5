//! How the device differs from the kernel's driver, from `tools/device/differences.toml`, whose rows name
//! the changes that show it.

use crate::change::Break;
use crate::project::Project;
use anyhow::{ensure, Context, Result};
use run::files::read;
use serde::Deserialize;
use std::path::Path;

const FILE: &str = "tools/device/differences.toml";

#[derive(Deserialize)]
struct Table {
    difference: Vec<Difference>,
}

/// What is done otherwise, and how it is done.
#[derive(Deserialize)]
#[allow(missing_docs)] // The fields have the table's names.
pub struct Difference {
    pub what: String,
    pub rxe: String,
    pub device: String,
    pub specification: String,
    #[serde(default)]
    changes: Vec<String>,
}

/// All of it.
pub fn rows(root: &Path) -> Result<Vec<Difference>> {
    let table: Table = basic_toml::from_str(&read(root.join(FILE))?).context(FILE)?;
    Ok(table.difference)
}

/// What is known to come otherwise on the device of the change with this full name.
pub fn known(root: &Path, change: &str) -> Result<Option<Difference>> {
    Ok(rows(root)?.into_iter().find(|row| row.changes.iter().any(|name| name == change)))
}

/// The full names of the changes that come otherwise on the device.
pub fn named(project: &Project, all: &[Break]) -> Result<Vec<String>> {
    let named: Vec<String> = rows(&project.root)?.into_iter().flat_map(|row| row.changes).collect();
    for name in &named {
        let is_tried = all.iter().any(|it| it.change.name.to_string() == *name && it.is_for_device());
        ensure!(is_tried, "{FILE} names the change {name}, but no change of that name runs on the device");
    }
    Ok(named)
}
