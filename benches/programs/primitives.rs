//! The benchmark `primitives/main.rs` with the command's allocator. Tests run it with theirs.

#[path = "../primitives/main.rs"]
mod bench;

/// A query's text and plan are many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    bench::main()
}
