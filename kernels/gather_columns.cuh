// gather_columns.cuh: some rows of several columns, whatever their widths, in one launch.
//
//   index  3 0 .        a  5 6 7 8     output  8 5 0     present  1 1 0
//   mask   0 1 1 0      a  5 6 7 8     output  6 7       key, less 5  1 2
//                       b  1 1 2 2                       and b, less 1, of 2 values  2 5
//
//   gather_columns    all rows; each column may be seen through an index of its own
//   gather_kept       the rows that a mask keeps, in their order (the masks of pipeline.cuh)
//
// A query that moves columns as they are needs no kernel of its own for it. A thread takes a few
// rows through all columns, so that a mask is read once, and an index once for all columns that
// follow each other behind it.
//
// Reads mask and indices once, and the values of the rows; writes as much as comes out.
#pragma once
#include "pipeline.cuh"

namespace wf {

constexpr u32 GATHER_COLUMNS_THREADS = 256;
constexpr u32 GATHER_COLUMNS_ITEMS = 4;
constexpr u32 GATHER_COLUMNS_TILE = GATHER_COLUMNS_THREADS * GATHER_COLUMNS_ITEMS;
constexpr u32 GATHER_COLUMNS_MOST = 16;  // columns of a launch
constexpr u32 GATHER_COLUMNS_NO_ROW = 0xFFFFFFFFu;

// What becomes of the values: they stay as they are (by the logarithm of their width), become a
// byte that says whether there is one, or a part of a key: integers without and with a sign, less a
// number. Keys of several columns are mixed-radix numbers, made digit by digit.
constexpr u64 GATHER_PRESENT = 5;
constexpr u64 GATHER_KEY = 8;
constexpr u64 GATHER_KEY_SIGNED = 16;

struct GatherColumn {
    const void* values;
    const u32* index;  // the number of each row's value; null: the row's own
    void* out;
    u64 how;
    u64 word;          // what digits are less; of other values what stands where the index names none
    u64 factor;        // what the key so far is multiplied by, 0 for the first digit; of other values
                       // the elements of `out` from one row to the next
};

// Rows of a thread: the j-th of `count` comes from `first + row[j]` and goes to `at + j × step`.
struct GatherRows {
    u64 first;
    u32 row[GATHER_COLUMNS_ITEMS];
    u64 at;
    u32 step;
    u32 count;
};

// Where a column has these rows: from `first + from[j]` on. Bit j of `absent` says that there is no
// value.
struct GatherPlaces {
    u64 first;
    u32 from[GATHER_COLUMNS_ITEMS];
    u32 absent;
};

WF_DEVICE void gather_places(const u32* index, const GatherRows& rows, GatherPlaces& places) {
    places.absent = 0;
    places.first = index == nullptr ? rows.first : 0;
#pragma unroll
    for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
        places.from[j] = rows.row[j];
        if (index == nullptr || j >= rows.count) continue;
        places.from[j] = load_const(index + rows.first + rows.row[j]);
    }
    if (index == nullptr) return;
#pragma unroll
    for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
        if (places.from[j] == GATHER_COLUMNS_NO_ROW) places.absent |= 1u << j;
    }
}

template <typename T, bool KEY>
WF_DEVICE void gather_values(const GatherColumn& column, const GatherPlaces& places, const GatherRows& rows) {
    const T* values = static_cast<const T*>(column.values) + places.first;
    T held[GATHER_COLUMNS_ITEMS];
#pragma unroll
    for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
        held[j] = T(column.word);
        if (j < rows.count && (places.absent >> j & 1) == 0) held[j] = load_const(values + places.from[j]);
    }
#pragma unroll
    for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
        const u64 at = rows.at + u64(j) * rows.step;
        if (j >= rows.count) continue;
        if constexpr (KEY) {
            u64* const key = static_cast<u64*>(column.out) + at;
            const u64 digit = u64(held[j]) - column.word;
            *key = column.factor == 0 ? digit : *key * column.factor + digit;
        } else {
            static_cast<T*>(column.out)[at * column.factor] = held[j];
        }
    }
}

WF_DEVICE void gather_present(const GatherColumn& column, const GatherPlaces& places, const GatherRows& rows) {
#pragma unroll
    for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
        const u64 at = rows.at + u64(j) * rows.step;
        if (j < rows.count) static_cast<u8*>(column.out)[at] = (places.absent >> j & 1) == 0 ? 1 : 0;
    }
}

WF_DEVICE void gather_rows(const GatherColumn (&columns)[GATHER_COLUMNS_MOST], u64 count, const GatherRows& rows) {
    const u32* index = nullptr;
    GatherPlaces places;
    gather_places(index, rows, places);
#pragma unroll 1
    for (u64 c = 0; c < count; ++c) {
        const GatherColumn column = columns[c];
        if (column.index != index) {
            index = column.index;
            gather_places(index, rows, places);
        }
        switch (column.how) {
            case 0: gather_values<u8, false>(column, places, rows); break;
            case 1: gather_values<u16, false>(column, places, rows); break;
            case 2: gather_values<u32, false>(column, places, rows); break;
            case 3: gather_values<u64, false>(column, places, rows); break;
            case 4: gather_values<u128, false>(column, places, rows); break;
            case GATHER_PRESENT: gather_present(column, places, rows); break;
            case GATHER_KEY + 0: gather_values<u8, true>(column, places, rows); break;
            case GATHER_KEY + 1: gather_values<u16, true>(column, places, rows); break;
            case GATHER_KEY + 2: gather_values<u32, true>(column, places, rows); break;
            case GATHER_KEY + 3: gather_values<u64, true>(column, places, rows); break;
            case GATHER_KEY + 4: gather_values<u128, true>(column, places, rows); break;
            case GATHER_KEY_SIGNED + 0: gather_values<i8, true>(column, places, rows); break;
            case GATHER_KEY_SIGNED + 1: gather_values<i16, true>(column, places, rows); break;
            case GATHER_KEY_SIGNED + 2: gather_values<i32, true>(column, places, rows); break;
        }
    }
}

struct GatherColumns {
    u64 rows;
    u64 count;
    GatherColumn columns[GATHER_COLUMNS_MOST];
};

WF_DEVICE void gather_columns_body(const GatherColumns& p) {
    GatherRows rows;
    rows.first = u64(blockIdx.x) * GATHER_COLUMNS_TILE;
    rows.at = rows.first + threadIdx.x;
    rows.step = GATHER_COLUMNS_THREADS;
    rows.count = 0;
#pragma unroll
    for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
        rows.row[j] = threadIdx.x + j * GATHER_COLUMNS_THREADS;
        if (rows.first + rows.row[j] < p.rows) rows.count = j + 1;
    }
    gather_rows(p.columns, p.count, rows);
}

struct GatherKept {
    const u32* mask;    // a bit for each row
    const u64* begins;  // for each tile of the mask, the rows kept before
    u64 rows;
    u64 few;            // few rows are kept: warps work by themselves
    u64 count;
    GatherColumn columns[GATHER_COLUMNS_MOST];
};

WF_DEVICE void gather_kept_body(const GatherKept& p) {
    constexpr u32 THREADS = GATHER_COLUMNS_THREADS;
    WF_SHARED_ARRAY(u16, places, MASK_TILE);
    const u64 first = u64(blockIdx.x) * MASK_TILE;
    const bool few = p.few != 0;
    u32 before = 0;
    const u32 kept = few ? mask_places_of_warp<THREADS>(p.mask, first, p.rows, places, before)
                         : mask_places<THREADS>(p.mask, first, p.rows, places);
    const u16* const own = places + (few ? warp() * (MASK_TILE / (THREADS / 32)) : 0);
    const u64 begin = p.begins[blockIdx.x] + before;
    GatherRows rows;
    rows.first = first;
    rows.step = few ? 32 : THREADS;
    for (u32 i = few ? lane() : threadIdx.x; i < kept; i += GATHER_COLUMNS_ITEMS * rows.step) {
        rows.at = begin + i;
        rows.count = 0;
#pragma unroll
        for (u32 j = 0; j < GATHER_COLUMNS_ITEMS; ++j) {
            rows.row[j] = 0;
            if (i + j * rows.step < kept) {
                rows.row[j] = own[i + j * rows.step];
                rows.count = j + 1;
            }
        }
        gather_rows(p.columns, p.count, rows);
    }
}

}  // namespace wf

#define WF_GATHER_COLUMNS_ENTRIES                                                              \
    WF_KERNEL_BOUNDS(wf::GATHER_COLUMNS_THREADS, 6, gather_columns, wf::GatherColumns) {       \
        wf::gather_columns_body(p);                                                            \
    }                                                                                          \
    WF_KERNEL_BOUNDS(wf::GATHER_COLUMNS_THREADS, 5, gather_kept, wf::GatherKept) { wf::gather_kept_body(p); }
