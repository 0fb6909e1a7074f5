package classad

// exprOperator is an operator of the language. The binary ones come first.
type exprOperator uint8

const (
	opNone exprOperator = iota
	opOr
	opAnd
	opBitOr
	opBitXor
	opBitAnd
	opEqual
	opNotEqual
	opIs
	opIsnt
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opShiftLeft
	opShiftRight
	opShiftRightLogical
	opAdd
	opSubtract
	opMultiply
	opDivide
	opModulo
	opNot
	opComplement
)

// Levels of precedence, from loosest to tightest (operators.cpp, PrecedenceLevel).
const (
	levelTernary = 0
	levelUnary   = 11
	levelPostfix = 12
	levelAtom    = 13
)

// operators lists the spelling of each operator in new and old syntax, and its level.
var operators = [...]struct {
	text, old string
	level     int8
}{
	opOr:                {"||", "||", 1},
	opAnd:               {"&&", "&&", 2},
	opBitOr:             {"|", "|", 3},
	opBitXor:            {"^", "^", 4},
	opBitAnd:            {"&", "&", 5},
	opEqual:             {"==", "==", 6},
	opNotEqual:          {"!=", "!=", 6},
	opIs:                {"is", "=?=", 6},
	opIsnt:              {"isnt", "=!=", 6},
	opLess:              {"<", "<", 7},
	opLessEqual:         {"<=", "<=", 7},
	opGreater:           {">", ">", 7},
	opGreaterEqual:      {">=", ">=", 7},
	opShiftLeft:         {"<<", "<<", 8},
	opShiftRight:        {">>", ">>", 8},
	opShiftRightLogical: {">>>", ">>>", 8},
	opAdd:               {"+", "+", 9},
	opSubtract:          {"-", "-", 9},
	opMultiply:          {"*", "*", 10},
	opDivide:            {"/", "/", 10},
	opModulo:            {"%", "%", 10},
	opNot:               {"!", "!", levelUnary},
	opComplement:        {"~", "~", levelUnary},
}

// operatorOf returns the operator with a spelling, or opNone.
func operatorOf(text string) exprOperator {
	switch text {
	case "||":
		return opOr
	case "&&":
		return opAnd
	case "|":
		return opBitOr
	case "^":
		return opBitXor
	case "&":
		return opBitAnd
	case "==":
		return opEqual
	case "!=":
		return opNotEqual
	case "=?=":
		return opIs
	case "=!=":
		return opIsnt
	case "<":
		return opLess
	case "<=":
		return opLessEqual
	case ">":
		return opGreater
	case ">=":
		return opGreaterEqual
	case "<<":
		return opShiftLeft
	case ">>":
		return opShiftRight
	case ">>>":
		return opShiftRightLogical
	case "+":
		return opAdd
	case "-":
		return opSubtract
	case "*":
		return opMultiply
	case "/":
		return opDivide
	case "%":
		return opModulo
	case "!":
		return opNot
	case "~":
		return opComplement
	}
	return opNone
}
