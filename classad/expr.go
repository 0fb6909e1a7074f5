package classad

// Expr is an expression, immutable and safe for concurrent use. The zero Expr is
// UNDEFINED.
type Expr struct{ n exprNode }

// exprNode is one node of an expression's tree. Call evaluator.eval, which checks the
// bounds, and not the node's own eval.
type exprNode interface {
	eval(ev *evaluator, f *nameScope) Value
}

// The kinds of nodes.
type (
	literalNode struct{ v Value }

	// attrRef is a name without a scope; rootRef is a name after a leading dot.
	attrRef struct {
		name  string
		hash  uint32
		scope scopeName
	}
	rootRef struct {
		name string
		hash uint32
	}

	// selectionNode is x.name; its scope field is set where x is a plain MY, TARGET and
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
	// parenNode is (x), a node of its own so that printing gives the text as it was
	// written.
	parenNode struct{ x exprNode }

	callNode struct {
		name string
		fn   builtinFunc // field call is nil for a function that does not exist
		args []Expr
		re   *regexPattern // compiled literal pattern; nil if the pattern is no literal
	}
	listNode struct{ elems []Expr }
	adNode   struct {
		ad   *Ad
		text string // see PrintedAd
	}

	// boundValue is a list or an ad with the scope in which it was evaluated. Only
	// evaluations make it.
	boundValue struct{ v Value }
)

// String returns the expression in ClassAd syntax, on one line. Parsing the text gives
// the same expression.
func (e Expr) String() string { return string(printStyle{exact: true}.expr(nil, e.n)) }

// Literal returns the value of an expression that is a single literal. Literals are
// strings, numbers, true, false, undefined and error.
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

// scopeName is a name with a meaning in the language itself.
type scopeName uint8

const (
	scopeNone scopeName = iota
	scopeMy
	scopeTarget
	scopeParent
	scopeRoot
	scopeTime
)

// scopeOf returns the meaning of a name. An attribute of the same name hides it.
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
