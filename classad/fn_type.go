package classad

import "math"

// typeBuiltin returns a type test, a conversion, or ifThenElse.
func typeBuiltin(name string) builtinFunc {
	switch name {
	case "isundefined":
		return isKind(Undefined)
	case "iserror":
		return isKind(Error)
	case "isstring":
		return isKind(String)
	case "isinteger":
		return isKind(Integer)
	case "isreal":
		return isKind(Real)
	case "isboolean":
		return isKind(Boolean)
	case "islist":
		return isKind(List)
	case "isclassad":
		return isKind(AdValue)
	case "isabstime":
		return isKind(AbsTime)
	case "isreltime":
		return isKind(RelTime)
	case "ifthenelse":
		return builtinFunc{3, 3, fnIfThenElse}
	case "int":
		return builtinFunc{1, 1, func(c builtinCall) Value { return toInt(c.arg(0)) }}
	case "real":
		return builtinFunc{1, 1, func(c builtinCall) Value { return toReal(c.arg(0)) }}
	case "string":
		return builtinFunc{1, 1, fnString}
	case "bool":
		return builtinFunc{1, 1, func(c builtinCall) Value { return toBool(c.arg(0)) }}
	}
	return builtinFunc{}
}

func isKind(kind ValueKind) builtinFunc {
	return builtinFunc{1, 1, func(c builtinCall) Value { return BoolValue(c.arg(0).kind == kind) }}
}

// fnIfThenElse evaluates only the branch that the condition selects.
func fnIfThenElse(c builtinCall) Value {
	cond := c.arg(0)
	if cond.kind == Undefined {
		return cond
	}
	switch truth, ok := cond.Truth(); {
	case !ok:
		return conditionError(cond)
	case truth:
		return c.arg(1)
	}
	return c.arg(2)
}

func toInt(v Value) Value {
	switch v.kind {
	case Undefined, Integer:
		return v
	case Boolean, AbsTime:
		return IntValue(v.int())
	case Real, RelTime:
		return wholeValue(v.real())
	case String:
		if n, ok := leadingInteger(v.str); ok {
			return IntValue(n)
		}
		if f, n := strtod(v.str); n > 0 {
			return wholeValue(f)
		}
	}
	return numberError(0, v)
}

func toReal(v Value) Value {
	switch v.kind {
	case Undefined, Real:
		return v
	case Boolean, Integer, AbsTime:
		return RealValue(float64(v.int()))
	case RelTime:
		return RealValue(math.Trunc(v.real()) + 0)
	case String:
		if f, n := strtod(v.str); n > 0 {
			return RealValue(f)
		}
	}
	return numberError(0, v)
}

// toBool reads "true" and "false"; any other string is UNDEFINED.
func toBool(v Value) Value {
	if truth, ok := v.Truth(); ok {
		return BoolValue(truth)
	}
	switch {
	case v.kind == Undefined:
		return v
	case v.kind == RelTime:
		return BoolValue(math.Abs(v.real()) >= 1)
	case v.kind != String:
		return argumentError(0, v)
	case foldEqual(v.str, "true"):
		return BoolValue(true)
	case foldEqual(v.str, "false"):
		return BoolValue(false)
	}
	return UndefinedValue()
}

// wholeValue returns f without its fraction. NaN and the infinities are ERROR. A number
// that does not fit 64 bits becomes the least integer, which is the result of the
// instruction on upstream's processors.
func wholeValue(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return errorFor(notANumber)
	}
	if n, ok := realToInt(f); ok {
		return IntValue(n)
	}
	return IntValue(math.MinInt64)
}

// realToInt drops the fraction; ok is false if the result does not fit 64 bits.
func realToInt(f float64) (n int64, ok bool) {
	if !(f >= math.MinInt64 && f < math.MaxInt64) {
		return 0, false
	}
	return int64(f), true
}

func fnString(c builtinCall) Value {
	v := c.arg(0)
	if v.kind == Undefined || v.kind == Error {
		return v
	}
	return c.text(plainText(v))
}

// plainText returns a string as it is, a time without its function, and any other value
// in ClassAd syntax.
func plainText(v Value) string {
	switch v.kind {
	case String:
		return v.str
	case AbsTime:
		return string(appendAbsTime(nil, v.int(), int(v.off)))
	case RelTime:
		return string(appendRelTime(nil, math.Trunc(v.real()), false))
	}
	return v.String()
}
