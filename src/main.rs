//! The `forebay` program: parse arguments, start, exit code. Everything else is in the library.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
