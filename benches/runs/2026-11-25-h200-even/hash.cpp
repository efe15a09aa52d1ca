// How often sums of hashes of few keys, added with changing signs, are zero in the lowest 8, 12 and 16 bits, of the hashes' low and high halves: as a
// multiple of what random numbers leave, over 4M draws of the process's numbers. What the sums of kernels/sort_ties.cuh rest on.
//   g++ -O2 -o /tmp/hash hash.cpp && /tmp/hash
#include <cstdint>
#include <cstdio>

typedef uint64_t u64;
typedef uint32_t u32;

static u64 mix(u64 x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

struct Random {
    u64 state;
    u64 next() { return mix(state += 0x9E3779B97F4A7C15ull); }
};

// What came before: a product of 128 bits with a number of the process's, folded, and mixed.
struct Mixed {
    u64 seed, factor;
    explicit Mixed(Random& r) : seed(r.next()), factor(mix(seed) | 1) {}
    u64 operator()(u64 key) const {
        const unsigned __int128 product = (unsigned __int128)(key ^ seed) * factor;
        return mix(u64(product) ^ u64(product >> 64));
    }
};

template <int ROUNDS, bool ADDED>
struct Products {
    u64 words[ROUNDS];
    explicit Products(Random& r) {
        for (u64& word : words) word = r.next();
    }
    u64 operator()(u64 x) const {
        for (int round = 0; round < ROUNDS; ++round) {
            const u64 w = words[round];
            const u32 low = ADDED ? u32(x) + u32(w) : u32(x ^ w), high = ADDED ? u32(x >> 32) + u32(w >> 32) : u32((x ^ w) >> 32);
            x = u64(low) * high + (round == 1 ? x << 32 | x >> 32 : x);
        }
        return x;
    }
};

template <class Hash>
static void report(const char* name) {
    struct Set {
        const char* name;
        int keys, signs[8];
    };
    // Keys in equal steps, or each with or without two (or three) steps.
    static const Set sets[] = {{"pairs", 2, {1, -1}},
                               {"steps, 1 -3 3 -1", 4, {1, -3, 3, -1}},
                               {"steps, 1 -4 6 -4 1", 5, {1, -4, 6, -4, 1}},
                               {"two steps", 4, {1, -1, -1, 1}},
                               {"three steps", 8, {1, -1, -1, 1, -1, 1, 1, -1}}};
    static const char* const kinds[] = {"one bit", "one of the highest bits", "up to four", "any"};
    const u64 draws = 1 << 22;
    for (const Set& set : sets) {
        for (int kind = 0; kind < 4; ++kind) {
            Random r{u64(1 + kind)};
            u64 zero[2][3] = {}, both = 0;
            for (u64 draw = 0; draw < draws; ++draw) {
                const Hash hash(r);
                const u64 from = kind == 2 ? r.next() & 0xFFFF : r.next();
                u64 step[3] = {};
                while (step[0] == 0 || step[0] == step[1] || step[0] == step[2] || step[1] == step[2] || (step[0] ^ step[1]) == step[2]) {
                    for (u64& s : step) {
                        const u64 x = r.next();
                        s = kind == 0 ? 1ull << x % 64 : kind == 1 ? 1ull << (60 + x % 4) : kind == 2 ? 1 + x % 4 : x;
                    }
                }
                u64 sums[2] = {};
                for (int i = 0; i < set.keys; ++i) {
                    u64 key = from + i * step[0];
                    if (set.name[0] == 't') key = from ^ (i & 1 ? step[0] : 0) ^ (i & 2 ? step[1] : 0) ^ (i & 4 ? step[2] : 0);
                    const u64 h = hash(key);
                    sums[0] += u64(u32(h)) * u64(int64_t(set.signs[i]));
                    sums[1] += (h >> 32) * u64(int64_t(set.signs[i]));
                }
                for (int half = 0; half < 2; ++half)
                    for (int bits = 0; bits < 3; ++bits) zero[half][bits] += (sums[half] & ((1u << (8 + 4 * bits)) - 1)) == 0;
                both += sums[0] == 0 && sums[1] == 0;
            }
            printf("%-22s %-20s %-25s", name, set.name, kinds[kind]);
            for (int half = 0; half < 2; ++half)
                for (int bits = 0; bits < 3; ++bits) printf(" %8.2f", double(zero[half][bits]) / (double(draws) / (1u << (8 + 4 * bits))));
            printf("  all bits %llu times\n", (unsigned long long)both);
        }
    }
}

int main() {
    printf("%-22s %-20s %-25s %26s %26s\n", "hash", "keys", "steps of", "low half: 8, 12, 16 bits", "high half: 8, 12, 16 bits");
    report<Mixed>("two mixtures");
    report<Products<2, false>>("two products");
    report<Products<3, true>>("three, numbers added");
    report<Products<3, false>>("three products");
}
