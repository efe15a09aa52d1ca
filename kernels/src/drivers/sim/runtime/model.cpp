// model.cpp: what a launch consists of, and reports about it.

namespace {

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
    int (*stops)(void);  // whether the launch is to be given up; asked now and then
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
    u32 picks = 0;
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

// ----------------------------------------------------------------------------------------- reports

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

}  // namespace
