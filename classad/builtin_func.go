package classad

import "math"

// builtinFunc is a function of the language. It has the allowed numbers of arguments and
// the code. A call with another number of arguments is ERROR.
type builtinFunc struct {
	minArgs, maxArgs int
	call             func(builtinCall) Value
}

// builtinCall is one call of a function. Arguments are evaluated on demand.
type builtinCall struct {
	evaluator *evaluator
	scope     *nameScope
	args      []Expr
	re        *regexPattern // the compiled first argument, if it was compiled in advance
}

// anyNumber is the maximum of a function that takes any number of arguments.
const anyNumber = math.MaxInt

// arg evaluates argument i; a missing one is UNDEFINED.
func (c builtinCall) arg(i int) Value {
	if i >= len(c.args) {
		return Value{}
	}
	return c.evaluator.chargeText(c.evaluator.eval(c.args[i].n, c.scope))
}

// stringArg returns the text of a value, within the bounds of the evaluation.
func (c builtinCall) stringArg(v Value) string {
	s := plainText(v)
	c.evaluator.takeText(len(s))
	return s
}

// elements evaluates the elements of a list in order, until yield returns false.
func (c builtinCall) elements(list Value, yield func(Value) bool) {
	c.evaluator.stepsLeft -= len(list.comp.elems)
	for _, e := range list.comp.elems {
		if !yield(c.evaluator.chargeText(c.evaluator.element(list, e.n, c.scope))) {
			return
		}
	}
}

// text returns a String within the bounds of the evaluation.
func (c builtinCall) text(s string) Value {
	if !c.evaluator.takeText(len(s)) {
		return ErrorValue()
	}
	return StringValue(s)
}

// list returns a List of Strings within the bounds of the evaluation.
func (c builtinCall) list(texts ...string) Value {
	values := make([]Value, len(texts))
	for i, s := range texts {
		values[i] = StringValue(s)
	}
	if !c.evaluator.takeText(64 * len(texts)) {
		return ErrorValue()
	}
	return ListValue(values...)
}

// findBuiltin returns the function with a name in any case. Its field call is nil if
// there is none.
func findBuiltin(name string) builtinFunc {
	var buf [32]byte
	if len(name) > len(buf) {
		return builtinFunc{}
	}
	for i := range len(name) {
		buf[i] = lower(name[i])
	}
	key := string(buf[:len(name)])
	for _, find := range [...]func(string) builtinFunc{typeBuiltin, numberBuiltin, stringBuiltin, listBuiltin,
		timeBuiltin,
		stringListBuiltin, patternBuiltin, versionBuiltin, contextBuiltin, environmentBuiltin} {
		if b := find(key); b.call != nil {
			return b
		}
	}
	return builtinFunc{}
}
