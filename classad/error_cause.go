package classad

import (
	"math"
	"strconv"
)

// errorCause is why a value is ERROR. An ERROR keeps its cause in fields that other types
// use, and the sentence is made of it only when somebody asks, so that errors cost
// nothing where nobody does.
type errorCause uint8

const (
	unknownCause        errorCause = iota // somebody wrote error
	badOperands                           // of an operator, which is what[0], of types what[1] and what[2]
	badOperand                            // of a unary operator
	badCondition                          // of ? : or ifThenElse, of type what[0]
	dividedByZero                         //
	tooLarge                              // for a real
	notANumber                            // NaN or infinite where an integer or a time is asked for
	badSubscript                          // of a type that takes none: what[0] by what[1]
	subscriptOutOfRange                   // subscript num of a list of off>>8 elements
	noAttributes                          // what[0] has none
	noFunction                            // named str
	wrongCount                            // of arguments: num to the function named str
	// what[0] of the function named str is of type what[1], or of what[1] in a list
	badArgument
	badElement //
	// argument what[0] of the function named str is a string that is not what it takes
	badText
	badPattern     // for a reason that str gives
	backReference  // a pattern with a back-reference
	lookAround     // a pattern with look-around or something else that only backtracking gives
	unmatchedGroup // a replacement that names a group which did not match
	badExpression  // in eval(), for a reason that str gives
	noRandomSource // random() without a source
	tooManySteps   //
	tooDeep        //
	tooMuchText    //
	patternTooBig  //
	tooManyMatches //
)

// errorFor is ERROR for a cause, which the numbers describe.
func errorFor(c errorCause, what ...uint8) Value {
	v := Value{kind: Error, off: int32(c)}
	for i, n := range what {
		v.num |= uint64(n) << (8 * i)
	}
	return v
}

// subscriptError is ERROR for a subscript that a list of n elements does not have.
func subscriptError(n int, subscript int64) Value {
	return Value{kind: Error, off: int32(subscriptOutOfRange) | int32(min(n, 1<<23-1))<<8, num: uint64(subscript)}
}

// typeError is ERROR for an operator on types that do not fit. ERROR operands keep their
// own cause.
func typeError(op exprOperator, x, y Value) Value {
	switch {
	case x.kind == Error:
		return x
	case y.kind == Error:
		return y
	}
	return errorFor(badOperands, uint8(op), uint8(x.kind), uint8(y.kind))
}

// conditionError is ERROR for a value that is no condition, or its own error.
func conditionError(v Value) Value {
	if v.kind == Error {
		return v
	}
	return errorFor(badCondition, uint8(v.kind))
}

// argumentError is ERROR for the value of argument i of a function, or its own error.
func argumentError(i int, v Value) Value {
	if v.kind == Error {
		return v
	}
	return errorFor(badArgument, uint8(i), uint8(v.kind))
}

// numberError is wrong where a string could be a number.
func numberError(i int, v Value) Value {
	if v.kind == String {
		return errorFor(badText, uint8(i))
	}
	return argumentError(i, v)
}

// elementError is wrong for an element of argument i.
func elementError(i int, v Value) Value {
	if v.kind == Error {
		return v
	}
	return errorFor(badElement, uint8(i), uint8(v.kind))
}

// inFunction names the function that failed.
func (v Value) inFunction(function string) Value {
	if v.kind == Error && v.str == "" {
		switch errorCause(uint8(v.off)) {
		case badArgument, badElement, badText, notANumber:
			v.str = function
		}
	}
	return v
}

// Reason says why a value is ERROR, in a clause without a full stop; it is "" for other
// types and for an ERROR that somebody wrote. Where an ERROR went through operators and
// functions it is the cause of the first. =?=, [Value.Identity] and printing do not look
// at it.
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

// boundReason is the sentence of an evaluation that went beyond one of its bounds.
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

// withArticle is a type in a sentence.
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

// operandTypes is what an operator does take.
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

// argumentCount is how many arguments a function takes.
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
