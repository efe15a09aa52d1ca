// collectives.cpp: what kernels call.

namespace {

u64 shuffled(const Fiber* lanes, u32 mask, u32 lane) {
    const Fiber& f = lanes[lane];
    int64_t first = lane & ~(f.width - 1), last = first + f.width - 1, from = lane, by = f.argument;
    switch (f.op) {
        case WF_SIM_SHFL: from = first | (by & (f.width - 1)); break;
        case WF_SIM_SHFL_UP: from = lane - by < first ? lane : lane - by; break;
        case WF_SIM_SHFL_DOWN: from = lane + by > last ? lane : lane + by; break;
        default: from = (lane ^ by) > last ? lane : lane ^ by; break;
    }
    return mask >> from & 1 ? lanes[from].value : POISON;  // reading a lane outside the mask is undefined
}

u64 reduced(const Fiber* lanes, u32 mask, int op) {
    u32 result = 0;
    bool first = true;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        u32 v = (u32)lanes[__builtin_ctz(rest)].value;
        if (first) result = v;
        else switch (op) {
            case WF_SIM_ADD: result += v; break;
            case WF_SIM_MIN: result = v < result ? v : result; break;
            case WF_SIM_MAX: result = v > result ? v : result; break;
            case WF_SIM_MIN_SIGNED: result = (int)v < (int)result ? v : result; break;
            case WF_SIM_MAX_SIGNED: result = (int)v > (int)result ? v : result; break;
            case WF_SIM_AND: result &= v; break;
            case WF_SIM_OR: result |= v; break;
            default: result ^= v; break;
        }
        first = false;
    }
    return result;
}

// Turns every lane's operand into its result.
void complete(Fiber* lanes, u32 mask, int op) {
    u64 results[LANES];
    u64 common = 0;
    if (op == WF_SIM_BALLOT || op == WF_SIM_ANY || op == WF_SIM_ALL) {
        for (u32 rest = mask; rest; rest &= rest - 1) {
            u32 lane = __builtin_ctz(rest);
            common |= (lanes[lane].value & 1) << lane;
        }
        if (op == WF_SIM_ANY) common = common != 0;
        if (op == WF_SIM_ALL) common = common == mask;
    } else if (op >= WF_SIM_ADD) {
        common = reduced(lanes, mask, op);
    }
    for (u32 rest = mask; rest; rest &= rest - 1) {
        u32 lane = __builtin_ctz(rest);
        if (op >= WF_SIM_SHFL && op <= WF_SIM_SHFL_XOR) {
            results[lane] = shuffled(lanes, mask, lane);
        } else if (op == WF_SIM_MATCH_ANY) {
            results[lane] = 0;
            for (u32 r = mask; r; r &= r - 1)
                if (lanes[__builtin_ctz(r)].value == lanes[lane].value) results[lane] |= r & -r;
        } else {
            results[lane] = common;
        }
    }
    for (u32 rest = mask; rest; rest &= rest - 1) {
        u32 lane = __builtin_ctz(rest);
        lanes[lane].value = results[lane];
    }
}

// Makes the lanes but `last` ready, ahead of other warps: a warp goes on while its stacks are in
// the cache.
void release_lanes(Launch& launch, Block& block, Fiber* lanes, u32 mask, Fiber* last) {
    Fiber* released[LANES];
    u32 count = 0;
    for (u32 rest = mask; rest; rest &= rest - 1) {
        Fiber* f = &lanes[__builtin_ctz(rest)];
        f->state = State::Ready;
        if (f != last) released[count++] = f;
    }
    if (launch.seeded()) {
        launch.shuffle(released, count);
        if (launch.draw() & 1) {
            for (u32 i = 0; i < count; i++) block.ready.push(released[i]);
            return;
        }
    }
    for (u32 i = 0; i < count; i++) block.ready.push_front(released[launch.reversed() ? i : count - 1 - i]);
}

}  // namespace

extern "C" {

#ifdef WF_SIM_TLS
WF_SIM_THREAD_LOCAL wf_sim_thread* wf_sim_current = nullptr;
#else
wf_sim_thread* wf_sim_self() { return wf_sim_current; }
#endif

int wf_sim_barrier(wf_sim_op op, int predicate, const char* file, int line) {
    Fiber* f = self();
    Block& block = *f->of;
    if (block.arrived == 0) {
        block.barrier_op = (uint8_t)op;
        block.barrier_file = file;
        block.barrier_line = line;
    } else if (block.barrier_op != op || block.barrier_line != line || strcmp(block.barrier_file, file)) {
        std::string report;
        append(report, "divergent barrier: thread %u of block %u is at %s, %s:%d, but others wait elsewhere",
               f->thread.x, block.number, barrier_name(op), file, line);
        describe(report, block);
        fail(std::move(report));
    }
    f->op = (uint8_t)op;
    f->file = file;
    f->line = line;
    f->state = State::AtBarrier;
    block.barrier.push(f);
    block.arrived++;
    block.holding += predicate != 0;
    if (block.arrived == block.live) release_barrier(*running, block);
    wait();
    return (int)f->value;
}

unsigned long long wf_sim_warp(wf_sim_op op, unsigned mask, unsigned long long value, unsigned argument,
                               unsigned width, const char* file, int line) {
    Launch& launch = *running;
    Fiber* f = self();
    Block& block = *f->of;
    u32 lane = f->thread.x % LANES, bit = 1u << lane;
    Warp& warp = block.warps[f->thread.x / LANES];
    Fiber* lanes = &block.fibers[f->thread.x - lane];
    const char* wrong = nullptr;
    Group* group = nullptr;
    for (u32 g = 0; g < warp.groups && !group; g++)
        if (warp.group[g].mask == mask) group = &warp.group[g];
    if (!(mask & bit)) wrong = "is not in its own mask";
    else if (mask & warp.ended) wrong = "waits for lanes that have ended";
    else if (width == 0 || width > 32 || width & (width - 1)) wrong = "passes a width that is not a power of two";
    else if (group && group->op != op) wrong = "meets other lanes of its mask in another operation";
    if (wrong) {
        std::string report;
        append(report, "thread %u (lane %u) of block %u %s: %s(0x%08x), %s:%d; lanes 0x%08x have ended", f->thread.x,
               lane, block.number, wrong, warp_name(op), mask, file, line, warp.ended);
        describe(report, block);
        fail(std::move(report));
    }
    f->op = (uint8_t)op;
    f->value = value;
    f->argument = argument;
    f->width = width;
    if (!group) {
        group = &warp.group[warp.groups++];
        *group = {mask, 0, (uint8_t)op};
    }
    group->arrived |= bit;
    if (group->arrived != mask) {
        f->mask = mask;
        f->file = file;
        f->line = line;
        f->state = State::InWarp;
        wait();
        return f->value;
    }
    *group = warp.group[--warp.groups];
    complete(lanes, mask, op);
    release_lanes(launch, block, lanes, mask, f);
    if (launch.seeded() && launch.draw() & 1) {
        block.ready.push(f);
        wait();
    }
    return f->value;
}

void wf_sim_spin_at(const char* file, int line) {
    Launch& launch = *running;
    Fiber* f = self();
    f->file = file;
    f->line = line;
    f->op = 0;
    f->state = State::Spinning;
    f->of->spinning.push(f);
    if (++launch.spins > SPIN_LIMIT) fail_spinning();
    launch.rotate = true;
    wait();
}

void wf_sim_step_now() {
    Launch& launch = *running;
    if (launch.draw() & 7) return;
    self()->of->ready.push(self());
    launch.rotate = launch.draw() & 1;
    wait();
}

void wf_sim_progress() { running->spins = 0; }

void wf_sim_trap(const char* file, int line) {
    std::string report;
    append(report, "thread %u of block %u trapped, %s:%d", self()->thread.x, self()->block.x, file, line);
    fail(std::move(report));
}

// A user's code divides an integer by zero.
void wf_sim_divided(const char* file, unsigned line, unsigned column) {
    std::string report;
    append(report, "thread %u of block %u divided by zero, %s:%u:%u", self()->thread.x, self()->block.x, file, line,
           column);
    fail(std::move(report));
}

// A user's kernel (kernels/raw.cuh) reaches outside of what it was given.
WF_SIM_EXPORT void wf_sim_outside(const char* argument, long long index, unsigned long long length) {
    std::string report;
    append(report, "thread %u of block %u: index %lld of %s, which has %llu elements", self()->thread.x,
           self()->block.x, index, argument, length);
    fail(std::move(report));
}

// Poisoned when a block first reaches the declaration; between guards that are checked when the
// block ends.
void* wf_sim_shared(const void* site, size_t bytes, const char* name) {
    Block& block = *self()->of;
    SharedObject* object = nullptr;
    for (SharedObject& known : block.shared)
        if (known.site == site && known.bytes == bytes) object = &known;
    if (!object) {
        size_t whole = (bytes + 2 * SHARED_GUARD + 127) & ~(size_t)127;
        void* memory = nullptr;
        if (posix_memalign(&memory, 128, whole + 128)) fail("no memory for shared memory");
        char* data = static_cast<char*>(memory) + 128;
        memset(data - SHARED_GUARD, 0xfd, whole);
        if (site != running) block.static_shared += bytes;
        if (block.static_shared > STATIC_SHARED_LIMIT || block.static_shared + running->a.shared > SHARED_LIMIT) {
            std::string report;
            append(report, "%zu bytes of static and %u of dynamic shared memory; %zu static, %zu in all are possible",
                   block.static_shared, running->a.shared, STATIC_SHARED_LIMIT, SHARED_LIMIT);
            fail(std::move(report));
        }
        block.shared.push_back({site, data, bytes, name, 0});
        object = &block.shared.back();
    }
    if (object->block != block.serial) {
        object->block = block.serial;
        memset(object->data, (int)(POISON & 255), bytes);
    }
    return object->data;
}

void* wf_sim_dynamic_shared() { return wf_sim_shared(running, running->a.shared, "(dynamic)"); }

}  // extern "C"
