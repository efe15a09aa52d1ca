// launch.cpp: what the host calls.

extern "C" {

// Runs a grid. Returns null, or a report of what went wrong, to be passed to `wf_sim_free_report`.
WF_SIM_EXPORT char* wf_sim_launch(const wf_sim_launch_arguments* arguments) {
    Launch launch;
    launch.a = *arguments;
    launch.random = arguments->seed * 0x2545f4914f6cdd1dull;
    u32 slots = arguments->interleaved < arguments->blocks ? arguments->interleaved : arguments->blocks;
    launch.slots = std::vector<Block>(slots);
    if (launch.seeded() && arguments->blocks <= 1 << 20) {
        for (u32 i = 0; i < arguments->blocks; i++) launch.block_order.push_back(i);
        launch.shuffle(launch.block_order.data(), arguments->blocks);
    }
    running = &launch;
    Fiber* first = pick();
    Stack* stack = stack_pool.take();
    if (!stack) {
        running = nullptr;
        return strdup("no memory for a thread's stack");
    }
    launch.stacks.push_back(stack);
    stack->context.prepare(stack->bottom, stack->top, work);
    first->stack = stack;
    wf_sim_current = first;
    Context::change(launch.main, stack->context);
    wf_sim_current = nullptr;
    running = nullptr;
    for (Stack* taken : launch.stacks) stack_pool.give(taken);
    for (Block& block : launch.slots)
        for (SharedObject& object : block.shared) free(object.data - 128);
    return launch.failure.empty() ? nullptr : strdup(launch.failure.c_str());
}

WF_SIM_EXPORT void wf_sim_free_report(char* report) { free(report); }

}  // extern "C"
