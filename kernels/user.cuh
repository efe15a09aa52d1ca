// user.cuh: what functions that users wrote find: strings to read, and in the simulator an end to
// loops that have none.
//
//   text s = "warp"      s.size() = 4      s[0] = 'w'      s[4] = 0      s == "warp"

#pragma once
#include "string.cuh"

namespace wf {

// A string to read, byte by byte; its bytes are UTF-8.
struct text {
    view characters;

    WF_DEVICE u32 size() const { return characters.length; }
    WF_DEVICE bool empty() const { return characters.length == 0; }
    // 0 where there is no such byte.
    WF_DEVICE u8 operator[](u32 at) const { return at < characters.length ? byte_at(characters, at) : (u8)0; }
    // Bytes from `begin` on, as many as there are.
    WF_DEVICE text part(u32 begin, u32 count) const {
        begin = minimum(begin, characters.length);
        return text{slice(characters, begin, minimum(count, characters.length - begin))};
    }
    // Negative, zero or positive, by bytes.
    WF_DEVICE i32 compare(const text& other) const { return compare_views(characters, other.characters); }
};

WF_DEVICE bool operator==(const text& a, const text& b) { return views_equal(a.characters, b.characters); }
WF_DEVICE bool operator!=(const text& a, const text& b) { return !(a == b); }
WF_DEVICE bool operator<(const text& a, const text& b) { return a.compare(b) < 0; }
WF_DEVICE bool operator>(const text& a, const text& b) { return a.compare(b) > 0; }
WF_DEVICE bool operator<=(const text& a, const text& b) { return a.compare(b) <= 0; }
WF_DEVICE bool operator>=(const text& a, const text& b) { return a.compare(b) >= 0; }

// With a literal.
WF_DEVICE bool operator==(const text& a, const char* b) {
    u32 at = 0;
    while (b[at] != 0 && at < a.size() && a[at] == (u8)b[at]) at++;
    return b[at] == 0 && at == a.size();
}
WF_DEVICE bool operator!=(const text& a, const char* b) { return !(a == b); }

// What a function yields that may yield NULL.
template <class T> struct user_result {
    T value;
    bool is_null;
};

#ifdef WF_SIM
// Turns that the loops of a function's call may take: some seconds. A GPU stops none.
constexpr u64 MOST_TURNS = 1ull << 31;
static u64 user_turns;
inline bool user_turn(WF_SIM_HERE) {
    if (++user_turns > MOST_TURNS) wf_sim_trap(file, line);
    return true;
}
#define WF_USER_CALL ::wf::user_turns = 0;
#else
#define WF_USER_CALL
#endif

}  // namespace wf
