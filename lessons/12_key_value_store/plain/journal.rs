//! The file. Every record that was acknowledged is in it, one after the other as they came.

use std::{collections::BTreeMap, fs::File, io::Write, path::Path};

use common::{Error, Result};

use super::layout::Key;
use crate::record::Record;

pub struct Journal {
    file: Option<File>,
    /// Of the last record.
    pub version: u32,
}

impl Journal {
    /// Opens the file, and returns the last record of each key. A server that was killed may have left a part of a record at
    /// the end. It was never acknowledged, so we cut it off.
    pub fn open(path: &str) -> Result<(Self, BTreeMap<Key, Record>)> {
        match path {
            "none" => Ok((Self { file: None, version: 0 }, BTreeMap::new())),
            path => read(path).map_err(|error| failed(path, &error)),
        }
    }

    /// When this returns, the record is on the disk, as far as the disk tells the truth about fsync(2).
    pub fn keep(&mut self, record: &Record) -> Result<()> {
        self.version = record.version;
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(&record.encode()).and_then(|()| file.sync_data()).map_err(|error| failed("the file", &error))
    }
}

fn read(path: &str) -> std::io::Result<(Journal, BTreeMap<Key, Record>)> {
    let file = File::options().append(true).create(true).open(path)?;
    let (bytes, mut at, mut records) = (std::fs::read(path)?, 0, BTreeMap::new());
    while let Some(record) = Record::decode(&bytes[at..]) {
        at += record.len();
        records.insert(record.key, record);
    }
    file.set_len(at as u64)?;
    file.sync_all()?;
    // The file's name belongs to its folder, which needs an fsync of its own.
    Path::new(path).canonicalize()?.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
    let version = records.values().map(|record| record.version).max().unwrap_or(0);
    Ok((Journal { file: Some(file), version }, records))
}

fn failed(path: &str, error: &std::io::Error) -> Error {
    Error::content(format!("{path}: {error}"), "Is there room, and may we write there?")
}
