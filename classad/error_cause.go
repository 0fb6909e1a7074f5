package classad

import (
	"math"
	"strconv"
)

// errorCause is the reason for which a value is ERROR. An ERROR stores its cause in
// fields that other types use for their values. The text is made only on demand, so
// errors cost nothing where it is not used.
type errorCause uint8

const (
	unknownCause errorCause = iota // the expression contains the literal error
	badOperands                    // of operator what[0], on types what[1] and what[2]
	badOperand                     // of a unary operator
	badCondition                   // of ?: or ifThenElse, of type what[0]
	dividedByZero
	tooLarge            // the result does not fit a real
	notANumber          // NaN or an infinity as an integer or a time
	badSubscript        // type what[0] takes no subscript, or none of type what[1]
	subscriptOutOfRange // subscript num of a list of off>>8 elements
	noAttributes        // type what[0] has no attributes
	noFunction          // no function has the name str
	wrongCount          // function str does not take num arguments
	// argument what[0] of function str has type what[1], or is a list with an element of
	// that type
	badArgument
	badElement
	// argument what[0] of function str is a string that it cannot use
	badText
	badPattern     // the pattern is wrong; str has the reason
	backReference  // the pattern has a back-reference
	lookAround     // the pattern has look-around or another construct that needs backtracking
	unmatchedGroup // the replacement names a group that did not match
	badExpression  // the text in eval() is wrong; str has the reason
	noRandomSource // random() is called without a source of random numbers
	tooManySteps
	tooDeep
	tooMuchText
	patternTooBig
	tooManyMatches
)

// errorFor returns ERROR with a cause and its numbers.
func errorFor(c errorCause, what ...uint8) Value {
	v := Value{kind: Error, off: int32(c)}
	for i, n := range what {
		v.num |= uint64(n) << (8 * i)
	}
	return v
}

// subscriptError returns ERROR for a subscript that a list of n elements does not have.
func subscriptError(n int, subscript int64) Value {
	return Value{kind: Error, off: int32(subscriptOutOfRange) | int32(min(n, 1<<23-1))<<8, num: uint64(subscript)}
}

// typeError returns ERROR for an operator on types that do not fit. An ERROR operand
// retains its own cause.
func typeError(op exprOperator, x, y Value) Value {
	switch {
	case x.kind == Error:
		return x
	case y.kind == Error:
		return y
	}
	return errorFor(badOperands, uint8(op), uint8(x.kind), uint8(y.kind))
}

// conditionError returns ERROR for a value that is no condition; an ERROR retains its
// cause.
func conditionError(v Value) Value {
	if v.kind == Error {
		return v
	}
	return errorFor(badCondition, uint8(v.kind))
}

// argumentError returns ERROR for the value of argument i of a function; an ERROR retains
// its cause.
func argumentError(i int, v Value) Value {
	if v.kind == Error {
		return v
	}
	return errorFor(badArgument, uint8(i), uint8(v.kind))
}

// numberError is argumentError for an argument that may be a number or a string with one.
func numberError(i int, v Value) Value {
	if v.kind == String {
		return errorFor(badText, uint8(i))
	}
	return argumentError(i, v)
}

// elementError returns ERROR for an element of argument i.
func elementError(i int, v Value) Value {
	if v.kind == Error {
		return v
	}
	return errorFor(badElement, uint8(i), uint8(v.kind))
}

// inFunction adds the name of the function that failed.
func (v Value) inFunction(function string) Value {
	if v.kind == Error && v.str == "" {
		switch errorCause(uint8(v.off)) {
		case badArgument, badElement, badText, notANumber:
			v.str = function
		}
	}
	return v
}

// Reason returns the cause of an ERROR, in a clause without a full stop. It is "" for
// other types and for the literal error. An ERROR that passed through operators and
// functions has the cause of the first. =?=, [Value.Identity] and printing ignore it.
func (v Value) Reason() string {
	if v.kind != Error {
		return ""
	}
	what := func(i int) uint8 { return uint8(v.num >> (8 * i)) }
	kind := func(i int) string { return withArticle(ValueKind(what(i))) }
	switch errorCause(uint8(v.off)) {
	case badOperands:
		op := exprOperator(what(0))
		return operators[op].old + " does not take " + kind(1) + " and " + kind(2) + operandTypes(op)
	case badOperand:
		op := exprOperator(what(0))
		return operators[op].old + " does not take " + kind(1) + operandTypes(op)
	case badCondition:
		return "a condition is " + kind(0) + ", not true, false or a number"
	case dividedByZero:
		return "division by zero"
	case tooLarge:
		return "the result is too large for a real"
	case notANumber:
		return functionClause(v.str, "what is infinite or not a number is no integer and no time")
	case badSubscript:
		return kind(0) + " has no element by " + kind(1) + "; lists take an integer and ads a string"
	case subscriptOutOfRange:
		return "a list of " + strconv.Itoa(int(v.off>>8)) + " elements has none at " + strconv.FormatInt(v.int(), 10) +
			"; the first is at 0"
	case noAttributes:
		return kind(0) + " has no attributes"
	case noFunction:
		return "there is no function " + v.str
	case wrongCount:
		return v.str + " does not take " + plural(v.int(), "argument") + argumentCount(findBuiltin(v.str))
	case badArgument:
		return v.str + ": argument " + strconv.Itoa(int(what(0))+1) + " is " + kind(1)
	case badElement:
		return v.str + ": the list in argument " + strconv.Itoa(int(what(0))+1) + " holds " + kind(1)
	case badText:
		return v.str + ": argument " + strconv.Itoa(int(what(0))+1) + " is not a text that it can read"
	case badPattern:
		return "the regular expression is wrong: " + v.str
	case backReference:
		return "regular expressions are RE2's, which have no back-references such as \\1; compare the parts with == " +
			"after taking them out with regexps()"
	case lookAround:
		return "regular expressions are RE2's, which have no look-around, atomic groups or possessive repetition; " +
			"join two regexp() with && or && !"
	case unmatchedGroup:
		return "the replacement names a group that the regular expression does not have or that did not match"
	case badExpression:
		return "eval: " + v.str
	case noRandomSource:
		return "random: this evaluation has no source of random numbers"
	}
	return v.boundReason()
}

// boundReason returns the text for an evaluation that exceeded one of its bounds.
func (v Value) boundReason() string {
	switch errorCause(uint8(v.off)) {
	case tooManySteps:
		return "the evaluation took too many steps; " + strconv.Itoa(MaxSteps) +
			" are allowed unless the caller says otherwise"
	case tooDeep:
		return "the evaluation went deeper than " + strconv.Itoa(maxNest) + " levels; does something ask for itself?"
	case tooMuchText:
		return "the evaluation made more than " + strconv.Itoa(maxText) + " bytes of strings and lists"
	case patternTooBig:
		return "the regular expression repeats too much: it has more than " + strconv.Itoa(maxInstructions) +
			" instructions"
	case tooManyMatches:
		return "the regular expression matches too often in so long a text"
	}
	return ""
}

func functionClause(name, text string) string {
	if name == "" {
		return text
	}
	return name + ": " + text
}

// withArticle returns the name of a type with an article.
func withArticle(k ValueKind) string {
	switch k {
	case Undefined:
		return "undefined"
	case Error:
		return "an error"
	case Integer:
		return "an integer"
	case AbsTime:
		return "an absolute time"
	case RelTime:
		return "a relative time"
	case AdValue:
		return "an ad"
	}
	return "a " + k.String()
}

// operandTypes returns the operand types that an operator takes, as text.
func operandTypes(op exprOperator) string {
	switch op {
	case opAnd, opOr, opNot:
		return ", but true, false and numbers"
	case opIs, opIsnt:
		return ", but everything except two lists or two ads"
	case opEqual, opNotEqual, opLess, opLessEqual, opGreater, opGreaterEqual:
		return ", but numbers, two strings or two times of a kind"
	case opAdd, opSubtract, opMultiply, opDivide:
		return ", but numbers and some times"
	}
	return ", but integers"
}

func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

// argumentCount returns how many arguments a function takes, as text.
func argumentCount(b builtinFunc) string {
	switch {
	case b.maxArgs == math.MaxInt:
		return ", but at least " + strconv.Itoa(b.minArgs)
	case b.minArgs == b.maxArgs:
		return ", but " + strconv.Itoa(b.minArgs)
	case b.minArgs+1 == b.maxArgs:
		return ", but " + strconv.Itoa(b.minArgs) + " or " + strconv.Itoa(b.maxArgs)
	}
	return ", but " + strconv.Itoa(b.minArgs) + " to " + strconv.Itoa(b.maxArgs)
}
