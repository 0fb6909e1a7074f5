package classad

import (
	"math"
	"strconv"
	"strings"
)

// numberBuiltin returns a function on numbers.
func numberBuiltin(name string) builtinFunc {
	switch name {
	case "floor":
		return rounding(math.Floor)
	case "ceil", "ceiling":
		return rounding(math.Ceil)
	case "round":
		return rounding(math.RoundToEven)
	case "pow":
		return builtinFunc{2, 2, fnPow}
	case "quantize":
		return builtinFunc{2, 2, fnQuantize}
	case "random":
		return builtinFunc{0, 1, fnRandom}
	}
	return builtinFunc{}
}

// strtod reads the number at the beginning of a string, like C's strtod(3), and returns
// its length. It accepts hexadecimal numbers, infinities and NaN.
func strtod(s string) (f float64, length int) {
	i := 0
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	start := i
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for _, word := range [...]string{"infinity", "inf", "nan"} {
		if len(s)-i >= len(word) && foldEqual(s[i:i+len(word)], word) {
			f, _ = strconv.ParseFloat(word, 64)
			if s[start] == '-' {
				f = -f
			}
			return f, i + len(word)
		}
	}
	hex := len(s)-i > 2 && s[i] == '0' && lower(s[i+1]) == 'x'
	if hex {
		i += 2
	}
	end, n := scanMantissa(s, i, hex)
	if n == 0 {
		if !hex {
			return 0, 0
		}
		return 0, i - 1 // the 0 before the x
	}
	text := s[start:end]
	if exp := scanExponent(s, end, hex); exp > end {
		end = exp
		text = s[start:end]
	} else if hex {
		text += "p0"
	}
	f, _ = strconv.ParseFloat(text, 64)
	return f, end
}

// scanMantissa skips digits with at most one point from i on, and counts the digits.
func scanMantissa(s string, i int, hex bool) (end, digits int) {
	point := false
	for ; i < len(s); i++ {
		switch c := lower(s[i]); {
		case isDigit(c) || hex && 'a' <= c && c <= 'f':
			digits++
		case c == '.' && !point:
			point = true
		default:
			return i, digits
		}
	}
	return i, digits
}

// scanExponent returns the end of an exponent at i, or i if there is none.
func scanExponent(s string, i int, hex bool) int {
	mark := byte('e')
	if hex {
		mark = 'p'
	}
	if i >= len(s) || lower(s[i]) != mark {
		return i
	}
	end := i + 1
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	first := end
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	if end == first {
		return i
	}
	return end
}

// leadingInteger returns the integer at the beginning of a string, if it is a plain one
// that fits.
func leadingInteger(s string) (int64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	end := 0
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	if end < len(s) && (s[end] == '.' || lower(s[end]) == 'e' || lower(s[end]) == 'x') {
		return 0, false
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	return n, err == nil
}

// rounding returns a function from a real to an integer. An integer stays as it is.
func rounding(round func(float64) float64) builtinFunc {
	return builtinFunc{1, 1, func(c builtinCall) Value {
		v := c.arg(0)
		if v.kind == Integer {
			return v
		}
		f := toReal(v)
		if f.kind != Real {
			return numberError(0, v)
		}
		return wholeValue(round(f.real()))
	}}
}

// fnPow returns an integer for integers with an exponent that is not negative, else a
// real. Like upstream, it rounds integers by adding a half and dropping the fraction,
// which makes negative results 1 too large: pow(-2, 3) is -7, and pow(-2.0, 3) is -8.0.
func fnPow(c builtinCall) Value {
	base, exp := c.arg(0), c.arg(1)
	b, e := toReal(base), toReal(exp)
	switch {
	case b.kind != Real:
		return numberError(0, base)
	case e.kind != Real:
		return numberError(1, exp)
	}
	f := exactPower(b.real(), e.real())
	if base.kind == Integer && exp.kind == Integer && exp.int() >= 0 {
		return wholeValue(math.Trunc(f + 0.5))
	}
	return RealValue(f)
}

// fnQuantize rounds up to a multiple of a number, or to the first sufficient number of a
// list.
func fnQuantize(c builtinCall) Value {
	v, unit := c.arg(0), c.arg(1)
	x := toReal(v)
	if x.kind != Real {
		return numberError(0, v)
	}
	if unit.kind != List {
		return roundUpTo(v, x.real(), unit)
	}
	last, found := RealValue(0), false // an empty list rounds nothing
	c.elements(unit, func(elem Value) bool {
		f := toReal(elem)
		last, found = elem, f.kind != Real || f.real() >= x.real()
		return !found
	})
	switch {
	case toReal(last).kind != Real:
		return elementError(1, last)
	case found:
		return last
	}
	return roundUpTo(v, x.real(), last)
}

func roundUpTo(v Value, x float64, unit Value) Value {
	r := toReal(unit)
	u := r.real()
	switch {
	case r.kind != Real:
		return numberError(1, unit)
	case math.Abs(u) <= 1e-8 && unit.kind != Integer || u == 0:
		return v
	case v.kind == Integer && unit.kind == Integer:
		// Upstream's formula: it rounds towards zero before it multiplies, even negative
		// numbers.
		n, d := v.int(), unit.int()
		return IntValue((n + d - 1) / d * d)
	}
	return RealValue(math.Ceil(x/u) * u)
}

// fnRandom returns a real in [0, 1), or a number below its argument and of its type. The
// argument must be above 0.
func fnRandom(c builtinCall) Value {
	c.evaluator.impure = true
	if c.evaluator.env == nil || c.evaluator.env.Random == nil {
		return errorFor(noRandomSource)
	}
	r := c.evaluator.env.Random()
	if len(c.args) == 0 {
		return RealValue(r)
	}
	v := c.arg(0)
	switch {
	case v.kind == Integer && v.int() > 0:
		return IntValue(min(int64(r*float64(v.int())), v.int()-1))
	case v.kind == Real && v.real() > 0:
		return RealValue(r * v.real())
	case v.kind == Integer || v.kind == Real:
		return errorFor(badText, 0)
	}
	return argumentError(0, v)
}
