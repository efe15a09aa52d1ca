// The simulator's runtime: runs a grid of CUDA threads as fibers of one OS thread. In order of
// inclusion:
//
//   fiber.cpp         contexts, switching, stacks
//   model.cpp         blocks, warps, threads, launches; reports
//   schedule.cpp      who runs next; the life of a thread
//   collectives.cpp   what kernels call: barriers, warp collectives, spinning, shared memory
//   launch.cpp        what the host calls
//
// One translation unit, behind the head of sim.h, which declares what kernels call.
//
//   launch ── slots ──┬─ block ── warps ── lanes
//                     ├─ block ...
//                     └─ block ...
//
// A few blocks are live at once, so that look-back across blocks is exercised. A block that ends is
// replaced.
//
// A fiber is a CUDA thread; it owns a stack only between its start and its end. A fiber that never
// waits runs on the stack of the one before it, without a switch: kernels without barriers cost a
// function call a thread. A fiber that waits (barrier, warp collective, spin) picks the next one
// and switches to it directly.
//
//   picked from a block, in this order:  ready  →  not yet started  →  spinning
//
// Threads of a block wait only for threads of their own block, so a block in which nothing can be
// picked while threads live is deadlocked, and the launch ends with a report. Spinning fibers wait
// for anybody; when spins go on for long while nothing starts, ends or is published, the launch
// ends with a report too.
//
// A launch that fails abandons its fibers: kernels own nothing that would have to be released.

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

#ifndef WF_SIM_TLS
#define WF_SIM_THREAD_LOCAL __thread
static __thread wf_sim_thread* wf_sim_current = nullptr;
#endif

// --------------------------------------------------------------------------------------- switching

#if !defined(WF_SIM_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define WF_SIM_UCONTEXT
#endif

#ifndef WF_SIM_UCONTEXT

// Saves the callee-saved registers on the running stack, its pointer in `*from`, and continues at
// `to`.
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

// ------------------------------------------------------------------------------------------ stacks

namespace {

struct Stack {
    Context context;
    char* bottom;  // the least address
    char* top;     // where it starts; it grows downwards
    Stack* next;
};

constexpr size_t STACK_BYTES = 64 * 1024;

// Stacks outlive launches; mapping them anew would cost a page fault each. Shared by all OS
// threads.
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
            // Stacks lie at one distance; without an offset of their own their hot lines would
            // share cache sets.
            stack->top = at + stride - (made++ * 320) % 4096;
            stack->next = free;
            free = stack;
        }
    }
} stack_pool;

}  // namespace
