package classad

// Expr is an expression, immutable and safe for concurrent use. The zero Expr is UNDEFINED.
type Expr struct{ n node }

// node is one node of an expression's tree.
type node interface {
	eval(ev *evaluator, f *frame) Value
}

// String is the expression in ClassAd syntax, on one line. Parsing it gives the same expression.
func (e Expr) String() string { return string(appendExpr(nil, e, &newStyle)) }

// Literal is the value of an expression that is a plain literal: a string, a number, true, false, undefined, error or a time.
func (e Expr) Literal() (Value, bool) {
	if l, ok := e.n.(*literal); ok {
		return l.v, true
	}
	return Value{}, e.n == nil
}
