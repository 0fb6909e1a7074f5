package classad

import (
	"fmt"
	"math"
	"time"
)

// timeBuiltin are the functions of times.
func timeBuiltin(name string) builtin {
	switch name {
	case "time":
		return builtin{0, 0, func(c call) Value { return IntValue(c.ev.now().Unix()) }}
	case "currenttime":
		return builtin{0, 0, func(c call) Value { return absOf(c.ev.now()) }}
	case "timezoneoffset":
		return builtin{0, 0, func(c call) Value { return RelTimeValue(float64(offset(c.ev.now()))) }}
	case "daytime":
		return builtin{0, 0, fnDayTime}
	case "getyear":
		return ofMoment(func(t time.Time) int { return t.Year() })
	case "getmonth":
		return ofMoment(func(t time.Time) int { return int(t.Month()) })
	case "getdayofyear":
		return ofMoment(func(t time.Time) int { return t.YearDay() - 1 })
	case "getdayofmonth":
		return ofMoment(func(t time.Time) int { return t.Day() })
	case "getdayofweek":
		return ofMoment(func(t time.Time) int { return int(t.Weekday()) })
	case "getdays":
		return ofSpan(nil, func(s int64) int64 { return s / 86400 })
	case "gethours":
		return ofSpan(time.Time.Hour, func(s int64) int64 { return s % 86400 / 3600 })
	case "getminutes":
		return ofSpan(time.Time.Minute, func(s int64) int64 { return s % 3600 / 60 })
	case "getseconds":
		return ofSpan(time.Time.Second, func(s int64) int64 { return s % 60 })
	case "splittime":
		return builtin{1, 1, fnSplitTime}
	case "formattime":
		return builtin{0, 2, fnFormatTime}
	case "abstime":
		return builtin{0, 2, fnAbsTime}
	case "reltime":
		return builtin{1, 1, fnRelTime}
	case "interval":
		return builtin{1, 1, fnInterval}
	}
	return builtin{}
}

func offset(t time.Time) int {
	_, off := t.Zone()
	return off
}

func absOf(t time.Time) Value { return AbsTimeValue(t.Unix(), offset(t)) }

// fnDayTime is how long it is since midnight.
func fnDayTime(c call) Value {
	h, m, s := c.ev.now().Clock()
	return RelTimeValue(float64(3600*h + 60*m + s))
}

// local is an absolute time in the local zone, which is the one that upstream takes its parts in.
func (c call) local(v Value) (t time.Time, ok bool) {
	if v.kind != AbsTime {
		return time.Time{}, false
	}
	return time.Unix(v.int(), 0).In(c.ev.now().Location()), true
}

func ofMoment(part func(time.Time) int) builtin {
	return builtin{1, 1, func(c call) Value {
		v := c.arg(0)
		if t, ok := c.local(v); ok {
			return IntValue(int64(part(t)))
		}
		return wrong(0, v)
	}}
}

func ofSpan(moment func(time.Time) int, span func(int64) int64) builtin {
	return builtin{1, 1, func(c call) Value {
		v := c.arg(0)
		if t, ok := c.local(v); ok && moment != nil {
			return IntValue(int64(moment(t)))
		}
		if s, ok := v.Seconds(); ok {
			n, _ := realToInt(s)
			return IntValue(span(n))
		}
		return wrong(0, v)
	}}
}

// moment is an absolute time, or a number of seconds since the epoch in the local zone.
func (c call) moment(v Value) (time.Time, bool) {
	switch v.kind {
	case AbsTime:
		return v.Time()
	case Integer:
		return time.Unix(v.int(), 0).In(c.ev.now().Location()), true
	case Real:
		return time.Unix(wholeSeconds(v.real()), 0).In(c.ev.now().Location()), true
	}
	return time.Time{}, false
}

// wholeSeconds is f without its fraction. What does not fit is the least integer of 32 bits, as upstream has it on its processors.
func wholeSeconds(f float64) int64 {
	if n, ok := realToInt(f); ok {
		return n
	}
	return math.MinInt32
}

// fnSplitTime is an ad of a time's parts, in the order in which upstream shows them.
func fnSplitTime(c call) Value {
	v := c.arg(0)
	if v.kind == Undefined {
		return v
	}
	ad := New()
	if s, ok := v.Seconds(); ok {
		splitSpan(ad, s)
		return AdOf(ad)
	}
	t, ok := c.moment(v)
	if !ok {
		return wrong(0, v)
	}
	ad.SetInt("Day", int64(t.Day()))
	ad.SetString("Type", "AbsoluteTime")
	ad.SetInt("Year", int64(t.Year()))
	ad.SetInt("Hours", int64(t.Hour()))
	ad.SetInt("Month", int64(t.Month()))
	ad.SetInt("Offset", int64(offset(t)))
	ad.SetInt("Minutes", int64(t.Minute()))
	ad.SetInt("Seconds", int64(t.Second()))
	return AdOf(ad)
}

// splitSpan sets the parts of a relative time. The first that is not zero has the sign.
func splitSpan(ad *Ad, s float64) {
	whole, _ := realToInt(math.Abs(s))
	parts := [...]int64{whole / 86400, whole % 86400 / 3600, whole % 3600 / 60}
	seconds := float64(whole%60) + math.Abs(s) - math.Floor(math.Abs(s))
	if s < 0 {
		first := 0
		for first < len(parts) && parts[first] == 0 {
			first++
		}
		if first < len(parts) {
			parts[first] = -parts[first]
		} else {
			seconds = -seconds
		}
	}
	ad.SetInt("Days", parts[0])
	ad.SetString("Type", "RelativeTime")
	ad.SetInt("Hours", parts[1])
	ad.SetInt("Minutes", parts[2])
	ad.SetReal("Seconds", seconds)
}

// fnFormatTime writes a time as strftime does; a time can also be an ad as splitTime makes them.
func fnFormatTime(c call) Value {
	t := brokenDown(c.ev.now())
	if len(c.args) > 0 {
		v := c.arg(0)
		if v.kind == AdValue {
			t = c.joinTime(v.comp.frame(c.ev))
		} else if m, ok := c.moment(v); ok {
			t = brokenDown(m)
		} else {
			return wrong(0, v)
		}
	}
	format, bad := c.given(1, "%c")
	if bad.kind == Error || !c.ev.spend(16*len(format)) {
		return bad
	}
	return c.text(t.format(format, c.ev.now().Location()))
}

// joinTime undoes splitTime. A part that is missing is 0, or the first month, or 1900.
func (c call) joinTime(f *frame) clock {
	parts := [...]int{0, 0, 0, 0, 1, 1900}
	for i, name := range [...]string{"Seconds", "Minutes", "Hours", "Day", "Month", "Year"} {
		if n, ok := c.ev.named(f, name).Int(); ok {
			parts[i] = int(int32(n))
		}
	}
	t := clock{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], 0, 0}
	t.weekday, t.yearDay = dayNumbers(t.year, t.month, t.day)
	return t
}

// fnAbsTime reads a time, or makes one of seconds since the epoch and an offset from UTC.
func fnAbsTime(c call) Value {
	if len(c.args) == 0 {
		return absOf(c.ev.now())
	}
	v := c.arg(0)
	off, given, bad := c.offset()
	if bad.kind == Error {
		return bad
	}
	switch v.kind {
	case AbsTime, Undefined:
		return v
	case Integer, Real:
		t, _ := c.moment(v)
		v = absOf(t)
	case RelTime:
		v = absOf(time.Unix(wholeSeconds(v.real()), 0).In(c.ev.now().Location()))
	case String:
		seconds, zone, ok := parseAbsTime(v.str, offset(c.ev.now()))
		if !ok {
			return failure(badText, 0)
		}
		v = AbsTimeValue(seconds, zone)
	default:
		return wrong(0, v)
	}
	if given {
		v.off = off
	}
	return v
}

// offset is the optional second argument, a number of seconds or a relative time.
func (c call) offset() (off int32, given bool, bad Value) {
	if len(c.args) < 2 {
		return 0, false, Value{}
	}
	v := c.arg(1)
	f, ok := v.Number()
	if v.kind == RelTime {
		f, ok = v.real(), true
	}
	if !ok || v.kind == Boolean || math.Abs(f) > math.MaxInt32 {
		return 0, true, wrong(1, v)
	}
	return int32(f), true, Value{}
}

// fnRelTime makes a relative time of seconds, or of the seconds since the epoch.
func fnRelTime(c call) Value {
	v := c.arg(0)
	switch v.kind {
	case Integer, AbsTime:
		return RelTimeValue(float64(v.int()))
	case Real:
		return finiteSpan(v.real())
	case RelTime, Undefined:
		return v
	case String:
		if s, ok := parseRelTime(v.str); ok {
			return RelTimeValue(s)
		}
	}
	return wrongNumber(0, v)
}

// fnInterval writes a number of seconds as days+hours:minutes:seconds, from the first part that is not zero.
func fnInterval(c call) Value {
	v := c.arg(0)
	n := toInt(v)
	if n.kind != Integer {
		return wrongNumber(0, v)
	}
	if n.int() == math.MinInt64 {
		n = IntValue(0) // what does not fit, in upstream's 32 bits
	}
	s := n.int()
	d, h, m, s := s/86400, s%86400/3600, s%3600/60, s%60
	switch {
	case d != 0:
		return StringValue(fmt.Sprintf("%d+%02d:%02d:%02d", d, magnitude(h), magnitude(m), magnitude(s)))
	case h != 0:
		return StringValue(fmt.Sprintf("%d:%02d:%02d", h, magnitude(m), magnitude(s)))
	case m != 0:
		return StringValue(fmt.Sprintf("%d:%02d", m, magnitude(s)))
	}
	return StringValue(fmt.Sprintf("%d", s))
}

func magnitude(n int64) int64 { return max(n, -n) }
