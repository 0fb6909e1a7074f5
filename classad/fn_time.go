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

func ofMoment(part func(time.Time) int) builtin {
	return builtin{1, 1, func(c call) Value {
		v := c.arg(0)
		if t, ok := v.Time(); ok {
			return IntValue(int64(part(t)))
		}
		return ErrorValue()
	}}
}

func ofSpan(moment func(time.Time) int, span func(int64) int64) builtin {
	return builtin{1, 1, func(c call) Value {
		v := c.arg(0)
		if t, ok := v.Time(); ok && moment != nil {
			return IntValue(int64(moment(t)))
		}
		if s, ok := v.Seconds(); ok {
			n, _ := realToInt(s)
			return IntValue(span(n))
		}
		return ErrorValue()
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
		n, ok := realToInt(v.real())
		return time.Unix(n, 0).In(c.ev.now().Location()), ok
	}
	return time.Time{}, false
}

// fnSplitTime is an ad of a time's parts.
func fnSplitTime(c call) Value {
	v := c.arg(0)
	if v.kind == Undefined {
		return v
	}
	ad := New()
	if s, ok := v.Seconds(); ok {
		n, _ := realToInt(s)
		ad.SetString("Type", "RelativeTime")
		ad.SetInt("Days", n/86400)
		ad.SetInt("Hours", n%86400/3600)
		ad.SetInt("Minutes", n%3600/60)
		ad.SetReal("Seconds", float64(n%60)+s-math.Trunc(s))
		return AdOf(ad)
	}
	t, ok := c.moment(v)
	if !ok {
		return ErrorValue()
	}
	ad.SetString("Type", "AbsoluteTime")
	ad.SetInt("Year", int64(t.Year()))
	ad.SetInt("Month", int64(t.Month()))
	ad.SetInt("Day", int64(t.Day()))
	ad.SetInt("Hours", int64(t.Hour()))
	ad.SetInt("Minutes", int64(t.Minute()))
	ad.SetInt("Seconds", int64(t.Second()))
	ad.SetInt("Offset", int64(offset(t)))
	return AdOf(ad)
}

// fnFormatTime writes a time as strftime does; a time can also be an ad as splitTime makes them.
func fnFormatTime(c call) Value {
	t := c.ev.now()
	if len(c.args) > 0 {
		v := c.arg(0)
		if v.kind == Undefined {
			return v
		}
		var ok bool
		if v.kind == AdValue {
			t, ok = c.joinTime(v.comp.frame(c.ev))
		} else {
			t, ok = c.moment(v)
		}
		if !ok {
			return ErrorValue()
		}
	}
	format := "%c"
	if len(c.args) > 1 {
		f := c.arg(1)
		if f.kind == Undefined {
			return f
		}
		var ok bool
		if format, ok = f.Str(); !ok || !c.ev.spend(16*len(format)) {
			return ErrorValue()
		}
	}
	return StringValue(strftime(t, format))
}

// joinTime undoes splitTime.
func (c call) joinTime(f *frame) (time.Time, bool) {
	if kind, ok := c.ev.named(f, "Type").Str(); ok && !foldEqual(kind, "AbsoluteTime") {
		return time.Time{}, false
	}
	var parts [7]int64
	for i, name := range [...]string{"Year", "Month", "Day", "Hours", "Minutes", "Seconds", "Offset"} {
		var ok bool
		if parts[i], ok = c.ev.named(f, name).Int(); !ok && i < 3 || parts[i] != int64(int32(parts[i])) {
			return time.Time{}, false
		}
	}
	return time.Date(int(parts[0]), time.Month(parts[1]), int(parts[2]), int(parts[3]), int(parts[4]), int(parts[5]), 0,
		time.FixedZone("", int(parts[6]))), true
}

// fnAbsTime reads a time, or makes one of seconds since the epoch and an offset from UTC.
func fnAbsTime(c call) Value {
	v := absOf(c.ev.now())
	if len(c.args) > 0 {
		switch a := c.arg(0); a.kind {
		case AbsTime, Undefined:
			v = a
		case Integer, Real:
			t, ok := c.moment(a)
			if !ok {
				return ErrorValue()
			}
			v = absOf(t)
		case String:
			seconds, off, ok := parseAbsTime(a.str, offset(c.ev.now()))
			if !ok {
				return ErrorValue()
			}
			v = AbsTimeValue(seconds, off)
		default:
			return ErrorValue()
		}
	}
	if len(c.args) < 2 || v.kind == Undefined {
		return v
	}
	off := c.arg(1)
	f, ok := off.Number()
	if s, isSpan := off.Seconds(); isSpan {
		f, ok = s, true
	}
	if !ok || math.Abs(f) >= 86400*2 {
		return ErrorValue()
	}
	v.off = int32(f)
	return v
}

func fnRelTime(c call) Value {
	switch v := c.arg(0); v.kind {
	case Integer:
		return RelTimeValue(float64(v.int()))
	case Real:
		return RelTimeValue(v.real())
	case RelTime, Undefined:
		return v
	case String:
		if s, ok := parseRelTime(v.str); ok {
			return RelTimeValue(s)
		}
	}
	return ErrorValue()
}

// fnInterval writes a number of seconds as days+hours:minutes:seconds, from the first part that is not zero.
func fnInterval(c call) Value {
	v := c.arg(0)
	if v.kind == Undefined || v.kind == String {
		return ErrorValue()
	}
	n := toInt(v)
	if v.kind == Real && n.kind == Error {
		n = IntValue(0)
	}
	if n.kind != Integer {
		return ErrorValue()
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
