//! Generated fabrics.
