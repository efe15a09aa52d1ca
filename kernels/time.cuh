// time.cuh: the proleptic Gregorian calendar on days since 1970-01-01.
//
//   civil_of(19723) = 2024-01-01   days_of(2024, 1, 1) = 19723
//   add_months(2024-01-31, 1) = 2024-02-29
//
// After H. Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so that
// the leap day is the last of its year, and 400 years (an era) have 146097 days. Defined for all
// 32-bit days.

#pragma once
#include "arith.cuh"

namespace wf {

struct civil {
    i32 year;
    i32 month;  // 1 to 12
    i32 day;    // 1 to 31
};

WF_DEVICE civil civil_of(i32 days) {
    i64 shifted = (i64)days + 719468;  // since 0000-03-01
    i32 era = (i32)floor_quotient<i64>(shifted, 146097);
    u32 day_of_era = (u32)(shifted - (i64)era * 146097);
    u32 year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    u32 day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);  // from March 1st
    u32 month = (5 * day_of_year + 2) / 153;                                                  // 0 is March
    civil date;
    date.day = (i32)(day_of_year - (153 * month + 2) / 5 + 1);
    date.month = (i32)(month < 10 ? month + 3 : month - 9);
    date.year = (i32)year_of_era + era * 400 + (date.month <= 2 ? 1 : 0);
    return date;
}

WF_DEVICE i32 days_of(i32 year, i32 month, i32 day) {
    i64 shifted = (i64)year - (month <= 2 ? 1 : 0);
    i64 era = floor_quotient<i64>(shifted, 400);
    u32 year_of_era = (u32)(shifted - era * 400);
    u32 day_of_year = (153u * (u32)(month > 2 ? month - 3 : month + 9) + 2) / 5 + (u32)day - 1;
    u32 day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (i32)(era * 146097 + (i64)day_of_era - 719468);
}

WF_DEVICE bool leap_year(i32 year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

WF_DEVICE i32 days_in_month(i32 year, i32 month) {
    if (month == 2) return leap_year(year) ? 29 : 28;
    return 30 + ((month + (month >> 3)) & 1);
}

// The date moved by `months`: its day of the month, or the last day of the month that it gets to.
WF_CALLED i32 add_months(i32 days, i32 months) {
    civil date = civil_of(days);
    i64 counted = (i64)date.year * 12 + (date.month - 1) + months;
    i32 year = (i32)floor_quotient<i64>(counted, 12);
    i32 month = (i32)floor_remainder<i64>(counted, 12) + 1;
    return days_of(year, month, minimum(date.day, days_in_month(year, month)));
}

WF_DEVICE i32 year_of(i32 days) { return civil_of(days).year; }
WF_DEVICE i32 month_of(i32 days) { return civil_of(days).month; }
WF_DEVICE i32 day_of(i32 days) { return civil_of(days).day; }
WF_DEVICE i32 quarter_of(i32 days) { return (civil_of(days).month + 2) / 3; }
WF_DEVICE i32 day_of_year(i32 days) { return days - days_of(civil_of(days).year, 1, 1) + 1; }
// Monday is 0; 1970-01-01 was a Thursday.
WF_DEVICE i32 weekday_of(i32 days) { return (i32)floor_remainder<i64>((i64)days + 3, 7); }
WF_DEVICE i32 weekday_from_sunday(i32 days) { return (i32)floor_remainder<i64>((i64)days + 4, 7); }
WF_DEVICE i32 iso_weekday(i32 days) { return weekday_of(days) + 1; }
// An ISO week belongs to the year of its Thursday.
WF_DEVICE i32 thursday_of(i32 days) { return days - weekday_of(days) + 3; }
WF_DEVICE i32 iso_year(i32 days) { return civil_of(thursday_of(days)).year; }
WF_DEVICE i32 iso_week(i32 days) { return (day_of_year(thursday_of(days)) - 1) / 7 + 1; }

// First days of the period a day is in.
WF_DEVICE i32 start_of_week(i32 days) { return days - weekday_of(days); }
WF_DEVICE i32 start_of_month(i32 days) { return days - civil_of(days).day + 1; }
WF_DEVICE i32 start_of_quarter(i32 days) {
    civil date = civil_of(days);
    return days_of(date.year, (date.month - 1) / 3 * 3 + 1, 1);
}
WF_DEVICE i32 start_of_year(i32 days) { return days_of(civil_of(days).year, 1, 1); }
// Of so many years from the year 0 on.
WF_DEVICE i32 start_of_years(i32 days, i32 years) { return days_of(civil_of(days).year / years * years, 1, 1); }

}  // namespace wf
