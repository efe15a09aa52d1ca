// schedule.cpp: who runs next, and the life of a thread.

namespace {

void begin(Launch& launch, Block& block) {
    u32 at = launch.next_block++;
    block.number = !launch.block_order.empty() ? launch.block_order[at]
                   : launch.reversed()         ? launch.a.blocks - 1 - at
                                               : at;
    block.active = true;
    block.serial = ++launch.serial;
    block.live = launch.a.threads;
    block.started = 0;
    block.arrived = block.holding = 0;
    block.ready = block.spinning = block.barrier = Queue();
    block.fibers.resize(launch.a.threads);
    block.warps.resize((launch.a.threads + LANES - 1) / LANES);
    for (u32 i = 0; i < launch.a.threads; i++) {
        Fiber& f = block.fibers[i];
        f.thread.x = i;
        f.block.x = block.number;
        f.block_dim.x = launch.a.threads;
        f.grid_dim.x = launch.a.blocks;
        f.stepping = launch.seeded();
        f.stack = nullptr;
        f.of = &block;
        f.state = State::NotStarted;
    }
    for (Warp& warp : block.warps) warp.ended = warp.groups = 0;
    if (u32 rest = launch.a.threads % LANES) block.warps.back().ended = ~0u << rest;
    if (launch.seeded()) {
        block.order.resize(launch.a.threads);
        for (u32 i = 0; i < launch.a.threads; i++) block.order[i] = i;
        launch.shuffle(block.order.data(), launch.a.threads);
    }
}

Fiber* start_next(Launch& launch, Block& block) {
    u32 at = block.started++;
    u32 index = !block.order.empty() ? block.order[at] : launch.reversed() ? launch.a.threads - 1 - at : at;
    launch.spins = 0;
    return &block.fibers[index];
}

// To another slot: in turn; there and back (so that later tickets also run before earlier ones); or
// anywhere.
void change_slot(Launch& launch) {
    u32 count = (u32)launch.slots.size();
    if (launch.seeded()) {
        launch.slot = launch.draw() % count;
    } else if (launch.reversed()) {
        if (launch.slot + launch.direction >= count) launch.direction = -launch.direction;  // also below 0
        if (count > 1) launch.slot += launch.direction;
    } else if (++launch.slot == count) {
        launch.slot = 0;
    }
}

// The fiber to run now, or null when the grid is done.
Fiber* pick() {
    Launch& launch = *running;
    // Not at first, which is outside of any fiber.
    if ((++launch.picks & 15) == 0 && launch.a.stops()) fail("was given up");
    if (launch.rotate) {
        launch.rotate = false;
        change_slot(launch);
    }
    for (u32 passed = 0;; passed++) {
        Block& block = launch.slots[launch.slot];
        if (!block.active) {
            if (launch.next_block == launch.a.blocks) {  // nothing left for this slot: look at the next
                if (passed == 2 * launch.slots.size()) return nullptr;  // there and back
                // On in the same direction: back to where it came from, it would not get beyond
                // this slot.
                if (launch.reversed()) change_slot(launch);
                else if (++launch.slot == launch.slots.size()) launch.slot = 0;
                continue;
            }
            begin(launch, block);
        }
        bool unstarted = block.started < launch.a.threads;
        Fiber* f;
        if (block.ready.head && !(launch.seeded() && unstarted && (launch.draw() & 1))) f = block.ready.pop();
        else if (unstarted) f = start_next(launch, block);
        else if (block.spinning.head) f = block.spinning.pop();
        else fail_deadlock(block);
        f->state = State::Ready;
        return f;
    }
}

void work();

void give_stack(Launch& launch, Fiber* f) {
    Stack* stack = launch.free;
    if (stack) {
        launch.free = stack->next;  // parked in `work`, or new
    } else {
        stack = stack_pool.take();
        if (!stack) fail("no memory for another thread's stack");
        launch.stacks.push_back(stack);
        stack->context.prepare(stack->bottom, stack->top, work);
    }
    f->stack = stack;
}

// Runs others until the calling fiber, which has been queued somewhere, is picked again.
void wait() {
    Launch& launch = *running;
    Fiber* from = self();
    Fiber* to = pick();
    if (to == from) return;
    if (!to->stack) give_stack(launch, to);
    wf_sim_current = to;
    Context::change(from->stack->context, to->stack->context);
}

void release_barrier(Launch& launch, Block& block) {
    int result = block.barrier_op == WF_SIM_AND ? block.holding == block.arrived
                 : block.barrier_op == WF_SIM_OR ? block.holding != 0
                                                 : (int)block.holding;
    for (Fiber* f = block.barrier.head; f; f = f->next) {
        f->value = (u64)result;
        f->state = State::Ready;
    }
    if (launch.seeded()) {
        std::vector<Fiber*> released;
        for (Fiber* f = block.barrier.head; f; f = f->next) released.push_back(f);
        launch.shuffle(released.data(), (u32)released.size());
        block.barrier = Queue();
        for (Fiber* f : released) block.ready.push(f);
    } else {
        block.ready.append(block.barrier);
    }
    block.arrived = block.holding = 0;
    launch.rotate = true;
}

void check_shared(const Block& block) {
    char intact[SHARED_GUARD];
    memset(intact, 0xfd, SHARED_GUARD);
    for (const SharedObject& object : block.shared) {
        if (object.block != block.serial) continue;
        if (!memcmp(object.data - SHARED_GUARD, intact, SHARED_GUARD) &&
            !memcmp(object.data + object.bytes, intact, SHARED_GUARD))
            continue;
        for (size_t i = 0; i < SHARED_GUARD; i++) {
            bool before = object.data[-1 - (long)i] != (char)0xfd;
            if (!before && object.data[object.bytes + i] == (char)0xfd) continue;
            std::string report;
            append(report, "block %u wrote %zu bytes %s shared memory %s of %zu bytes", block.number, i + 1,
                   before ? "before" : "past the end of", object.name, object.bytes);
            fail(std::move(report));
        }
    }
}

void end_thread(Launch& launch, Fiber* f) {
    Block& block = *f->of;
    u32 lane = f->thread.x % LANES;
    Warp& warp = block.warps[f->thread.x / LANES];
    f->state = State::Ended;
    warp.ended |= 1u << lane;
    for (u32 g = 0; g < warp.groups; g++) {
        if (!(warp.group[g].mask >> lane & 1)) continue;
        std::string report;
        append(report, "thread %u of block %u ended, but other lanes wait for it", f->thread.x, block.number);
        describe(report, block);
        fail(std::move(report));
    }
    launch.spins = 0;
    if (--block.live == 0) {
        check_shared(block);
        block.active = false;
    } else if (block.arrived == block.live) {
        release_barrier(launch, block);
    }
}

// The life of a stack: runs one CUDA thread after another.
void work() {
    for (;;) {
        Launch& launch = *running;
        Fiber* f = self();
        launch.a.entry(launch.a.words);
        end_thread(launch, f);
        Stack* mine = f->stack;
        f->stack = nullptr;
        Fiber* next = pick();
        if (!next) {
            Context::change(mine->context, launch.main);
            abort();
        }
        wf_sim_current = next;
        if (!next->stack) {
            next->stack = mine;
            continue;
        }
        mine->next = launch.free;
        launch.free = mine;
        Context::change(mine->context, next->stack->context);
    }
}

}  // namespace
