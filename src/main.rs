//! The `ringpath` binary: parse, run, print the error chain, set the exit code. Everything else is in the library.

fn main() -> std::process::ExitCode {
    ringpath::cli::main()
}
