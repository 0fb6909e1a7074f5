package submit

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost"
	"github.com/zclconf/go-cty/cty"
)

// readEnvironment reads getenv, which takes variables of the submitter along, and environment, which wins over it.
func (b *builder) readEnvironment() {
	values := map[string]text{}
	b.readGetenv(values)
	if a, ok := b.attr("environment", b.roots()...); ok {
		set, ok := b.textMap(a.Expr, "environment")
		if !ok {
			return
		}
		for name, t := range set {
			if !envName.fits(name) {
				b.fail(t.at, fmt.Sprintf("%q cannot be the name of an environment variable", shorten(name)), "A name is made of letters, digits and _, and does not begin with a digit.")
				continue
			}
			values[name] = t
		}
	}
	list := make([]string, 0, len(values))
	for _, name := range sortedKeys(values) {
		list = append(list, name+"="+values[name].ad())
	}
	if len(list) > 0 {
		b.ad.SetStrings(roost.AttrEnvironment, list)
	}
}

func (b *builder) readGetenv(values map[string]text) {
	v, at, ok := b.same("getenv")
	if !ok {
		return
	}
	have := map[string]string{}
	for _, entry := range b.p.opts.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			have[name] = value
		}
	}
	if v.Type() == cty.Bool {
		for name, value := range have {
			if v.True() && firstInvalid([]byte(value)) < 0 && envName.fits(name) {
				values[name] = fixedText(value, at)
			}
		}
		return
	}
	names, ok := b.listOf(v, at, "getenv")
	if !ok {
		return
	}
	for _, name := range names {
		value, there := have[name]
		if !there {
			b.fail(at, fmt.Sprintf("your environment has no variable %q", shorten(name)), "getenv takes variables along that are set where the job is submitted. Set it, or write its value: environment = { "+shorten(name)+" = \"…\" }."+offer(name, sortedKeys(have)))
			continue
		}
		values[name] = fixedText(value, at)
	}
}

// textMap reads an expression that gives a map of texts.
func (b *builder) textMap(expr hclsyntax.Expression, what string) (map[string]text, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return b.textMap(e.Expression, what)
	case *hclsyntax.ObjectConsExpr:
		return b.writtenMap(e, what)
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "merge" && !e.ExpandFinal && b.p.perTask(e) {
			all := map[string]text{}
			for _, x := range e.Args {
				part, ok := b.textMap(x, what)
				if !ok {
					return nil, false
				}
				for name, t := range part {
					all[name] = t
				}
			}
			return all, true
		}
	}
	out := map[string]text{}
	if !b.p.perTask(expr) {
		v, ok := b.p.eval(expr, b.p.root)
		if !ok || v.IsNull() {
			return nil, false
		}
		strs, ok := b.mapOf(v, expr.Range(), what)
		for name, s := range strs {
			out[name] = fixedText(s, expr.Range())
		}
		return out, ok
	}
	return b.computeMap(expr, what)
}

// writtenMap reads a map that is written out, of which each value is taken apart on its own.
func (b *builder) writtenMap(e *hclsyntax.ObjectConsExpr, what string) (map[string]text, bool) {
	out, all := map[string]text{}, true
	for _, item := range e.Items {
		if b.p.perTask(item.KeyExpr) {
			b.fail(item.KeyExpr.Range(), "a name in "+what+" cannot differ between tasks", "Let the value differ instead.")
			return nil, false
		}
		key, ok := b.p.eval(item.KeyExpr, b.p.root)
		if !ok {
			return nil, false
		}
		name, ok := b.textOf(key, item.KeyExpr.Range(), "a name in "+what)
		if !ok {
			return nil, false
		}
		if _, twice := out[name]; twice {
			b.fail(item.KeyExpr.Range(), fmt.Sprintf("%q is set twice in %s", shorten(name), what), "Only one value can be meant. Remove one of the two.")
			all = false
			continue
		}
		t, ok := b.text(item.ValueExpr, "a value of "+what)
		t.at = item.KeyExpr.Range()
		out[name], all = t, all && ok
	}
	return out, all
}

func (b *builder) computeMap(expr hclsyntax.Expression, what string) (map[string]text, bool) {
	columns := map[string][]string{}
	ok := b.forEachTask(expr, func(i int, v cty.Value) bool {
		m, ok := b.mapOf(v, expr.Range(), what)
		if !ok {
			return false
		}
		for name, s := range m {
			if len(columns[name]) != i {
				m = nil
				break
			}
			columns[name] = append(columns[name], s)
		}
		if len(m) != len(columns) {
			b.fail(expr.Range(), what+" has to have the same names for all tasks", fmt.Sprintf("The names for task %d are others than for the tasks before. Give the missing ones an empty value.", i))
			return false
		}
		return true
	})
	if !ok {
		return nil, false
	}
	out := map[string]text{}
	for _, name := range sortedKeys(columns) {
		out[name] = text{[]piece{{column: b.addColumn(name, "", columns[name])}}, expr.Range()}
	}
	return out, true
}

func (b *builder) mapOf(v cty.Value, at hcl.Range, what string) (map[string]string, bool) {
	if ty := v.Type(); v.IsNull() || !(ty.IsMapType() || ty.IsObjectType()) {
		b.fail(at, what+" has to be a map", fmt.Sprintf("It is %s. Write a map in braces: %s = { NAME = \"value\" }.", describe(v), what))
		return nil, false
	}
	out := make(map[string]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		s, ok := b.textOf(value, at, fmt.Sprintf("%s of %s", key.AsString(), what))
		if !ok {
			return nil, false
		}
		out[key.AsString()] = s
	}
	return out, true
}
