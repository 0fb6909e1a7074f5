package classad

import (
	"fmt"
	"math"
	"time"
)

// timeBuiltin returns a function on times.
func timeBuiltin(name string) builtinFunc {
	switch name {
	case "time":
		return builtinFunc{0, 0, func(c builtinCall) Value { return IntValue(c.evaluator.now().Unix()) }}
	case "currenttime":
		return builtinFunc{0, 0, func(c builtinCall) Value { return absOf(c.evaluator.now()) }}
	case "timezoneoffset":
		return builtinFunc{0, 0, func(c builtinCall) Value {
			return RelTimeValue(float64(zoneOffset(c.evaluator.now())))
		}}
	case "daytime":
		return builtinFunc{0, 0, fnDayTime}
	case "getyear":
		return momentPart(func(t time.Time) int { return t.Year() })
	case "getmonth":
		return momentPart(func(t time.Time) int { return int(t.Month()) })
	case "getdayofyear":
		return momentPart(func(t time.Time) int { return t.YearDay() - 1 })
	case "getdayofmonth":
		return momentPart(func(t time.Time) int { return t.Day() })
	case "getdayofweek":
		return momentPart(func(t time.Time) int { return int(t.Weekday()) })
	case "getdays":
		return spanPart(nil, func(s int64) int64 { return s / 86400 })
	case "gethours":
		return spanPart(time.Time.Hour, func(s int64) int64 { return s % 86400 / 3600 })
	case "getminutes":
		return spanPart(time.Time.Minute, func(s int64) int64 { return s % 3600 / 60 })
	case "getseconds":
		return spanPart(time.Time.Second, func(s int64) int64 { return s % 60 })
	case "splittime":
		return builtinFunc{1, 1, fnSplitTime}
	case "formattime":
		return builtinFunc{0, 2, fnFormatTime}
	case "abstime":
		return builtinFunc{0, 2, fnAbsTime}
	case "reltime":
		return builtinFunc{1, 1, fnRelTime}
	case "interval":
		return builtinFunc{1, 1, fnInterval}
	}
	return builtinFunc{}
}

func zoneOffset(t time.Time) int {
	_, off := t.Zone()
	return off
}

func absOf(t time.Time) Value { return AbsTimeValue(t.Unix(), zoneOffset(t)) }

// fnDayTime returns the time since midnight.
func fnDayTime(c builtinCall) Value {
	h, m, s := c.evaluator.now().Clock()
	return RelTimeValue(float64(3600*h + 60*m + s))
}

// localTime returns an absolute time in the local zone, in which upstream computes its
// parts.
func (c builtinCall) localTime(v Value) (t time.Time, ok bool) {
	if v.kind != AbsTime {
		return time.Time{}, false
	}
	return time.Unix(v.int(), 0).In(c.evaluator.now().Location()), true
}

func momentPart(part func(time.Time) int) builtinFunc {
	return builtinFunc{1, 1, func(c builtinCall) Value {
		v := c.arg(0)
		if t, ok := c.localTime(v); ok {
			return IntValue(int64(part(t)))
		}
		return argumentError(0, v)
	}}
}

func spanPart(moment func(time.Time) int, span func(int64) int64) builtinFunc {
	return builtinFunc{1, 1, func(c builtinCall) Value {
		v := c.arg(0)
		if t, ok := c.localTime(v); ok && moment != nil {
			return IntValue(int64(moment(t)))
		}
		if s, ok := v.Seconds(); ok {
			n, _ := realToInt(s)
			return IntValue(span(n))
		}
		return argumentError(0, v)
	}}
}

// moment converts an absolute time, or a number of seconds since the epoch, to a time in
// the local zone.
func (c builtinCall) moment(v Value) (time.Time, bool) {
	switch v.kind {
	case AbsTime:
		return v.Time()
	case Integer:
		return time.Unix(v.int(), 0).In(c.evaluator.now().Location()), true
	case Real:
		return time.Unix(wholeSeconds(v.real()), 0).In(c.evaluator.now().Location()), true
	}
	return time.Time{}, false
}

// wholeSeconds returns f without its fraction. A number that does not fit becomes the
// least integer of 32 bits, as in upstream.
func wholeSeconds(f float64) int64 {
	if n, ok := realToInt(f); ok {
		return n
	}
	return math.MinInt32
}

// fnSplitTime returns an ad with the parts of a time, in upstream's order.
func fnSplitTime(c builtinCall) Value {
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
		return argumentError(0, v)
	}
	ad.SetInt("Day", int64(t.Day()))
	ad.SetString("Type", "AbsoluteTime")
	ad.SetInt("Year", int64(t.Year()))
	ad.SetInt("Hours", int64(t.Hour()))
	ad.SetInt("Month", int64(t.Month()))
	ad.SetInt("Offset", int64(zoneOffset(t)))
	ad.SetInt("Minutes", int64(t.Minute()))
	ad.SetInt("Seconds", int64(t.Second()))
	return AdOf(ad)
}

// splitSpan sets the parts of a relative time. The first part that is not zero has the
// sign.
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

// fnFormatTime formats a time as strftime does. The time can also be an ad of splitTime.
func fnFormatTime(c builtinCall) Value {
	t := breakDownTime(c.evaluator.now())
	if len(c.args) > 0 {
		v := c.arg(0)
		if v.kind == AdValue {
			t = c.joinTime(v.comp.scope(c.evaluator))
		} else if m, ok := c.moment(v); ok {
			t = breakDownTime(m)
		} else {
			return argumentError(0, v)
		}
	}
	format, bad := c.stringArgOr(1, "%c")
	if bad.kind == Error || !c.evaluator.takeText(16*len(format)) {
		return bad
	}
	return c.text(t.format(format, c.evaluator.now().Location()))
}

// joinTime is the inverse of splitTime. A missing part is 0; a missing month is the
// first, and a missing year 1900.
func (c builtinCall) joinTime(f *nameScope) brokenDownTime {
	parts := [...]int{0, 0, 0, 0, 1, 1900}
	for i, name := range [...]string{"Seconds", "Minutes", "Hours", "Day", "Month", "Year"} {
		if n, ok := c.evaluator.evalOwn(f, name).Int(); ok {
			parts[i] = int(int32(n))
		}
	}
	t := brokenDownTime{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], 0, 0}
	t.weekday, t.yearDay = dayNumbers(t.year, t.month, t.day)
	return t
}

// fnAbsTime reads an absolute time from text, or makes one of seconds since the epoch and
// an offset from UTC.
func fnAbsTime(c builtinCall) Value {
	if len(c.args) == 0 {
		return absOf(c.evaluator.now())
	}
	v := c.arg(0)
	off, given, bad := c.zoneArg()
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
		v = absOf(time.Unix(wholeSeconds(v.real()), 0).In(c.evaluator.now().Location()))
	case String:
		seconds, zone, ok := parseAbsTime(v.str, zoneOffset(c.evaluator.now()))
		if !ok {
			return errorFor(badText, 0)
		}
		v = AbsTimeValue(seconds, zone)
	default:
		return argumentError(0, v)
	}
	if given {
		v.off = off
	}
	return v
}

// zoneArg returns the optional second argument: a number of seconds or a relative time.
func (c builtinCall) zoneArg() (off int32, given bool, bad Value) {
	if len(c.args) < 2 {
		return 0, false, Value{}
	}
	v := c.arg(1)
	f, ok := v.Number()
	if v.kind == RelTime {
		f, ok = v.real(), true
	}
	if !ok || v.kind == Boolean || math.Abs(f) > math.MaxInt32 {
		return 0, true, argumentError(1, v)
	}
	return int32(f), true, Value{}
}

// fnRelTime reads a relative time from text, or makes one of seconds.
func fnRelTime(c builtinCall) Value {
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
	return numberError(0, v)
}

// fnInterval writes a number of seconds as days+hours:minutes:seconds, without leading
// parts that are zero.
func fnInterval(c builtinCall) Value {
	v := c.arg(0)
	n := toInt(v)
	if n.kind != Integer {
		return numberError(0, v)
	}
	if n.int() == math.MinInt64 {
		n = IntValue(0) // a number that does not fit upstream's 32 bits
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
