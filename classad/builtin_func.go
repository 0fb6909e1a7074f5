package classad

import "math"

// builtinFunc is a function of the language: how many arguments it takes, and what it
// does. A call with another number is ERROR.
type builtinFunc struct {
	minArgs, maxArgs int
	call             func(builtinCall) Value
}

// builtinCall is one call of a function. Arguments are evaluated when they are asked for.
type builtinCall struct {
	evaluator *evaluator
	scope     *nameScope
	args      []Expr
	re        *regexPattern // the compiled first argument, where it was compiled beforehand
}

// anyNumber is the bound of a function that takes any number of arguments.
const anyNumber = math.MaxInt

// arg evaluates argument i; one that was not given is UNDEFINED.
func (c builtinCall) arg(i int) Value {
	if i >= len(c.args) {
		return Value{}
	}
	return c.evaluator.chargeText(c.evaluator.eval(c.args[i].n, c.scope))
}

// stringArg is the text of a value, within the bounds of the evaluation.
func (c builtinCall) stringArg(v Value) string {
	s := plainText(v)
	c.evaluator.takeText(len(s))
	return s
}

// elements evaluates the elements of a list one after another, until yield says no.
func (c builtinCall) elements(list Value, yield func(Value) bool) {
	c.evaluator.stepsLeft -= len(list.comp.elems)
	for _, e := range list.comp.elems {
		if !yield(c.evaluator.chargeText(c.evaluator.element(list, e.n, c.scope))) {
			return
		}
	}
}

// text makes a String within the bounds of the evaluation.
func (c builtinCall) text(s string) Value {
	if !c.evaluator.takeText(len(s)) {
		return ErrorValue()
	}
	return StringValue(s)
}

// list makes a List of Strings within the bounds of the evaluation.
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

// findBuiltin is the function of a name, whatever its case; its call is nil if there is
// none.
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
