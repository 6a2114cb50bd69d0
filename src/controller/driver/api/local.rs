//! The service on a Unix-domain socket: for processes of this machine that its loopback does not reach, such as those in other network
//! namespaces. In: a path. Out: the same service. Must not serve other users: the file's mode and the peer's user id are both looked at.

use super::{Api, ApiError, router};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnixListenerStream;

/// Only the owner may connect.
const MODE: u32 = 0o600;
/// The superuser may anyway.
const ROOT: u32 = 0;

/// A service on a local socket; dropping it ends it and removes the socket.
#[derive(Debug)]
pub struct Local {
    path: PathBuf,
    /// The file that is ours: another controller may have put its own in its place.
    file: (u64, u64),
    task: JoinHandle<()>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.task.abort();
        if std::fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.file) {
            // A file that stays is known as stale by the next controller.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Serves a controller on a Unix-domain socket that only its own user and root can use. A socket that nobody listens on any more is replaced.
///
/// # Errors
/// [`ApiError`] when something else is there, or somebody listens there.
pub async fn serve_local(path: &Path, api: &Api) -> Result<Local, ApiError> {
    let failed = |source| ApiError::Local { path: path.to_owned(), source };
    make_room(path).await?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Whoever connects in between is turned away by the user id below.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE)).map_err(failed)?;
    let found = std::fs::symlink_metadata(path).map_err(failed)?;
    let owner = found.uid();
    let router = router(api)?;
    let incoming = UnixListenerStream::new(listener).filter(move |stream| match stream {
        Ok(stream) => admitted(stream, owner),
        Err(_) => true,
    });
    let shown = path.display().to_string();
    let task = tokio::spawn(async move {
        if let Err(error) = router.serve_with_incoming(incoming).await {
            tracing::warn!(path = shown, %error, "the controller's local service stopped");
        }
    });
    Ok(Local { path: path.to_owned(), file: identity(&found), task })
}

/// Removes what a controller left that did not end well.
async fn make_room(path: &Path) -> Result<(), ApiError> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(ApiError::Local { path: path.to_owned(), source }),
    };
    if !found.file_type().is_socket() {
        return Err(ApiError::NoSocket(path.to_owned()));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|source| ApiError::Local { path: path.to_owned(), source }),
        Err(source) => Err(ApiError::Local { path: path.to_owned(), source }),
        Ok(_) => Err(ApiError::InUse(path.to_owned())),
    }
}

/// Whether the peer is the socket's owner or root.
fn admitted(stream: &UnixStream, owner: u32) -> bool {
    match stream.peer_cred() {
        Ok(peer) if may(peer.uid(), owner) => true,
        Ok(peer) => {
            tracing::warn!(
                uid = peer.uid(),
                "somebody else's process was turned away from the local socket"
            );
            false
        }
        Err(error) => {
            tracing::warn!(%error, "a process that cannot be told was turned away from the local socket");
            false
        }
    }
}

const fn may(uid: u32, owner: u32) -> bool {
    uid == owner || uid == ROOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_may_connect() {
        assert!(may(1_000, 1_000) && may(0, 1_000));
        assert!(!may(1_001, 1_000) && !may(1_000, 0));
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_anything_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("local");
        assert!(make_room(&path).await.is_ok(), "nothing is there");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        make_room(&path).await.unwrap();
        assert!(!path.exists(), "nobody listened any more");
        let listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(make_room(&path).await, Err(ApiError::InUse(_))));
        drop(listening);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "notes").unwrap();
        assert!(matches!(make_room(&path).await, Err(ApiError::NoSocket(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
    }
}
