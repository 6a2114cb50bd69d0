//! A store that forgets with its process. In: batches. Out: records. Must not touch a disk.
//!
//! It encodes and decodes as the durable one does, so that tests on it see the same forms.

use super::{Batch, Record, Store, StoreError, decode, encode, key_text};
use std::collections::BTreeMap;

/// Records in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStore {
    records: BTreeMap<String, Vec<u8>>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<Vec<Record>, StoreError> {
        self.records.iter().map(|(key, bytes)| decode(key, bytes)).collect()
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let encoded = batch.puts.iter().map(|record| Ok((key_text(record.key()), encode(record)?)));
        let encoded: Vec<(String, Vec<u8>)> = encoded.collect::<Result<_, StoreError>>()?;
        self.records.extend(encoded);
        for key in &batch.deletes {
            self.records.remove(&key_text(*key));
        }
        Ok(())
    }
}
