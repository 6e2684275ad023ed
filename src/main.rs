//! The `forebay` program: parse arguments, start, exit code. Nothing else.

fn main() -> std::process::ExitCode {
    forebay::cli::main()
}
