package submit

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/spell"
	"github.com/zclconf/go-cty/cty"
)

// translator turns a condition of HCL over "machine" into ClassAd:
//
//	machine.memory >= "4GiB" && machine.arch == "x86_64"   becomes   TARGET.Memory >= 4096 && TARGET.Arch == "x86_64"
//
// What does not speak of a machine is folded to its value first, so variables, locals, each and every function can stand in
// it. Only what ClassAd can say too can be said about a machine.
type translator struct {
	b      *builder
	scope  *hcl.EvalContext
	failed bool
}

func (t *translator) fail(at hcl.Range, summary, detail string) string {
	if !t.failed {
		t.b.fail(at, summary, detail)
	}
	t.failed = true
	return "undefined"
}

// The precedence of operators in ClassAd; an operand of a lower one needs parentheses.
const (
	precConditional = 1 + iota
	precOr
	precAnd
	precEqual
	precCompare
	precAdd
	precMultiply
	precUnary
)

type operator struct {
	text string
	prec int
}

func operatorOf(op *hclsyntax.Operation) (operator, bool) {
	for _, o := range []struct {
		op *hclsyntax.Operation
		operator
	}{
		{hclsyntax.OpLogicalOr, operator{"||", precOr}}, {hclsyntax.OpLogicalAnd, operator{"&&", precAnd}},
		{hclsyntax.OpEqual, operator{"==", precEqual}}, {hclsyntax.OpNotEqual, operator{"!=", precEqual}},
		{hclsyntax.OpGreaterThan, operator{">", precCompare}}, {hclsyntax.OpGreaterThanOrEqual, operator{">=", precCompare}},
		{hclsyntax.OpLessThan, operator{"<", precCompare}}, {hclsyntax.OpLessThanOrEqual, operator{"<=", precCompare}},
		{hclsyntax.OpAdd, operator{"+", precAdd}}, {hclsyntax.OpSubtract, operator{"-", precAdd}},
		{hclsyntax.OpMultiply, operator{"*", precMultiply}}, {hclsyntax.OpDivide, operator{"/", precMultiply}}, {hclsyntax.OpModulo, operator{"%", precMultiply}},
	} {
		if o.op == op {
			return o.operator, true
		}
	}
	return operator{}, false
}

// expr translates, in parentheses when an operator of precedence outer could tear the result apart.
func (t *translator) expr(e hclsyntax.Expression, outer int) string {
	if t.failed {
		return ""
	}
	if !t.b.machineIn(e) {
		return t.fold(e, plain)
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return t.expr(e.Expression, outer)
	case *hclsyntax.ScopeTraversalExpr:
		return t.attribute(e)
	case *hclsyntax.BinaryOpExpr:
		op, ok := operatorOf(e.Op)
		if !ok {
			return t.fail(e.Range(), "this operator is not known to machines", "Use == != < <= > >= && || + - * / and %.")
		}
		u := t.unitOf(e.LHS, e.RHS)
		left, right := t.operand(e.LHS, u, op.prec), t.operand(e.RHS, u, op.prec+1)
		return t.wrap(left+" "+op.text+" "+right, op.prec, outer)
	case *hclsyntax.UnaryOpExpr:
		sign := "!"
		if e.Op == hclsyntax.OpNegate {
			sign = "-"
		}
		return t.wrap(sign+t.expr(e.Val, precUnary), precUnary, outer)
	case *hclsyntax.ConditionalExpr:
		s := t.expr(e.Condition, precConditional+1) + " ? " + t.expr(e.TrueResult, precConditional+1) + " : " + t.expr(e.FalseResult, precConditional)
		return t.wrap(s, precConditional, outer)
	case *hclsyntax.FunctionCallExpr:
		return t.call(e)
	case *hclsyntax.TemplateWrapExpr:
		return t.expr(e.Wrapped, outer)
	case *hclsyntax.TemplateExpr:
		return t.template(e)
	}
	return t.fail(e.Range(), "this cannot be asked of a machine", "Conditions compare the attributes of a machine with values and join the comparisons with && and ||. For more, write a ClassAd expression in quotes.")
}

func (t *translator) wrap(s string, prec, outer int) string {
	if prec < outer {
		return "(" + s + ")"
	}
	return s
}

// operand translates one side of an operator whose other side is measured in u.
func (t *translator) operand(e hclsyntax.Expression, u unit, outer int) string {
	if t.b.machineIn(e) {
		return t.expr(e, outer)
	}
	return t.fold(e, u)
}

// unitOf is the unit of the one side that is an attribute with a unit.
func (t *translator) unitOf(sides ...hclsyntax.Expression) unit {
	for _, e := range sides {
		for {
			p, ok := e.(*hclsyntax.ParenthesesExpr)
			if !ok {
				break
			}
			e = p.Expression
		}
		if s, ok := e.(*hclsyntax.ScopeTraversalExpr); ok && s.Traversal.RootName() == "machine" {
			name, _ := stepName(s.Traversal, 1)
			if m, ok := machineAttrOf(name); ok {
				return m.unit
			}
		}
	}
	return plain
}

// attribute translates machine.NAME.
func (t *translator) attribute(e *hclsyntax.ScopeTraversalExpr) string {
	at := e.Range()
	name, ok := stepName(e.Traversal, 1)
	if !ok || len(e.Traversal) != 2 {
		return t.fail(at, "machine has attributes, and nothing more", "Write machine.NAME, as in machine.memory.")
	}
	if m, ok := machineAttrOf(name); ok {
		return "TARGET." + m.attr
	}
	names := machineAttrNames()
	if near := nearest(name, names); near != "" && spell.Distance(squeeze(name), squeeze(near)) <= 2 && len(squeeze(name)) > 2 {
		return t.fail(e.Traversal[1].SourceRange(), fmt.Sprintf("machines have no attribute %q", name),
			fmt.Sprintf("Did you mean machine.%s? An attribute of your own pool whose name is so like that one can be asked for in a ClassAd expression: \"TARGET.%s …\".", near, name))
	}
	if !envName.fits(name) {
		return t.fail(e.Traversal[1].SourceRange(), fmt.Sprintf("%q cannot be the name of an attribute", name), "A name is made of letters, digits and _.")
	}
	return "TARGET." + name
}

// fold evaluates what does not speak of a machine.
func (t *translator) fold(e hclsyntax.Expression, u unit) string {
	v, ok := t.b.p.eval(e, t.scope)
	if !ok {
		t.failed = true
		return ""
	}
	return t.literal(v, e.Range(), u)
}

// literal writes a value in ClassAd; a text becomes a number where a size is wanted.
func (t *translator) literal(v cty.Value, at hcl.Range, u unit) string {
	switch ty := v.Type(); {
	case v.IsNull():
		return "undefined"
	case ty == cty.Bool:
		return strconv.FormatBool(v.True())
	case ty == cty.Number && u != plain && v.AsBigFloat().Sign() != 0:
		return t.fail(at, "this size has no unit", fmt.Sprintf("It is %s, which could be bytes or gigabytes. Write it as a text with a unit, %q.", describe(v), numberText(v)+"GiB"))
	case ty == cty.Number:
		return realText(v.AsBigFloat())
	case ty == cty.String && u != plain:
		return t.size(v, at, u)
	case ty == cty.String:
		return classad.StringValue(v.AsString()).String()
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		parts := []string{}
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			parts = append(parts, t.literal(x, at, u))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return t.fail(at, "this cannot be compared with an attribute of a machine", fmt.Sprintf("It is %s. Compare with a number, a text, or use contains([…], machine.NAME).", describe(v)))
}

func (t *translator) size(v cty.Value, at hcl.Range, u unit) string {
	text, err := readSize("the size")(v)
	if err != nil {
		w := err.(*wrong)
		return t.fail(at, w.summary, w.detail)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	per := roost.MiB
	if u == kibibyte {
		per = roost.KiB
	}
	return realText(new(big.Float).Quo(new(big.Float).SetInt64(n), new(big.Float).SetInt64(int64(per))))
}

// realText writes a number so that ClassAd reads an integer when it is whole.
func realText(f *big.Float) string {
	if n, acc := f.Int64(); acc == big.Exact {
		return strconv.FormatInt(n, 10)
	}
	g, _ := f.Float64()
	return classad.RealValue(g).String()
}

// call translates the functions that ClassAd has too.
func (t *translator) call(e *hclsyntax.FunctionCallExpr) string {
	arg := func(i int) string { return t.expr(e.Args[i], 0) }
	if want := map[string]int{"contains": 2, "startswith": 2, "endswith": 2, "regex": 2, "lower": 1, "upper": 1, "floor": 1, "ceil": 1, "length": 1}[e.Name]; want != 0 && len(e.Args) != want {
		return t.fail(e.NameRange, fmt.Sprintf("%s takes %d arguments", e.Name, want), fmt.Sprintf("Here it has %d.", len(e.Args)))
	}
	switch e.Name {
	case "contains": // contains(list, value): member(value, list)
		u := t.unitOf(e.Args[1])
		return "member(" + t.operand(e.Args[1], plain, 0) + ", " + t.operand(e.Args[0], u, 0) + ")"
	case "startswith", "endswith":
		return t.affix(e)
	case "regex":
		return "regexp(" + arg(0) + ", " + arg(1) + ")"
	case "lower":
		return "toLower(" + arg(0) + ")"
	case "upper":
		return "toUpper(" + arg(0) + ")"
	case "floor":
		return "floor(" + arg(0) + ")"
	case "ceil":
		return "ceiling(" + arg(0) + ")"
	case "length":
		return "size(" + arg(0) + ")"
	case "min", "max":
		parts := make([]string, len(e.Args))
		for i := range e.Args {
			parts[i] = arg(i)
		}
		return e.Name + "({ " + strings.Join(parts, ", ") + " })"
	}
	return t.fail(e.NameRange, fmt.Sprintf("%s cannot be asked of a machine", e.Name), "Of a machine's attributes can be asked contains, startswith, endswith, regex, lower, upper, floor, ceil, length, min and max. "+
		"A ClassAd expression in quotes can say more.")
}

// affix translates startswith and endswith by comparing a piece of the text. == of texts does not look at case in ClassAd, so =?= is used.
func (t *translator) affix(e *hclsyntax.FunctionCallExpr) string {
	if t.b.machineIn(e.Args[1]) {
		return t.fail(e.Args[1].Range(), "this has to be a fixed text", "It cannot be an attribute of the machine. A ClassAd expression in quotes can say more.")
	}
	v, ok := t.b.p.eval(e.Args[1], t.scope)
	if !ok || v.IsNull() || v.Type() != cty.String {
		return t.fail(e.Args[1].Range(), "this has to be a text", "Write it in quotes.")
	}
	n := len(v.AsString())
	if e.Name == "endswith" {
		return fmt.Sprintf("substr(%s, -%d) =?= %s", t.expr(e.Args[0], 0), n, classad.StringValue(v.AsString()))
	}
	return fmt.Sprintf("substr(%s, 0, %d) =?= %s", t.expr(e.Args[0], 0), n, classad.StringValue(v.AsString()))
}

// template translates a text with attributes in it.
func (t *translator) template(e *hclsyntax.TemplateExpr) string {
	parts := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		parts[i] = t.expr(p, 0)
	}
	return "strcat(" + strings.Join(parts, ", ") + ")"
}
