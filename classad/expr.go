package classad

// Expr is an expression, immutable and safe for concurrent use. The zero Expr is
// UNDEFINED.
type Expr struct{ n exprNode }

// exprNode is one node of an expression's tree. Evaluation goes through evaluator.eval,
// which keeps the bounds.
type exprNode interface {
	eval(ev *evaluator, f *nameScope) Value
}

// The kinds of nodes.
type (
	literalNode struct{ v Value }

	// attrRef is a name without a scope; rootRef one behind a leading dot.
	attrRef struct {
		name  string
		hash  uint32
		scope scopeName
	}
	rootRef struct {
		name string
		hash uint32
	}

	// selectionNode is x.name; the scope is that of x where x is a plain MY, TARGET and
	// so on.
	selectionNode struct {
		x     exprNode
		name  string
		hash  uint32
		scope scopeName
	}

	subscriptNode struct{ x, i exprNode } // x[i]
	unaryNode     struct {
		op exprOperator
		x  exprNode
	} // -x, +x, !x, ~x
	binaryNode struct {
		op   exprOperator
		x, y exprNode
	}
	elvisNode   struct{ x, y exprNode }       // x ?: y
	ternaryNode struct{ cond, x, y exprNode } // cond ? x : y
	parenNode   struct{ x exprNode }          // (x), kept so that printing gives what was written

	callNode struct {
		name string
		fn   builtinFunc // its fn is nil for a function that does not exist
		args []Expr
		re   *regexPattern // of a literal pattern, compiled once; nil where that is not so
	}
	listNode struct{ elems []Expr }
	adNode   struct{ ad *Ad }

	// boundValue is a list or an ad that keeps the scope where it was evaluated. It is
	// made by evaluation only.
	boundValue struct{ v Value }
)

// String is the expression in ClassAd syntax, on one line. Parsing it gives the same
// expression.
func (e Expr) String() string { return string(printStyle{exact: true}.expr(nil, e.n)) }

// Literal is the value of an expression that is a plain literal: a string, a number,
// true, false, undefined or error.
func (e Expr) Literal() (Value, bool) {
	switch n := e.n.(type) {
	case nil:
		return Value{}, true
	case *literalNode:
		return n.v, true
	case *parenNode:
		return Expr{n.x}.Literal()
	}
	return Value{}, false
}

// scopeName is a name that the language itself gives a meaning.
type scopeName uint8

const (
	scopeNone scopeName = iota
	scopeMy
	scopeTarget
	scopeParent
	scopeRoot
	scopeTime
)

// scopeOf is the meaning of a name, which any attribute of the same name hides.
func scopeOf(name string) scopeName {
	switch len(name) {
	case 2:
		if foldEqual(name, "my") {
			return scopeMy
		}
	case 4:
		if foldEqual(name, "self") {
			return scopeMy
		}
		if foldEqual(name, "root") {
			return scopeRoot
		}
	case 5:
		if foldEqual(name, "other") {
			return scopeTarget
		}
	case 6:
		if foldEqual(name, "target") {
			return scopeTarget
		}
		if foldEqual(name, "parent") {
			return scopeParent
		}
	case 8:
		if foldEqual(name, "toplevel") {
			return scopeRoot
		}
	case 11:
		if foldEqual(name, "currenttime") {
			return scopeTime
		}
	}
	return scopeNone
}
