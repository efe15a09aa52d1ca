//! The benchmark `planning.rs` with the command's allocator. Tests run it with theirs.

#[path = "../planning.rs"]
mod bench;

/// A query's text and plan are many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> bench::Outcome {
    bench::main()
}
