package classad

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseAbsTime reads 2020-01-02T03:04:05+01:00, with the separators and the time of day optional; zone is the offset where the text
// has none.
func parseAbsTime(s string, zone int) (seconds int64, off int, ok bool) {
	r := timeReader{s: strings.TrimSpace(s)}
	year, ok1 := r.number(4)
	r.skip("-/")
	month, ok2 := r.number(2)
	r.skip("-/")
	day, ok3 := r.number(2)
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, false
	}
	var clock [3]int
	if r.skip("T ") {
		for i := range clock {
			r.skip(":")
			if clock[i], ok = r.number(2); !ok {
				break
			}
		}
		if r.skip(".") {
			for r.skip("0123456789") {
			}
		}
	}
	off, ok = r.zone(zone)
	if !ok || r.s != "" || month < 1 || month > 12 || day < 1 || day > 31 || clock[0] > 24 || clock[1] > 59 || clock[2] > 60 {
		return 0, 0, false
	}
	t := time.Date(year, time.Month(month), day, clock[0], clock[1], clock[2], 0, time.UTC)
	return t.Unix() - int64(off), off, true
}

// timeReader reads the parts of a time from the left.
type timeReader struct{ s string }

func (r *timeReader) number(digits int) (int, bool) {
	if len(r.s) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(r.s[:digits], 10, 32)
	if err != nil {
		return 0, false
	}
	r.s = r.s[digits:]
	return int(n), true
}

// skip goes over one character of the set, and says whether there was one.
func (r *timeReader) skip(set string) bool {
	if r.s == "" || strings.IndexByte(set, r.s[0]) < 0 {
		return false
	}
	r.s = r.s[1:]
	return true
}

// zone reads Z, +01:00, +0100, or nothing.
func (r *timeReader) zone(usual int) (off int, ok bool) {
	r.s = strings.TrimLeft(r.s, " ")
	if r.s == "" {
		return usual, true
	}
	if r.skip("Zz") {
		return 0, true
	}
	minus := r.s[0] == '-'
	if !r.skip("+-") {
		return 0, false
	}
	h, ok := r.number(2)
	r.skip(":")
	m, ok2 := r.number(2)
	if off = 3600*h + 60*m; minus {
		off = -off
	}
	return off, ok && ok2
}

// appendAbsTime writes 2020-01-02T03:04:05+01:00. UTC is -00:00, as upstream writes it.
func appendAbsTime(b []byte, seconds int64, off int) []byte {
	b = time.Unix(seconds, 0).In(time.FixedZone("", off)).AppendFormat(b, "2006-01-02T15:04:05")
	sign := byte('+')
	if off <= 0 {
		sign, off = '-', -off
	}
	b = append(b, sign)
	b = appendTwo(b, int64(off/3600))
	return appendTwo(append(b, ':'), int64(off%3600/60))
}

func appendTwo(b []byte, n int64) []byte {
	if n < 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, n, 10)
}

// parseRelTime reads [-][days+][[hours:]minutes:]seconds, each part a number, or 1d2h3m4.5s. An empty text is no time at all.
func parseRelTime(s string) (seconds float64, ok bool) {
	s = strings.TrimSpace(s)
	sign := 1.0
	if rest, minus := strings.CutPrefix(s, "-"); minus {
		s, sign = rest, -1
	}
	if s == "" {
		return 0, sign > 0
	}
	if days, rest, found := strings.Cut(s, "+"); found {
		d, err := strconv.ParseUint(days, 10, 31)
		if err != nil {
			return 0, false
		}
		seconds, s = 86400*float64(d), rest
	}
	if strings.ContainsAny(s, "dhmsDHMS") {
		return parseUnits(s, sign)
	}
	parts := strings.Split(s, ":")
	if len(parts) > 3 {
		return 0, false
	}
	sum := 0.0
	for _, part := range parts {
		f, err := parsePlain(part)
		if err != nil {
			return 0, false
		}
		sum = 60*sum + f
	}
	return sign * (seconds + sum), true
}

// parsePlain reads digits with an optional fraction.
func parsePlain(s string) (float64, error) {
	if strings.Trim(s, "0123456789.") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// parseUnits reads 1d2h3m4.5s.
func parseUnits(s string, sign float64) (float64, bool) {
	sum := 0.0
	for s != "" {
		end := strings.IndexAny(s, "dhmsDHMS")
		if end <= 0 {
			return 0, false
		}
		f, err := parsePlain(strings.TrimSpace(s[:end]))
		if err != nil {
			return 0, false
		}
		switch lower(s[end]) {
		case 'd':
			f *= 86400
		case 'h':
			f *= 3600
		case 'm':
			f *= 60
		}
		sum += f
		s = strings.TrimSpace(s[end+1:])
	}
	return sign * sum, true
}

// appendRelTime writes days+hours:minutes:seconds from the first part that is not zero.
func appendRelTime(b []byte, seconds float64) []byte {
	whole, ok := realToInt(seconds)
	if !ok {
		return strconv.AppendFloat(b, seconds, 'f', -1, 64)
	}
	if seconds < 0 {
		b = append(b, '-')
		whole, seconds = -whole, -seconds
	}
	d, h, m, s := whole/86400, whole%86400/3600, whole%3600/60, whole%60
	if d > 0 {
		b = append(strconv.AppendInt(b, d, 10), '+')
	}
	if d > 0 || h > 0 {
		b = append(appendTwo(b, h), ':')
	}
	if d > 0 || h > 0 || m > 0 {
		b = append(appendTwo(b, m), ':')
	}
	if fraction := seconds - math.Floor(seconds); fraction > 0 {
		return strconv.AppendFloat(b, math.Round((float64(s)+fraction)*1e6)/1e6, 'f', -1, 64)
	}
	return appendTwo(b, s)
}

// strftime writes a time by the conversions of C's strftime(3), in the C locale.
func strftime(t time.Time, format string) string {
	var b []byte
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b = append(b, format[i])
			continue
		}
		i++
		b = appendConversion(b, t, format[i])
	}
	return string(b)
}

func appendConversion(b []byte, t time.Time, c byte) []byte {
	switch c {
	case 'U':
		return appendTwo(b, int64((t.YearDay()+6-int(t.Weekday()))/7))
	case 'W':
		return appendTwo(b, int64((t.YearDay()+6-(int(t.Weekday())+6)%7)/7))
	case 'V':
		_, week := t.ISOWeek()
		return appendTwo(b, int64(week))
	case 'G':
		year, _ := t.ISOWeek()
		return strconv.AppendInt(b, int64(year), 10)
	case 'C':
		return appendTwo(b, int64(t.Year()/100))
	case 'w':
		return strconv.AppendInt(b, int64(t.Weekday()), 10)
	case 'u':
		return strconv.AppendInt(b, int64((t.Weekday()+6)%7+1), 10)
	case 's':
		return strconv.AppendInt(b, t.Unix(), 10)
	case '%':
		return append(b, '%')
	case 'n':
		return append(b, '\n')
	case 't':
		return append(b, '\t')
	}
	if layout := conversionLayout(c); layout != "" {
		return t.AppendFormat(b, layout)
	}
	return append(b, '%', c)
}

// conversionLayout is the layout of package time for a conversion, or "".
func conversionLayout(c byte) string {
	const letters = "aAbBhcdDeFHIjmMpPrRSTxXyYzZ"
	layouts := [...]string{"Mon", "Monday", "Jan", "January", "Jan", "Mon Jan _2 15:04:05 2006", "02", "01/02/06", "_2", "2006-01-02", "15",
		"03", "002", "01", "04", "PM", "pm", "03:04:05 PM", "15:04", "05", "15:04:05", "01/02/06", "15:04:05", "06", "2006", "-0700", "MST"}
	if i := strings.IndexByte(letters, c); i >= 0 {
		return layouts[i]
	}
	return ""
}
