package classad

import (
	"math"
	"time"
)

// ValueKind is the type of a [Value].
type ValueKind uint8

// The types of the language. The zero kind is Undefined, so the zero Value is UNDEFINED.
const (
	Undefined ValueKind = iota
	Error
	Boolean
	Integer // 64 bits, wraps around
	Real    // IEEE 754 double
	String
	AbsTime // seconds since the epoch, and an offset from UTC
	RelTime // seconds, with a fraction
	List
	AdValue
)

func (k ValueKind) String() string {
	return [...]string{"undefined", "error", "boolean", "integer", "real", "string", "abstime", "reltime", "list",
		"classad"}[k]
}

// Value is the result of an evaluation. The zero Value is UNDEFINED. Scalars need no
// allocation. Lists are lazy: they hold expressions and the scope to evaluate them in.
// Compare values with [Value.Identity], not with ==.
type Value struct {
	kind ValueKind
	off  int32 // AbsTime: seconds east of UTC; Error: the errorCause
	// Boolean, Integer, AbsTime: an int64; Real, RelTime: bits of a float64; Error:
	// numbers of the cause
	num  uint64
	str  string          // String: the text; Error: text of the cause
	comp *compositeValue // List, AdValue
}

// compositeValue is the body of a list or an ad value.
type compositeValue struct {
	elems []Expr     // of a List
	ad    *Ad        // of an AdValue
	text  string     // of ad, as Ad.String prints it; "": it is printed when it is needed
	in    *nameScope // scope of the names in the elements, and enclosing scope of ad; may be nil
}

// UndefinedValue returns UNDEFINED.
func UndefinedValue() Value { return Value{} }

// ErrorValue returns ERROR without a cause.
func ErrorValue() Value { return Value{kind: Error} }

// BoolValue returns a Boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Boolean, num: 1}
	}
	return Value{kind: Boolean}
}

// IntValue returns an Integer.
func IntValue(n int64) Value { return Value{kind: Integer, num: uint64(n)} }

// RealValue returns a Real.
func RealValue(f float64) Value { return Value{kind: Real, num: math.Float64bits(f)} }

// StringValue returns a String.
func StringValue(s string) Value { return Value{kind: String, str: s} }

// AbsTimeValue returns an absolute time: seconds since the epoch, with an offset in
// seconds east of UTC.
func AbsTimeValue(seconds int64, offset int) Value {
	return Value{kind: AbsTime, num: uint64(seconds), off: int32(offset)}
}

// RelTimeValue returns a relative time in seconds.
func RelTimeValue(seconds float64) Value { return Value{kind: RelTime, num: math.Float64bits(seconds)} }

// ListValue returns a List of values.
func ListValue(values ...Value) Value {
	elems := make([]Expr, len(values))
	for i, v := range values {
		elems[i] = v.Expr()
	}
	return Value{kind: List, comp: &compositeValue{elems: elems}}
}

// AdOf returns the value of an ad. The ad must not change afterwards.
func AdOf(ad *Ad) Value { return Value{kind: AdValue, comp: &compositeValue{ad: ad}} }

// PrintedAd returns the value of an ad and prints it now. The text is used each time an
// ad around it is printed. So a daemon that advertises a thousand things prints only
// those that have changed. The ad must not change afterwards.
func PrintedAd(ad *Ad) Value {
	return Value{kind: AdValue, comp: &compositeValue{ad: ad, text: ad.String()}}
}

// Kind returns the type of the value.
func (v Value) Kind() ValueKind { return v.kind }

// IsUndefined reports whether v is UNDEFINED.
func (v Value) IsUndefined() bool { return v.kind == Undefined }

// IsError reports whether v is ERROR.
func (v Value) IsError() bool { return v.kind == Error }

// Bool returns the value of a Boolean; ok is false for other types.
func (v Value) Bool() (b, ok bool) { return v.num != 0, v.kind == Boolean }

// Int returns the value of an Integer; ok is false for other types.
func (v Value) Int() (n int64, ok bool) { return int64(v.num), v.kind == Integer }

// Real returns the value of a Real; ok is false for other types.
func (v Value) Real() (f float64, ok bool) { return v.real(), v.kind == Real }

// Str returns the value of a String; ok is false for other types.
func (v Value) Str() (s string, ok bool) { return v.str, v.kind == String }

// Time returns the value of an AbsTime, in its own zone; ok is false for other types.
func (v Value) Time() (t time.Time, ok bool) {
	if v.kind != AbsTime {
		return time.Time{}, false
	}
	return time.Unix(v.int(), 0).In(time.FixedZone("", int(v.off))), true
}

// Seconds returns the value of a RelTime; ok is false for other types.
func (v Value) Seconds() (s float64, ok bool) { return v.real(), v.kind == RelTime }

// Elements returns the elements of a List, each evaluated in the list's scope with env.
// ok is false for other types.
func (v Value) Elements(env *EvalEnv) (elems []Value, ok bool) {
	if v.kind != List {
		return nil, false
	}
	ev := newEvaluator(nil, nil, env)
	elems = make([]Value, len(v.comp.elems))
	for i, e := range v.comp.elems {
		elems[i] = ev.withinBounds(ev.eval(e.n, v.comp.scope(ev)))
	}
	return elems, true
}

// Ad returns the ad of an AdValue, which is shared and must not be changed. ok is false
// for other types.
func (v Value) Ad() (ad *Ad, ok bool) {
	if v.kind != AdValue {
		return nil, false
	}
	return v.comp.ad, true
}

// Number returns a Boolean (0 or 1), Integer or Real as a float64; ok is false for other
// types.
func (v Value) Number() (f float64, ok bool) {
	switch v.kind {
	case Boolean, Integer:
		return float64(v.int()), true
	case Real:
		return v.real(), true
	}
	return 0, false
}

// Truth returns the value as a condition: a Boolean, or a number that is not zero. ok is
// false for every other type.
func (v Value) Truth() (b, ok bool) {
	switch v.kind {
	case Boolean, Integer:
		return v.num != 0, true
	case Real:
		return v.real() != 0, true
	}
	return false, false
}

// IsTrue reports whether v is a true condition. UNDEFINED and ERROR are not.
func (v Value) IsTrue() bool {
	b, ok := v.Truth()
	return b && ok
}

// Expr returns an expression that evaluates to v. A list or an ad retains its scope.
func (v Value) Expr() Expr {
	switch {
	case v.comp == nil:
		return Expr{&literalNode{v}}
	case v.comp.in != nil:
		return Expr{&boundValue{v}}
	case v.kind == List:
		return Expr{&listNode{elems: v.comp.elems}}
	}
	return Expr{&adNode{ad: v.comp.ad, text: v.comp.text}}
}

// String returns the value in ClassAd syntax, on one line. Reals have 16 digits, as
// HTCondor shows results; [Value.Expr] prints them in full. Text longer than twice
// MaxBytes is cut and ends in an ellipsis.
func (v Value) String() string { return string(printStyle{}.value(nil, v)) }

// Identity returns a key that is equal for values that =?= calls identical. These have
// the same type and value, strings compared with case. Lists and ads, which =?= does not
// compare, are identified by their text.
func (v Value) Identity() ValueKey {
	switch v.kind {
	case List, AdValue:
		return ValueKey{kind: v.kind, str: string(printStyle{exact: true}.value(nil, v))}
	case Real, RelTime:
		return ValueKey{kind: v.kind, num: math.Float64bits(v.real() + 0)} // -0.0 becomes 0.0
	case AbsTime:
		return ValueKey{kind: v.kind, num: v.num}
	case Error:
		return ValueKey{kind: v.kind}
	}
	return ValueKey{kind: v.kind, num: v.num, str: v.str}
}

// ValueKey is a comparable form of a [Value], for map keys.
type ValueKey struct {
	kind ValueKind
	num  uint64
	str  string
}

func (v Value) int() int64    { return int64(v.num) }
func (v Value) real() float64 { return math.Float64frombits(v.num) }

// foldEqual compares two ASCII strings without regard to case.
func foldEqual(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// foldCompare compares two strings by their bytes in lower case, as strcasecmp does. The
// result is below, at or above 0.
func foldCompare(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
