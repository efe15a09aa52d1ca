// order_bytes.cuh: values of any number of parts as bytes that order as the values do.
//
//   [7, null, "…"]     2 <8 bytes of 7>   1   2 <bytes of the text> 0 0   0     list; 0 ends it
//   {a: 7, b: null}    2 <8 bytes of 7>   1                                     struct
//
// Before each element and field stands whether it is null: 1 or 3, as nulls come first or last, and
// 2 before a value. Numbers lie with their first byte highest, made unsigned as the words of sorts
// are. A zero in a text becomes 0 255, and 0 0 ends it. No value's bytes are the beginning of
// another's, so that reversed bytes are the reverse order.

#pragma once
#include "keys.cuh"
#include "text.cuh"

namespace wf {

struct order_writer : counting_writer {
    WF_DEVICE explicit order_writer(const text_arena& arena) : counting_writer(arena) {}

    // The low `bytes` of a word, the highest first.
    WF_DEVICE void word(u64 word, u32 bytes) {
        if (!writes) length += bytes;
        else
            for (u32 i = bytes; i > 0; i--) text.put((u8)(word >> (8 * (i - 1))));
    }

    WF_DEVICE void string(const view& v) {
        for (u32 i = 0; i < v.length; i++) {
            const u8 byte = byte_at(v, i);
            put(byte);
            if (byte == 0) put(255);
        }
        put(0);
        put(0);
    }
};

}  // namespace wf
