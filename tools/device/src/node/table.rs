//! Objects by handle: what a program has made, in the name of the open device file through which it did.

use crate::machine::FileId;
use rustix::io::Errno;
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct Table<T> {
    entries: BTreeMap<u32, (FileId, T)>,
    last: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { entries: BTreeMap::new(), last: 0 }
    }
}

impl<T> Table<T> {
    /// Adds an object and gives its handle: never 0, never one in use.
    pub fn insert(&mut self, file: FileId, object: T) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.entries.contains_key(&self.last) {
                break;
            }
        }
        self.entries.insert(self.last, (file, object));
        self.last
    }

    /// Adds an object with a handle that was chosen.
    pub fn insert_as(&mut self, handle: u32, file: FileId, object: T) {
        self.entries.insert(handle, (file, object));
    }

    /// The object with this handle, if it was made through this file.
    ///
    /// # Errors
    /// `EINVAL`: it was not, or there is none.
    pub fn get(&self, file: FileId, handle: u32) -> Result<&T, Errno> {
        self.entries.get(&handle).filter(|(owner, _)| *owner == file).map(|(_, object)| object).ok_or(Errno::INVAL)
    }

    pub fn get_mut(&mut self, file: FileId, handle: u32) -> Result<&mut T, Errno> {
        let entry = self.entries.get_mut(&handle).filter(|(owner, _)| *owner == file);
        entry.map(|(_, object)| object).ok_or(Errno::INVAL)
    }

    /// The object with this handle, whoever has made it: for the device itself.
    pub fn any(&self, handle: u32) -> Option<&T> {
        self.entries.get(&handle).map(|(_, object)| object)
    }

    pub fn any_mut(&mut self, handle: u32) -> Option<&mut T> {
        self.entries.get_mut(&handle).map(|(_, object)| object)
    }

    pub fn remove(&mut self, handle: u32) -> Option<T> {
        self.entries.remove(&handle).map(|(_, object)| object)
    }

    /// All objects with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().map(|(handle, (_, object))| (*handle, object))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, object)| object)
    }

    /// The handles of all objects of a file.
    pub fn of(&self, file: FileId) -> Vec<u32> {
        self.entries.iter().filter(|(_, (owner, _))| *owner == file).map(|(handle, _)| *handle).collect()
    }
}
