//! Exit codes and how an error chain is shown.

use thiserror::Error;

/// What the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: failed.
    Failed,
    /// 2: wrong use (flags, arguments).
    Usage,
    /// 3: a check said no (drift, infeasible, mismatch, violated invariant).
    CheckFailed,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::CheckFailed => 3,
        })
    }
}

/// An error that is the caller's: wrong flag or argument.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Makes an error that ends with exit code 2.
#[must_use]
pub fn usage(message: String) -> anyhow::Error {
    UsageError(message).into()
}

/// The exit code of an error.
#[must_use]
pub fn of(error: &anyhow::Error) -> Exit {
    if error.chain().any(|cause| cause.is::<UsageError>()) { Exit::Usage } else { Exit::Failed }
}

/// Whether the reader of standard output went away, which is success (`ringpath plan … | head`).
#[must_use]
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// The chain of causes in one line, without a cause that its parent already spelled out.
#[must_use]
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let part = cause.to_string();
        if text.ends_with(&part) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn wrong_use_is_two_and_everything_else_one() {
        assert_eq!(of(&usage("no such flag".to_owned())), Exit::Usage);
        assert_eq!(
            of(&usage("no such flag".to_owned()).context("while reading flags")),
            Exit::Usage
        );
        assert_eq!(of(&anyhow::anyhow!("broken")), Exit::Failed);
    }

    #[test]
    fn the_chain_is_one_line_without_repeats() {
        let error = Err::<(), _>(anyhow::anyhow!("no such file"))
            .context("cannot read x.toml")
            .unwrap_err();
        assert_eq!(chain(&error), "cannot read x.toml: no such file");
    }

    #[test]
    fn a_closed_pipe_is_found_anywhere_in_the_chain() {
        let io = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(is_closed_pipe(&anyhow::Error::from(io).context("writing the table")));
        assert!(!is_closed_pipe(&anyhow::anyhow!("other")));
    }
}
