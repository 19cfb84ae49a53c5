//! The table: memory that clients READ at any moment, whatever the server's program does to it meanwhile.

use std::{thread::sleep, time::Duration};

use common::*;

use crate::{plain::layout::*, record::Record};

pub struct Table {
    pub region: MemoryRegion,
    /// The free places of each size.
    free: [Vec<Place>; 2],
    slowly: Duration,
}

impl Table {
    /// Clients may READ it, and do nothing else.
    pub fn create(pd: &ProtectionDomain, slowly: Duration) -> Result<Self> {
        let region = pd.reg_mr(TABLE_LEN, Access::REMOTE_READ)?;
        let mut start = BUCKETS * BUCKET_LEN;
        let free = SIZES.map(|(len, count)| {
            let places = (0..count).map(|at| start + at * len..start + (at + 1) * len).rev().collect();
            start += len * count;
            places
        });
        Ok(Self { region, free, slowly })
    }

    /// Whether there's room for a record, wherever its key is now. Ask this before you write it to the file.
    pub fn has_room(&self, record: &Record) -> bool {
        record.len() <= SIZES[1].0 && self.free.iter().all(|free| !free.is_empty())
    }

    /// Writes a record to its old place if that has the right size, and to another one if not.
    pub fn put(&mut self, record: &Record) -> Result<()> {
        let size = size_of(record.len());
        let (slot, old) = match self.find(&record.key)? {
            (_, Some(old)) if old.len() == SIZES[size].0 => return self.write(old.start, &record.encode()),
            other => other,
        };
        let place = self.free[size].pop().ok_or_else(full)?;
        self.write(place.start, &record.encode())?;
        if let Some(old) = old {
            // Wipe the old record before the slot leads to the new one. Otherwise a client that remembers the old place could
            // still find the old value there when another client has already seen the new one.
            self.region.write(old.start, &[0; 8])?;
            self.free[size_of(old.len())].push(old);
        }
        self.region.write(slot, &record.key)?;
        // Eight bytes, written at once, so that a READ finds either the old place or the new one.
        self.region.write_u64(slot + 8, word(&place).to_be())
    }

    pub fn get(&self, key: &Key) -> Result<Option<Record>> {
        let Some(place) = self.find(key)?.1 else { return Ok(None) };
        self.region.read(place).map(|bytes| Record::decode(&bytes))
    }

    /// The key's slot, found as a client would find it, and where it leads. There are more slots than places.
    fn find(&self, key: &Key) -> Result<(usize, Option<Place>)> {
        for bucket in buckets(key) {
            if let Some((slot, place)) = slot_of(key, &self.region.read(bucket.clone())?) {
                return Ok((bucket.start + slot, place));
            }
        }
        Err(full())
    }

    /// No processor writes that many bytes at once, so a READ that comes in between gets some old ones and some new ones.
    fn write(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.region.write(at, first)?;
        sleep(self.slowly);
        self.region.write(at + first.len(), second)
    }
}

/// Which of the [`SIZES`] has room for this many bytes.
fn size_of(len: usize) -> usize {
    usize::from(len > SIZES[0].0)
}

fn full() -> Error {
    Error::content("the table is full", "Store less")
}
