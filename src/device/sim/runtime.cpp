// runtime.cpp: runs a grid of CUDA threads as fibers of one OS thread.
//
//   launch ── slots ──┬─ block ── warps ── lanes       a few blocks are live at once, so that look-back across
//                     ├─ block ...                     blocks is exercised; a block that ends is replaced
//                     └─ block ...
//
// A fiber is a CUDA thread; it owns a stack only between its start and its end. A fiber that never waits runs on the
// stack of the one before it, without a switch: kernels without barriers cost a function call a thread. A fiber that
// waits (barrier, warp collective, spin) picks the next one and switches to it directly.
//
//   picked from a block, in this order:  ready  →  not yet started  →  spinning
//
// Threads of a block wait only for threads of their own block, so a block in which nothing can be picked while threads
// live is deadlocked, and the launch ends with a report. Spinning fibers wait for anybody; when spins go on for long
// while nothing starts, ends or is published, the launch ends with a report too.
//
// A launch that fails abandons its fibers: kernels own nothing that would have to be released.
//
// Compiled together with the head of sim.h, which declares everything that kernels call.

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

// ------------------------------------------------------------------------------------------------------- switching

#if !defined(WF_SIM_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define WF_SIM_UCONTEXT
#endif

#ifndef WF_SIM_UCONTEXT

// Saves the callee-saved registers on the running stack, its pointer in `*from`, and continues at `to`.
extern "C" void wf_sim_switch(void** from, void* to) asm("wf_sim_switch");

#ifdef __x86_64__
asm(R"(
    .text
    .p2align 4
wf_sim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
enum { SAVED_WORDS = 8, RETURN_WORD = 6 };  // six registers, the return address, and one word for alignment
#else
asm(R"(
    .text
    .p2align 4
wf_sim_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
enum { SAVED_WORDS = 20, RETURN_WORD = 11 };
#endif

struct Context {
    void* sp = nullptr;

    // The first switch to this context calls `run` on the stack that ends at `top` (aligned to 16).
    void prepare(char*, char* top, void (*run)()) {
        void** words = reinterpret_cast<void**>(top) - SAVED_WORDS;
        for (int i = 0; i < SAVED_WORDS; i++) words[i] = nullptr;
        words[RETURN_WORD] = reinterpret_cast<void*>(run);
        sp = words;
    }
    static void change(Context& from, Context& to) { wf_sim_switch(&from.sp, to.sp); }
};

#else

#include <ucontext.h>

struct Context {
    ucontext_t saved;

    void prepare(char* bottom, char* top, void (*run)()) {
        getcontext(&saved);
        saved.uc_stack.ss_sp = bottom;
        saved.uc_stack.ss_size = top - bottom;
        saved.uc_link = nullptr;
        makecontext(&saved, run, 0);
    }
    static void change(Context& from, Context& to) { swapcontext(&from.saved, &to.saved); }
};

#endif

// ---------------------------------------------------------------------------------------------------------- stacks

namespace {

struct Stack {
    Context context;
    char* bottom;  // the least address
    char* top;     // where it starts; it grows downwards
    Stack* next;
};

constexpr size_t STACK_BYTES = 64 * 1024;

// Stacks outlive launches; mapping them anew would cost a page fault each. Shared by all OS threads.
struct StackPool {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    Stack* free = nullptr;
    size_t made = 0;

    Stack* take() {
        pthread_mutex_lock(&lock);
        if (!free) map();
        Stack* stack = free;
        if (stack) free = stack->next;
        pthread_mutex_unlock(&lock);
        return stack;
    }

    void give(Stack* stack) {
        pthread_mutex_lock(&lock);
        stack->next = free;
        free = stack;
        pthread_mutex_unlock(&lock);
    }

    // Maps a group of stacks, each with an inaccessible page below it.
    void map() {
        constexpr size_t group = 32;
        size_t guard = (size_t)sysconf(_SC_PAGESIZE), stride = STACK_BYTES + guard;
        void* mapped = mmap(nullptr, group * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
        if (mapped == MAP_FAILED) return;
        for (size_t i = group; i-- > 0;) {
            char* at = static_cast<char*>(mapped) + i * stride;
            mprotect(at, guard, PROT_NONE);
            Stack* stack = new Stack;
            stack->bottom = at + guard;
            // Stacks lie at one distance; without an offset of their own their hot lines would share cache sets.
            stack->top = at + stride - (made++ * 320) % 4096;
            stack->next = free;
            free = stack;
        }
    }
} stack_pool;

// ----------------------------------------------------------------------------------------------------------- model

constexpr u32 LANES = 32;
constexpr u64 SPIN_LIMIT = 8 * 1000 * 1000;
constexpr u64 POISON = 0xcdcdcdcdcdcdcdcdull;
constexpr size_t SHARED_GUARD = 64, STATIC_SHARED_LIMIT = 48 * 1024, SHARED_LIMIT = 227 * 1024;

enum class State : uint8_t { NotStarted, Ready, AtBarrier, InWarp, Spinning, Ended };

struct Block;

struct Fiber : wf_sim_thread {
    Stack* stack;
    Fiber* next;
    Block* of;
    u64 value;  // operand of the collective it waits in, then its result
    u32 argument, width, mask;
    State state;
    uint8_t op;
    int line;  // where it waits
    const char* file;
};

// First in, first out; also takes from others whole.
struct Queue {
    Fiber* head = nullptr;
    Fiber* tail = nullptr;

    void push(Fiber* f) {
        f->next = nullptr;
        if (head) tail->next = f; else head = f;
        tail = f;
    }
    void push_front(Fiber* f) {
        f->next = head;
        if (!head) tail = f;
        head = f;
    }
    Fiber* pop() {
        Fiber* f = head;
        head = f->next;
        return f;
    }
    void append(Queue& other) {
        if (!other.head) return;
        if (head) tail->next = other.head; else head = other.head;
        tail = other.tail;
        other.head = nullptr;
    }
};

// Lanes of one warp that wait for each other in one collective.
struct Group {
    u32 mask, arrived;
    uint8_t op;
};

struct Warp {
    u32 ended, groups;
    Group group[LANES];
};

struct SharedObject {
    const void* site;
    char* data;
    size_t bytes;
    const char* name;
    u64 block;  // serial of the block that used it last
};

struct Block {
    bool active = false;
    u32 number, live, started;
    u64 serial = 0;
    Queue ready, spinning, barrier;
    u32 arrived, holding;  // at the barrier; with a true predicate
    uint8_t barrier_op;
    const char* barrier_file;
    int barrier_line;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<u32> order;  // of starting; empty where it follows from the schedule
    std::vector<SharedObject> shared;
    size_t static_shared = 0;
};

}  // namespace

struct wf_sim_launch_arguments {
    void (*entry)(const void*);
    const void* words;
    u32 blocks, threads, shared, interleaved;
    u64 seed;
};

namespace {

struct Launch {
    wf_sim_launch_arguments a;
    Context main;
    std::vector<Block> slots;
    std::vector<u32> block_order;
    std::vector<Stack*> stacks;  // all that this launch took
    Stack* free = nullptr;       // those without a fiber
    u32 slot = 0, next_block = 0;
    int direction = 1;
    bool rotate = false;
    u64 serial = 0, spins = 0, random = 0;
    std::string failure;

    bool reversed() const { return a.seed == 1; }
    bool seeded() const { return a.seed > 1; }

    u32 draw() {  // splitmix64
        u64 z = random += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return (u32)(z >> 32);
    }
    template <class T> void shuffle(T* items, u32 count) {
        for (u32 i = count; i > 1; i--) std::swap(items[i - 1], items[draw() % i]);
    }
};

WF_SIM_THREAD_LOCAL Launch* running = nullptr;

Fiber* self() { return static_cast<Fiber*>(wf_sim_current); }

// ---------------------------------------------------------------------------------------------------------- reports

__attribute__((format(printf, 2, 3))) void append(std::string& to, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    to += text;
}

const char* barrier_name(int op) {
    switch (op) {
        case WF_SIM_OR: return "__syncthreads_or";
        case WF_SIM_AND: return "__syncthreads_and";
        case WF_SIM_ADD: return "__syncthreads_count";
        default: return "__syncthreads";
    }
}

const char* warp_name(int op) {
    static const char* const names[] = {
        "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",
        "__ballot_sync",     "__any_sync",        "__all_sync",        "__match_any_sync",  "__reduce_add_sync",
        "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
        "__reduce_or_sync",  "__reduce_xor_sync"};
    return names[op];
}

bool waits_alike(const Fiber& a, const Fiber& b) {
    return a.state == b.state && a.line == b.line && a.file == b.file && a.op == b.op &&
           (a.state != State::InWarp || a.mask == b.mask);
}

// Which lanes of each warp wait where; a few warps, so that the report stays readable.
void describe(std::string& to, const Block& block) {
    constexpr u32 shown = 4;
    u32 described = 0;
    for (u32 w = 0; w < block.warps.size(); w++) {
        u32 waiting = 0;
        const Fiber* lanes = &block.fibers[w * LANES];
        for (u32 l = 0; l < LANES; l++) {
            State s = lanes[l].state;
            if (s == State::AtBarrier || s == State::InWarp || s == State::Spinning) waiting |= 1u << l;
        }
        if (!waiting) continue;
        if (described++ == shown) {
            to += "\n  (more warps wait)";
            return;
        }
        append(to, "\n  block %u warp %u (lanes 0x%08x have ended):", block.number, w, block.warps[w].ended);
        while (waiting) {
            const Fiber& first = lanes[__builtin_ctz(waiting)];
            u32 alike = 0;
            for (u32 l = 0; l < LANES; l++)
                if (waiting >> l & 1 && waits_alike(first, lanes[l])) alike |= 1u << l;
            waiting &= ~alike;
            append(to, "\n    lanes 0x%08x ", alike);
            if (first.state == State::AtBarrier) append(to, "wait at %s", barrier_name(first.op));
            else if (first.state == State::InWarp) append(to, "wait in %s(0x%08x)", warp_name(first.op), first.mask);
            else append(to, "spin");
            append(to, ", %s:%d", first.file, first.line);
        }
    }
}

// Ends the launch; called on a fiber's stack, never returns.
[[noreturn]] void fail(std::string report) {
    running->failure = std::move(report);
    Context abandoned;
    Context::change(abandoned, running->main);
    abort();
}

[[noreturn]] void fail_deadlock(const Block& block) {
    std::string report;
    append(report, "deadlock in block %u: all %u live threads of %zu wait", block.number, block.live,
           block.fibers.size());
    describe(report, block);
    fail(std::move(report));
}

[[noreturn]] void fail_spinning() {
    std::string report;
    append(report, "threads only spin: nothing started, ended or was published during %llu spins",
           (unsigned long long)SPIN_LIMIT);
    for (const Block& block : running->slots)
        if (block.active) describe(report, block);
    fail(std::move(report));
}

// ------------------------------------------------------------------------------------------------------- scheduling

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

// To another slot: in turn; there and back (so that later tickets also run before earlier ones); or anywhere.
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
    if (launch.rotate) {
        launch.rotate = false;
        change_slot(launch);
    }
    for (u32 passed = 0;; passed++) {
        Block& block = launch.slots[launch.slot];
        if (!block.active) {
            if (launch.next_block == launch.a.blocks) {  // nothing left for this slot: look at the next
                if (passed == launch.slots.size()) return nullptr;
                if (++launch.slot == launch.slots.size()) launch.slot = 0;
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

// --------------------------------------------------------------------------------------------- the warp's collectives

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

// Makes the lanes but `last` ready, ahead of other warps: a warp goes on while its stacks are in the cache.
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

// ------------------------------------------------------------------------------------------------ what kernels call

extern "C" {

WF_SIM_THREAD_LOCAL wf_sim_thread* wf_sim_current = nullptr;

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

// Poisoned when a block first reaches the declaration; between guards that are checked when the block ends.
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

// ------------------------------------------------------------------------------------------------- what the host calls

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
