//! A store in one file. In: batches. Out: records. Must not know what they mean.
//!
//! redb holds an exclusive lock on the file, so a second controller on the same store is refused; a commit returns when
//! the data has reached the disk (its default durability).

use super::{Batch, Record, Store, StoreError, decode, encode, key_text};
use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use std::path::{Path, PathBuf};

const RECORDS: TableDefinition<&str, &[u8]> = TableDefinition::new("records");

/// Records in a file.
#[derive(Debug)]
pub struct RedbStore {
    path: PathBuf,
    database: Database,
}

impl RedbStore {
    /// Opens the store, making it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another process has it, [`StoreError::Open`] when the file cannot be used.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Database::create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { path: path.to_owned() },
            error => StoreError::Open {
                path: path.to_owned(),
                source: Box::new(redb::Error::from(error)),
            },
        })?;
        let store = Self { path: path.to_owned(), database };
        // A table exists from its first write transaction on; reading a fresh store must not fail.
        store.write(|_| Ok(())).map_err(|source| store.failed("commit", source))?;
        Ok(store)
    }

    fn failed(&self, verb: &'static str, source: redb::Error) -> StoreError {
        StoreError::Io { path: self.path.clone(), verb, source: Box::new(source) }
    }

    fn write(
        &self,
        fill: impl FnOnce(&mut redb::Table<'_, &'static str, &'static [u8]>) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        fill(&mut transaction.open_table(RECORDS)?)?;
        transaction.commit()?;
        Ok(())
    }

    fn read(&self) -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let table = transaction.open_table(RECORDS)?;
        let mut records = Vec::new();
        for pair in table.iter()? {
            let (key, value) = pair?;
            records.push((key.value().to_owned(), value.value().to_vec()));
        }
        Ok(records)
    }
}

impl Store for RedbStore {
    fn load(&self) -> Result<Vec<Record>, StoreError> {
        let records = self.read().map_err(|source| self.failed("be read", source))?;
        records.iter().map(|(key, bytes)| decode(key, bytes)).collect()
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let encoded = batch.puts.iter().map(|record| Ok((key_text(record.key()), encode(record)?)));
        let encoded: Vec<(String, Vec<u8>)> = encoded.collect::<Result<_, StoreError>>()?;
        let done = self.write(|table| {
            for (key, bytes) in &encoded {
                table.insert(key.as_str(), bytes.as_slice())?;
            }
            for key in &batch.deletes {
                table.remove(key_text(*key).as_str())?;
            }
            Ok(())
        });
        done.map_err(|source| self.failed("commit", source))
    }
}
