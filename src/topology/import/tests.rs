//! Importers, good and bad files.
