package classad

import "math"

// builtin is a function of the language: how many arguments it takes, and what it does. A call with another number is ERROR.
type builtin struct {
	least, most int
	call        func(call) Value
}

// call is one call of a function. Arguments are evaluated when they are asked for.
type call struct {
	ev   *evaluator
	f    *frame
	args []Expr
	re   *pattern // the compiled first argument, where it was compiled beforehand
}

// many is the bound of a function that takes any number of arguments.
const many = math.MaxInt

// arg evaluates argument i; one that was not given is UNDEFINED.
func (c call) arg(i int) Value {
	if i >= len(c.args) {
		return Value{}
	}
	return c.ev.charge(c.ev.eval(c.args[i].n, c.f))
}

// plain is the text of a value, within the bounds of the evaluation.
func (c call) plain(v Value) string {
	s := plainText(v)
	c.ev.spend(len(s))
	return s
}

// elements evaluates the elements of a list one after another, until yield says no.
func (c call) elements(list Value, yield func(Value) bool) {
	c.ev.steps -= len(list.comp.elems)
	for _, e := range list.comp.elems {
		if !yield(c.ev.charge(c.ev.element(list, e.n, c.f))) {
			return
		}
	}
}

// text makes a String within the bounds of the evaluation.
func (c call) text(s string) Value {
	if !c.ev.spend(len(s)) {
		return ErrorValue()
	}
	return StringValue(s)
}

// list makes a List of Strings within the bounds of the evaluation.
func (c call) list(texts ...string) Value {
	values := make([]Value, len(texts))
	for i, s := range texts {
		values[i] = StringValue(s)
	}
	if !c.ev.spend(64 * len(texts)) {
		return ErrorValue()
	}
	return ListValue(values...)
}

// findBuiltin is the function of a name, whatever its case; its call is nil if there is none.
func findBuiltin(name string) builtin {
	var buf [32]byte
	if len(name) > len(buf) {
		return builtin{}
	}
	for i := range len(name) {
		buf[i] = lower(name[i])
	}
	key := string(buf[:len(name)])
	for _, find := range [...]func(string) builtin{typeBuiltin, numberBuiltin, stringBuiltin, listBuiltin, timeBuiltin,
		stringListBuiltin, patternBuiltin, versionBuiltin, contextBuiltin, environmentBuiltin} {
		if b := find(key); b.call != nil {
			return b
		}
	}
	return builtin{}
}
