package classad

// Expr is an expression, immutable and safe for concurrent use. The zero Expr is UNDEFINED.
type Expr struct{ n node }

// node is one node of an expression's tree. Evaluation goes through evaluator.eval, which keeps the bounds.
type node interface {
	eval(ev *evaluator, f *frame) Value
}

// The kinds of nodes.
type (
	literal struct{ v Value }

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

	// selection is x.name; the scope is that of x where x is a plain MY, TARGET and so on.
	selection struct {
		x     node
		name  string
		hash  uint32
		scope scopeName
	}

	index struct{ x, i node } // x[i]
	unary struct {
		op operator
		x  node
	} // -x, +x, !x, ~x
	binary struct {
		op   operator
		x, y node
	}
	elvis   struct{ x, y node }       // x ?: y
	ternary struct{ cond, x, y node } // cond ? x : y
	paren   struct{ x node }          // (x), kept so that printing gives what was written

	callNode struct {
		name string
		fn   builtin // its fn is nil for a function that does not exist
		args []Expr
		re   *pattern // of a literal pattern, compiled once; nil where that is not so
	}
	listNode struct{ elems []Expr }
	adNode   struct{ ad *Ad }

	// fixed is a list or an ad that keeps the scope where it was evaluated. It is made by evaluation only.
	fixed struct{ v Value }
)

// String is the expression in ClassAd syntax, on one line. Parsing it gives the same expression.
func (e Expr) String() string { return string(style{exact: true}.expr(nil, e.n)) }

// Literal is the value of an expression that is a plain literal: a string, a number, true, false, undefined or error.
func (e Expr) Literal() (Value, bool) {
	switch n := e.n.(type) {
	case nil:
		return Value{}, true
	case *literal:
		return n.v, true
	case *paren:
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
