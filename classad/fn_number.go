package classad

import (
	"math"
	"strconv"
	"strings"
)

// numberBuiltin are the functions of numbers.
func numberBuiltin(name string) builtin {
	switch name {
	case "floor":
		return rounding(math.Floor)
	case "ceil", "ceiling":
		return rounding(math.Ceil)
	case "round":
		return rounding(math.RoundToEven)
	case "pow":
		return builtin{2, 2, fnPow}
	case "quantize":
		return builtin{2, 2, fnQuantize}
	case "random":
		return builtin{0, 1, fnRandom}
	}
	return builtin{}
}

// leadingNumber is the number that a string starts with, as C's strtod reads it.
func leadingNumber(s string) (Value, bool) {
	s = strings.TrimLeft(s, " \t\n\r\v\f")
	end, point, digits := 0, false, 0
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	for ; end < len(s); end++ {
		if c := s[end]; c == '.' && !point {
			point = true
		} else if isDigit(c) {
			digits++
		} else {
			break
		}
	}
	if digits == 0 {
		return Value{}, false
	}
	exp := end
	if exp < len(s) && (s[exp] == 'e' || s[exp] == 'E') {
		if exp++; exp < len(s) && (s[exp] == '-' || s[exp] == '+') {
			exp++
		}
		start := exp
		for exp < len(s) && isDigit(s[exp]) {
			exp++
		}
		if exp > start {
			end, point = exp, true
		}
	}
	if !point {
		if n, err := strconv.ParseInt(s[:end], 10, 64); err == nil {
			return IntValue(n), true
		}
	}
	f, _ := strconv.ParseFloat(s[:end], 64)
	return RealValue(f), true
}

// rounding is a function from a real to an integer. An integer stays as it is.
func rounding(round func(float64) float64) builtin {
	return builtin{1, 1, func(c call) Value {
		v := c.arg(0)
		if v.kind == Undefined {
			return ErrorValue()
		}
		if v.kind == Integer {
			return v
		}
		f := toReal(v)
		if f.kind != Real {
			return ErrorValue()
		}
		if n, ok := realToInt(round(f.real())); ok {
			return IntValue(n)
		}
		return ErrorValue()
	}}
}

// fnPow is an integer for integers with an exponent that is not negative, as far as it fits, and else a real.
func fnPow(c call) Value {
	base, exp := c.arg(0), c.arg(1)
	b, e := toReal(base), toReal(exp)
	if b.kind != Real || e.kind != Real {
		return ErrorValue()
	}
	f := math.Pow(b.real(), e.real())
	if base.kind == Integer && exp.kind == Integer && exp.int() >= 0 {
		if n, ok := realToInt(f); ok {
			return IntValue(n)
		}
	}
	return RealValue(f)
}

// fnQuantize rounds up to a multiple of a number, or to the first number of a list that is not less.
func fnQuantize(c call) Value {
	v, unit := c.arg(0), c.arg(1)
	x := toReal(v)
	if x.kind != Real {
		return ErrorValue()
	}
	if unit.kind == List {
		return c.quantizeList(v, x.real(), unit)
	}
	return quantized(v, x.real(), unit)
}

func (c call) quantizeList(v Value, x float64, list Value) Value {
	last, found := ErrorValue(), false
	c.elements(list, func(elem Value) bool {
		last = elem
		if f, ok := elem.Number(); !ok || f >= x {
			found = true
			return false
		}
		return true
	})
	if _, ok := last.Number(); !ok {
		return ErrorValue()
	}
	if found {
		return last
	}
	return quantized(v, x, last)
}

func quantized(v Value, x float64, unit Value) Value {
	r := toReal(unit)
	u := r.real()
	switch {
	case r.kind != Real:
		return ErrorValue()
	case u == 0:
		return v
	case v.kind == Integer && unit.kind == Integer:
		// Upstream's own formula: it rounds towards zero before it multiplies, also for negative numbers.
		n, d := v.int(), unit.int()
		return IntValue((n + d - 1) / d * d)
	}
	return RealValue(math.Ceil(x/u) * u)
}

// fnRandom is a real in [0, 1), or a number of the argument's type below it.
func fnRandom(c call) Value {
	c.ev.strays = true
	if c.ev.env == nil || c.ev.env.Random == nil {
		return ErrorValue()
	}
	r := c.ev.env.Random()
	if len(c.args) == 0 {
		return RealValue(r)
	}
	switch v := c.arg(0); v.kind {
	case Integer:
		if v.int() > 0 {
			return IntValue(min(int64(r*float64(v.int())), v.int()-1))
		}
	case Real:
		return RealValue(r * v.real())
	case Undefined:
		return v
	}
	return ErrorValue()
}
