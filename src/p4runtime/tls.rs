//! Certificates and keys as files, for both ends.
//! In: paths. Out: their bytes in PEM, or an error that names the file and what to do. Must not know connections, and must
//! never show what is in a key: not in errors, not in `Debug`.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{self, PemObject as _};
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Longest certificate chain or key file that is read; a chain of ten certificates takes some 20 KiB.
const PEM_BYTES_MAX: u64 = 1 << 20;
/// What a certificate starts with.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
/// What ends the first line of a key, whatever its kind.
const KEY: &str = "PRIVATE KEY-----";
/// Reading and writing by others than owner and group.
const OTHERS: u32 = 0o007;
/// Reading and writing by the group.
const GROUP: u32 = 0o070;

/// Why a file is not used.
#[derive(Debug, Error)]
pub enum PemError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is too large to be what it should be.
    #[error("{} has {bytes} bytes, more than {PEM_BYTES_MAX}: it is no certificate or key", path.display())]
    Large {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It is something else.
    #[error("{} holds no {wanted} in PEM form (a line with '{mark}')", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
        /// How it would begin.
        mark: &'static str,
    },
    /// Any user of the machine could read the key and then pose as its owner.
    #[error("{} has mode {mode:03o}: every user of this machine may use the key; chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// One or more certificates in PEM. A file that holds a key as well is taken, so the text is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates(Vec<u8>);

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = CERTIFICATE.as_bytes();
        let count = self.0.windows(mark.len()).filter(|part| *part == mark).count();
        write!(f, "Certificates({count} in {} bytes)", self.0.len())
    }
}

impl Certificates {
    /// Reads a chain or a set of authorities.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate.
    pub fn read(path: &Path) -> Result<Self, PemError> {
        content(path, "certificate", CERTIFICATE).map(Self)
    }

    /// The certificates.
    pub(super) fn decoded(&self) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
        CertificateDer::pem_slice_iter(&self.0).collect()
    }
}

/// The protocol that both ends offer: gRPC is HTTP/2.
pub(super) const H2: &[u8] = b"h2";

/// A private key in PEM, whose bytes are never printed.
#[derive(Clone)]
pub struct PrivateKey {
    pem: Vec<u8>,
    shared: Option<String>,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl PrivateKey {
    /// Reads a key. A file that every user may read or change is refused: whoever reads it can pose as its owner, and
    /// nothing would show. A file of a group is taken (that is how services share a key, as with Debian's `ssl-cert`), but
    /// `note` says so.
    ///
    /// # Errors
    /// The file cannot be read, holds no key, or is open to everybody.
    pub fn read(path: &Path) -> Result<Self, PemError> {
        let read = |source| PemError::Read { path: path.to_owned(), source };
        let mode = std::fs::metadata(path).map_err(read)?.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            return Err(PemError::Exposed { path: path.to_owned(), mode });
        }
        let shared = (mode & GROUP != 0).then(|| {
            let path = path.display();
            format!(
                "{path} has mode {mode:03o}: its group may use the key; chmod 600 {path} if that is not meant"
            )
        });
        Ok(Self { pem: content(path, "private key", KEY)?, shared })
    }

    /// What is doubtful about the file.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.shared.as_deref()
    }

    /// The PEM text.
    #[must_use]
    pub fn pem(&self) -> &[u8] {
        &self.pem
    }
}

fn content(path: &Path, wanted: &'static str, mark: &'static str) -> Result<Vec<u8>, PemError> {
    let read = |source| PemError::Read { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(read)?.len();
    if bytes > PEM_BYTES_MAX {
        return Err(PemError::Large { path: path.to_owned(), bytes });
    }
    let content = std::fs::read(path).map_err(read)?;
    if content.windows(mark.len()).any(|part| part == mark.as_bytes()) {
        return Ok(content);
    }
    Err(PemError::Content { path: path.to_owned(), wanted, mark })
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate, then those between it and the authority.
    pub chain: Certificates,
    /// Its key.
    pub key: PrivateKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(mode: u32, content: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pem");
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    const SECRET: &str = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";

    #[test]
    fn a_key_that_everybody_may_read_is_refused_and_a_groups_is_noted() {
        for mode in [0o604, 0o602, 0o644, 0o666, 0o777] {
            let (_folder, path) = file(mode, SECRET);
            let error = PrivateKey::read(&path).unwrap_err();
            assert!(matches!(error, PemError::Exposed { .. }), "{mode:o}");
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        let (_folder, path) = file(0o640, SECRET);
        let key = PrivateKey::read(&path).unwrap();
        assert!(key.note().is_some_and(|note| note.contains("mode 640")));
        let (_folder, path) = file(0o600, SECRET);
        assert_eq!(PrivateKey::read(&path).unwrap().note(), None);
    }

    #[test]
    fn a_key_never_shows_in_debug_output_or_errors() {
        let (_folder, path) = file(0o600, SECRET);
        let key = PrivateKey::read(&path).unwrap();
        assert_eq!(key.pem(), SECRET.as_bytes());
        assert!(!format!("{key:?}").contains("c2VjcmV0"));
        let error = Certificates::read(&path).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("c2VjcmV0"));
    }

    #[test]
    fn certificates_in_a_file_with_their_key_show_their_number_only() {
        let one = format!("{CERTIFICATE}\nAAAA\n-----END CERTIFICATE-----\n");
        let (_folder, path) = file(0o600, &format!("{one}{SECRET}{one}"));
        let both = Certificates::read(&path).unwrap();
        let bytes = both.0.len();
        let identity = Identity { chain: both, key: PrivateKey::read(&path).unwrap() };
        let shown = format!("{identity:?}");
        assert!(shown.contains(&format!("Certificates(2 in {bytes} bytes)")), "{shown}");
        // Neither as text nor as the list of numbers that a byte string is by default.
        assert!(!shown.contains("c2VjcmV0") && !shown.contains("99, 50, 86"), "{shown}");
    }

    #[test]
    fn files_that_are_absent_too_large_or_something_else_are_named() {
        let error = PrivateKey::read(Path::new("/nonexistent.key")).unwrap_err();
        assert!(error.to_string().contains("cannot read /nonexistent.key"));
        let (_folder, path) = file(0o600, "hello");
        assert!(matches!(Certificates::read(&path), Err(PemError::Content { .. })));
        assert!(matches!(PrivateKey::read(&path), Err(PemError::Content { .. })));
        let (_folder, path) = file(0o600, &"x".repeat(PEM_BYTES_MAX as usize + 1));
        assert!(matches!(Certificates::read(&path), Err(PemError::Large { .. })));
    }
}
