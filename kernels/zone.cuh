// zone.cuh: what clocks show in a time zone, and when they do.
//
//   zone       UTC second from which on    seconds that local time is ahead
//              the least i64               −17762          local mean time of New York
//              −2717650800                 −18000          since 1883-11-18 17:00
//              …
//
// Entries ascend; each holds until the next begins.
#pragma once
#include "arith.cuh"

namespace wf {

// The entry that holds at a second.
WF_CALLED u32 zone_entry(const i64* zone, u32 entries, i64 second) {
    u32 low = 0, high = entries;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (zone[2 * middle] <= second) low = middle;
        else high = middle;
    }
    return low;
}

WF_DEVICE i64 zone_ahead(const i64* zone, u32 entries, i64 ticks, i64 per_second) {
    return zone[2 * zone_entry(zone, entries, floor_quotient<i64>(ticks, per_second)) + 1];
}

// Local ticks of an instant; false where 64 bits do not hold them.
WF_DEVICE bool zone_local(const i64* zone, u32 entries, i64 ticks, i64 per_second, i64* local) {
    const i128 sum = (i128)ticks + (i128)zone_ahead(zone, entries, ticks, per_second) * per_second;
    *local = (i64)sum;
    return sum == (i128)*local;
}

// The seconds of UTC at which clocks show a local second, which the calendar holds: none where they
// skip it, two where they are put back. Yields how many, the first and the last; of none, when
// clocks would show it if they did not change.
WF_CALLED u32 zone_instants(const i64* zone, u32 entries, i64 local, i64* first, i64* last) {
    constexpr i64 FAR = 2 * 86400;  // further than any offset
    u32 found = 0;
    for (u32 at = zone_entry(zone, entries, local - FAR); at < entries && (at == 0 || zone[2 * at] <= local + FAR); ++at) {
        const i64 second = local - zone[2 * at + 1];
        if (second < zone[2 * at]) continue;
        if (at + 1 < entries && second >= zone[2 * at + 2]) {
            if (found == 0 && local - zone[2 * at + 3] < zone[2 * at + 2]) *first = *last = second;
            continue;
        }
        if (found == 0) *first = second;
        *last = second;
        ++found;
    }
    return found;
}

// The instant of local ticks: of two the one at which clocks are so far ahead, else the last; where
// there is none, as before the change. False where 64 bits do not hold it.
WF_DEVICE bool zone_instant(const i64* zone, u32 entries, i64 local, i64 per_second, i64 ahead, i64* ticks) {
    const i64 second = floor_quotient<i64>(local, per_second);
    i64 first = second, last = second;
    zone_instants(zone, entries, second, &first, &last);
    const i128 instant = (i128)local + (i128)((second - first == ahead ? first : last) - second) * per_second;
    *ticks = (i64)instant;
    return instant == (i128)*ticks;
}

// The instant of a whole local second that an instant was cut down to: of two the one with that
// instant's offset, else the last; where there is none, three hours after the one that is three
// hours earlier.
WF_DEVICE bool zone_truncated(const i64* zone, u32 entries, i64 from, i64 local, i64 per_second, i64* ticks) {
    const i64 second = floor_quotient<i64>(local, per_second);
    i64 first = second, last = second;
    u32 found = zone_instants(zone, entries, second, &first, &last);
    i64 instant = second - first == zone_ahead(zone, entries, from, per_second) ? first : last;
    if (found == 0) {
        found = zone_instants(zone, entries, second - 3 * 3600, &first, &last);
        if (found != 1) return false;
        instant = first + 3 * 3600;
    }
    const i128 exact = (i128)instant * per_second;
    *ticks = (i64)exact;
    return exact == (i128)*ticks;
}

}  // namespace wf
