//! The `warpframe` command.

/// A query's plan and the texts of its kernels are many small allocations: this takes a third off
/// what the host does for one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    warpframe_sql::main(std::env::args_os().collect(), None)
}
