package classad

import (
	"strconv"
	"strings"
	"time"
)

// brokenDownTime is a time in its parts, like C's struct tm. The parts may be outside of
// their usual ranges.
type brokenDownTime struct {
	second, minute, hour, day, month, year int // month: 1 to 12
	weekday, yearDay                       int // both from 0: Sunday, and January 1
}

func breakDownTime(t time.Time) brokenDownTime {
	return brokenDownTime{t.Second(), t.Minute(), t.Hour(), t.Day(), int(t.Month()), t.Year(), int(t.Weekday()),
		t.YearDay() - 1}
}

// dayNumbers returns the day of the week and of the year. It uses upstream's formulae,
// which matter for dates that do not exist.
func dayNumbers(year, month, day int) (weekday, yearDay int) {
	fixed := func(month, day int) int {
		adjust := -2
		if month <= 2 {
			adjust = 0
		} else if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			adjust = -1
		}
		return 365*(year-1) + (year-1)/4 - (year-1)/100 + (year-1)/400 + (367*month-362)/12 + adjust + day
	}
	return fixed(month, day) % 7, fixed(month, day) - fixed(1, 1)
}

// format writes the time by the conversions of strftime(3) in the C locale, with GNU's
// flags and widths. Only %s and %Z need the zone. It stops when the text exceeds the
// bound of an evaluation.
func (t brokenDownTime) format(format string, zone *time.Location) string {
	var b []byte
	for i := 0; i < len(format) && len(b) <= maxText; i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		start := i
		var f timeConversion
		for i++; i < len(format) && strings.IndexByte("_-0^#", format[i]) >= 0; i++ {
			f.flag(format[i])
		}
		for ; i < len(format) && isDigit(format[i]); i++ {
			f.width = min(10*f.width+int(format[i]-'0'), maxWidth)
		}
		if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++
		}
		if i == len(format) {
			return string(append(b, format[start:]...))
		}
		var ok bool
		if b, ok = f.append(b, t, format[i], zone); !ok {
			b = append(b, format[start:i+1]...)
		}
	}
	return string(b)
}

const maxWidth = 1000

// timeConversion is the flags and the width of one conversion.
type timeConversion struct {
	pad         byte // '_', '-' or '0'; 0: the conversion's default
	upper, swap bool
	width       int
}

func (f *timeConversion) flag(c byte) {
	switch c {
	case '^':
		f.upper = true
	case '#':
		f.swap = true
	default:
		f.pad = c
	}
}

// dayName returns the name of a day of the week, cut to most bytes, or a question mark.
// monthName does so for a month.
func dayName(i, most int) string {
	if i < 0 || i > 6 {
		return "?"
	}
	return shortenName(time.Weekday(i).String(), most)
}

func monthName(i, most int) string {
	if i < 1 || i > 12 {
		return "?"
	}
	return shortenName(time.Month(i).String(), most)
}

func shortenName(s string, most int) string { return s[:min(most, len(s))] }

// append writes the conversion c of t; ok is false if there is no such conversion.
func (f timeConversion) append(b []byte, t brokenDownTime, c byte, zone *time.Location) (text []byte, ok bool) {
	const all = 99
	switch c {
	case 'a', 'A', 'b', 'B', 'h':
		f.upper = f.upper || f.swap
		switch c {
		case 'a':
			return f.text(b, dayName(t.weekday, 3)), true
		case 'A':
			return f.text(b, dayName(t.weekday, all)), true
		case 'B':
			return f.text(b, monthName(t.month, all)), true
		}
		return f.text(b, monthName(t.month, 3)), true
	case 'p', 'P':
		half := "AM"
		if t.hour > 11 {
			half = "PM"
		}
		if c == 'P' || f.swap {
			f.upper = false
			half = lowerASCII(half)
		}
		return f.text(b, half), true
	case 'c', 'D', 'F', 'r', 'R', 'T', 'x', 'X':
		return f.text(b, t.format(compoundFormat(c), zone)), true
	case 'n':
		return f.text(b, "\n"), true
	case 't':
		return f.text(b, "\t"), true
	case '%':
		return f.text(b, "%"), true
	case 'z':
		return f.text(b, "+0000"), true // the parts contain no zone
	case 'Z':
		name := standardName(t.year, zone)
		if f.swap {
			f.upper, name = false, lowerASCII(name)
		}
		return f.text(b, name), true
	}
	n, digits, pad, ok := t.number(c, zone)
	if !ok {
		return b, false
	}
	return f.number(b, n, digits, pad), true
}

// standardName returns the name of a zone outside of summer time. The parts do not
// contain which half of the year they mean.
func standardName(year int, zone *time.Location) string {
	t := time.Date(year, time.January, 1, 0, 0, 0, 0, zone)
	if t.IsDST() {
		t = time.Date(year, time.July, 1, 0, 0, 0, 0, zone)
	}
	name, _ := t.Zone()
	return name
}

func compoundFormat(c byte) string {
	switch c {
	case 'c':
		return "%a %b %e %H:%M:%S %Y"
	case 'F':
		return "%Y-%m-%d"
	case 'r':
		return "%I:%M:%S %p"
	case 'R':
		return "%H:%M"
	case 'T', 'X':
		return "%H:%M:%S"
	}
	return "%m/%d/%y"
}

// number returns the number that a conversion writes, and its default digits and padding.
func (t brokenDownTime) number(c byte, zone *time.Location) (n, digits int, pad byte, ok bool) {
	switch c {
	case 'C':
		return floorDivide(t.year, 100), 2, '0', true
	case 'd':
		return t.day, 2, '0', true
	case 'e':
		return t.day, 2, '_', true
	case 'g':
		year, _ := t.isoWeek()
		return year - 100*floorDivide(year, 100), 2, '0', true
	case 'G':
		year, _ := t.isoWeek()
		return year, 1, '0', true
	case 'H':
		return t.hour, 2, '0', true
	case 'I':
		return hour12(t.hour), 2, '0', true
	case 'j':
		return t.yearDay + 1, 3, '0', true
	case 'k':
		return t.hour, 2, '_', true
	case 'l':
		return hour12(t.hour), 2, '_', true
	case 'm':
		return t.month, 2, '0', true
	case 'M':
		return t.minute, 2, '0', true
	case 's':
		return int(time.Date(t.year, time.Month(t.month), t.day, t.hour, t.minute, t.second, 0, zone).Unix()),
			1, '0', true
	case 'S':
		return t.second, 2, '0', true
	case 'u':
		return (t.weekday-1+7)%7 + 1, 1, '0', true
	case 'U':
		return (t.yearDay - t.weekday + 7) / 7, 2, '0', true
	case 'V':
		_, week := t.isoWeek()
		return week, 2, '0', true
	case 'w':
		return t.weekday, 1, '0', true
	case 'W':
		return (t.yearDay - (t.weekday-1+7)%7 + 7) / 7, 2, '0', true
	case 'y':
		return t.year - 100*floorDivide(t.year, 100), 2, '0', true
	case 'Y':
		return t.year, 1, '0', true
	}
	return 0, 0, 0, false
}

func floorDivide(n, d int) int {
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

func hour12(hour int) int {
	switch {
	case hour > 12:
		return hour - 12
	case hour == 0:
		return 12
	}
	return hour
}

func (t brokenDownTime) isoWeek() (year, week int) {
	return time.Date(t.year, time.Month(t.month), t.day, 0, 0, 0, 0, time.UTC).ISOWeek()
}

// text appends s, padded in front to the width.
func (f timeConversion) text(b []byte, s string) []byte {
	pad := byte(' ')
	if f.pad == '0' {
		pad = '0'
	}
	for range f.width - len(s) {
		b = append(b, pad)
	}
	if f.upper {
		s = upperASCII(s)
	}
	return append(b, s...)
}

func (f timeConversion) number(b []byte, n, digits int, pad byte) []byte {
	if f.pad != 0 {
		pad = f.pad
	}
	s := strconv.Itoa(max(n, -n))
	fill := max(digits, f.width) - len(s)
	if n < 0 {
		fill--
	}
	if pad == '-' {
		fill -= max(digits-f.width, 0) // only a width adds padding
	}
	if pad == '_' || pad == '-' {
		b = append(b, strings.Repeat(" ", max(fill, 0))...)
		fill = 0
	}
	if n < 0 {
		b = append(b, '-')
	}
	b = append(b, strings.Repeat("0", max(fill, 0))...)
	return append(b, s...)
}
