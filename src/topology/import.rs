//! Imported fabrics.
