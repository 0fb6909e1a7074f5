package classad

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseAbsTime reads 2020-01-02T03:04:05+01:00. Like upstream it reads four digits for
// the year and two for each other part, with any separators; missing parts have defaults,
// and parts beyond their range carry over. The zone is Z, +0100 or +01:00 at the end, or
// else the offset zone.
func parseAbsTime(s string, zone int) (seconds int64, off int, ok bool) {
	s, off, ok = cutZone(s)
	if !ok {
		off = zone
	}
	r := timeReader{s}
	year, ok := r.number(4)
	if !ok {
		return 0, 0, false
	}
	parts := [...]int{1, 0, 0, 0, 0} // a missing month is the first, a missing day 0
	for i := range parts {
		if n, ok := r.number(2); ok {
			parts[i] = n
		}
	}
	if r.skipToDigit(); r.text != "" {
		return 0, 0, false
	}
	t := time.Date(year, time.Month(parts[0]), parts[1], parts[2], parts[3], parts[4], 0, time.UTC)
	return t.Unix() - int64(off), off, true
}

// cutZone removes the zone from the end of a time.
func cutZone(s string) (rest string, off int, ok bool) {
	end := strings.TrimRight(s, " \t\n\v\f\r")
	n := len(s)
	switch {
	case len(end) > 1 && lower(end[len(end)-1]) == 'z':
		return end[:len(end)-1] + s[len(end):], 0, true
	case n > 5 && (s[n-5] == '+' || s[n-5] == '-'):
		rest = s
	case n > 6 && (s[n-6] == '+' || s[n-6] == '-') && s[n-3] == ':':
		rest = s[:n-3] + s[n-2:]
	default:
		return s, 0, false
	}
	n = len(rest)
	zone, err := strconv.ParseUint(rest[n-4:], 10, 32)
	if err != nil {
		return rest, 0, false
	}
	off = int(zone/100*3600 + zone%100*60)
	if rest[n-5] == '-' {
		off = -off
	}
	return rest[:n-5], off, true
}

// timeReader reads the parts of a time from the left.
type timeReader struct{ text string }

func (r *timeReader) skipToDigit() {
	for r.text != "" && !isDigit(r.text[0]) {
		r.text = r.text[1:]
	}
}

// number reads digits characters from the next digit on; only leading digits count.
func (r *timeReader) number(digits int) (n int, ok bool) {
	r.skipToDigit()
	if len(r.text) < digits {
		return 0, false
	}
	for i := 0; i < digits && isDigit(r.text[i]); i++ {
		n = 10*n + int(r.text[i]-'0')
	}
	r.text = r.text[digits:]
	return n, true
}

// appendAbsTime writes 2020-01-02T03:04:05+01:00. As in upstream, UTC is -00:00, and a
// year is not filled up to four digits.
func appendAbsTime(b []byte, seconds int64, off int) []byte {
	t := time.Unix(seconds, 0).In(time.FixedZone("", off))
	b = t.AppendFormat(strconv.AppendInt(b, int64(t.Year()), 10), "-01-02T15:04:05")
	sign := byte('+')
	if off <= 0 {
		sign, off = '-', -off
	}
	b = append(b, sign)
	b = appendTwoDigits(b, int64(off/3600))
	return appendTwoDigits(append(b, ':'), int64(off%3600/60))
}

func appendTwoDigits(b []byte, n int64) []byte {
	if n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// parseRelTime reads [-][days+][[hours:]minutes:]seconds or 1d2h3m4.5s. Like upstream it
// reads from the end: each part may be missing, and an empty text is no time.
func parseRelTime(s string) (seconds float64, ok bool) {
	r := spanReader{s}
	r.blanks()
	if r.cutLast() == 's' || r.cutLast() == 'S' || isDigit(r.cutLast()) {
		if !isDigit(r.cutLast()) {
			r.text = r.text[:len(r.text)-1]
		}
		r.blanks()
		text := r.digits()
		if r.cutLast() == '.' {
			r.text = r.text[:len(r.text)-1]
			text = r.digits() + "." + text
		}
		seconds, _ = strtod(text)
	}
	for _, unit := range [...]struct {
		signs   string
		seconds float64
	}{{"mM:", 60}, {"hH:", 3600}, {"dD+", 86400}} {
		r.blanks()
		if r.cutLast() != 0 && strings.IndexByte(unit.signs, r.cutLast()) >= 0 {
			r.text = r.text[:len(r.text)-1]
			r.blanks()
			n, _ := strconv.ParseInt(r.digits(), 10, 64)
			seconds += unit.seconds * float64(n)
		}
	}
	r.blanks()
	if r.cutLast() == '-' {
		r.text, seconds = r.text[:len(r.text)-1], -seconds
	}
	r.blanks()
	return seconds, r.text == ""
}

// spanReader reads the parts of a relative time from the right.
type spanReader struct{ text string }

func (r *spanReader) cutLast() byte {
	if r.text == "" {
		return 0
	}
	return r.text[len(r.text)-1]
}

func (r *spanReader) blanks() { r.text = strings.TrimRight(r.text, " \t\n\v\f\r") }

func (r *spanReader) digits() string {
	rest := strings.TrimRight(r.text, "0123456789")
	digits := r.text[len(rest):]
	r.text = rest
	return digits
}

// appendRelTime writes days+hours:minutes:seconds without leading zero parts. A fraction
// gets as many digits as it needs if exact, else six, as in upstream.
func appendRelTime(b []byte, seconds float64, exact bool) []byte {
	if math.Signbit(seconds) && seconds != 0 {
		b = append(b, '-')
		seconds = -seconds
	}
	whole, ok := realToInt(seconds)
	if !ok || exact && whole > 1<<53 { // the parts would not add up to it
		return strconv.AppendFloat(b, seconds, 'f', -1, 64)
	}
	d, h, m, s := whole/86400, whole%86400/3600, whole%3600/60, whole%60
	if d > 0 {
		b = append(strconv.AppendInt(b, d, 10), '+')
	}
	if d > 0 || h > 0 {
		b = append(appendTwoDigits(b, h), ':')
	}
	if d > 0 || h > 0 || m > 0 {
		b = append(appendTwoDigits(b, m), ':')
	}
	fraction := seconds - math.Floor(seconds)
	switch {
	case fraction == 0:
		return appendTwoDigits(b, s)
	case exact:
		return strconv.AppendFloat(b, float64(s)+fraction, 'f', -1, 64)
	}
	start := len(b)
	if b = strconv.AppendFloat(b, float64(s)+fraction, 'g', 6, 64); len(b) < start+2 {
		b = append(b[:start], '0', b[start])
	}
	return b
}
