package submit

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// readEnvironment reads getenv, which copies variables of the submitter, and environment,
// which overrides it.
func (b programReader) readEnvironment() {
	values := map[string]taskText{}
	b.readGetenv(values)
	if a, ok := b.attribute("environment", b.taskReader().taskRoots("port")...); ok {
		set, ok := b.textMap(a.Expr, "environment")
		if !ok {
			return
		}
		for name, t := range set {
			if !envName.matches(name) {
				b.reportProblem(t.sourceRange, fmt.Sprintf("%q cannot be the name of an environment variable",
					truncateText(name)), "A name is made of letters, digits and _, and does not begin with a digit.")
				continue
			}
			values[name] = t
		}
	}
	list := make([]string, 0, len(values))
	for _, name := range sortedKeys(values) {
		list = append(list, name+"="+values[name].adText())
	}
	if len(list) > 0 {
		b.ad.SetStrings(roost.AttrEnvironment, list)
	}
}

func (b programReader) readGetenv(values map[string]taskText) {
	v, at, ok := b.constantValue("getenv")
	if !ok {
		return
	}
	have := map[string]string{}
	for _, entry := range b.parser.options.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			have[name] = value
		}
	}
	if v.Type() == cty.Bool {
		for name, value := range have {
			if v.True() && firstInvalidByte([]byte(value)) < 0 && envName.matches(name) {
				values[name] = fixedText(value, at)
			}
		}
		return
	}
	names, ok := b.taskReader().listElements(v, at, "getenv")
	if !ok {
		return
	}
	for _, name := range names {
		value, there := have[name]
		if !there {
			b.reportProblem(at, fmt.Sprintf("your environment has no variable %q", truncateText(name)),
				"getenv takes variables along that are set where the job is submitted. Set it, or write its value: "+
					"environment = { "+truncateText(name)+" = \"…\" }."+nearestHint(name, sortedKeys(have)))
			continue
		}
		values[name] = fixedText(value, at)
	}
}

// textMap reads an expression that gives a map of texts.
func (b programReader) textMap(expr hclsyntax.Expression, what string) (map[string]taskText, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return b.textMap(e.Expression, what)
	case *hclsyntax.ObjectConsExpr:
		return b.readMapLiteral(e, what)
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "merge" && !e.ExpandFinal && b.parser.isPerTask(e) {
			all := map[string]taskText{}
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
	out := map[string]taskText{}
	if !b.parser.isPerTask(expr) {
		v, ok := b.parser.evaluate(expr, b.parser.root)
		if !ok || v.IsNull() {
			return nil, false
		}
		strs, ok := b.mapElements(v, expr.Range(), what)
		for name, s := range strs {
			out[name] = fixedText(s, expr.Range())
		}
		return out, ok
	}
	return b.computeMap(expr, what)
}

// readMapLiteral reads a literal map, and splits each value separately.
func (b programReader) readMapLiteral(e *hclsyntax.ObjectConsExpr, what string) (map[string]taskText, bool) {
	out, all := map[string]taskText{}, true
	for _, item := range e.Items {
		if b.parser.isPerTask(item.KeyExpr) {
			b.reportProblem(item.KeyExpr.Range(), "a name in "+what+" cannot differ between tasks",
				"Let the value differ instead.")
			return nil, false
		}
		key, ok := b.parser.evaluate(item.KeyExpr, b.parser.root)
		if !ok {
			return nil, false
		}
		name, ok := b.taskReader().valueText(key, item.KeyExpr.Range(), "a name in "+what)
		if !ok {
			return nil, false
		}
		if _, twice := out[name]; twice {
			b.reportProblem(item.KeyExpr.Range(), fmt.Sprintf("%q is set twice in %s", truncateText(name), what),
				"Only one value can be meant. Remove one of the two.")
			all = false
			continue
		}
		t, ok := b.taskReader().readText(item.ValueExpr, "a value of "+what)
		t.sourceRange = item.KeyExpr.Range()
		out[name], all = t, all && ok
	}
	return out, all
}

func (b programReader) computeMap(expr hclsyntax.Expression, what string) (map[string]taskText, bool) {
	columns := map[string][]string{}
	ok := b.taskReader().forEachTask(expr, func(i int, v cty.Value) bool {
		m, ok := b.mapElements(v, expr.Range(), what)
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
			b.reportProblem(expr.Range(), what+" has to have the same names for all tasks",
				fmt.Sprintf("The names for task %d are others than for the tasks before. Give the missing ones an "+
					"empty value.", i))
			return false
		}
		return true
	})
	if !ok {
		return nil, false
	}
	out := map[string]taskText{}
	for _, name := range sortedKeys(columns) {
		out[name] = taskText{[]textPiece{{column: b.taskReader().addColumn(name, "", columns[name])}}, expr.Range()}
	}
	return out, true
}

func (b programReader) mapElements(v cty.Value, at hcl.Range, what string) (map[string]string, bool) {
	if ty := v.Type(); v.IsNull() || !(ty.IsMapType() || ty.IsObjectType()) {
		b.reportProblem(at, what+" has to be a map",
			fmt.Sprintf("It is %s. Write a map in braces: %s = { NAME = \"value\" }.", describeValue(v), what))
		return nil, false
	}
	out := make(map[string]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		s, ok := b.taskReader().valueText(value, at, fmt.Sprintf("%s of %s", key.AsString(), what))
		if !ok {
			return nil, false
		}
		out[key.AsString()] = s
	}
	return out, true
}
