package submit

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/suggest"
)

// conditionTranslator translates a condition in HCL over "machine" into ClassAd:
//
//	machine.memory >= "4GiB" && machine.arch == "x86_64"
//	     becomes   TARGET.Memory >= 4096 && TARGET.Arch == "x86_64"
//
// Parts that do not refer to a machine are evaluated first, so they may use variables,
// locals, each and every function. Parts that refer to a machine may use only what
// ClassAd has, too.
type conditionTranslator struct {
	builder   *jobBuilder
	scope     *hcl.EvalContext
	hasFailed bool
}

func (t *conditionTranslator) reportProblem(at hcl.Range, summary, detail string) string {
	if !t.hasFailed {
		t.builder.reportProblem(at, summary, detail)
	}
	t.hasFailed = true
	return "undefined"
}

// The precedence of operators in ClassAd. An operand with a lower one needs parentheses.
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

type adOperator struct {
	text string
	prec int
}

func operatorOf(op *hclsyntax.Operation) (adOperator, bool) {
	for _, o := range []struct {
		op *hclsyntax.Operation
		adOperator
	}{
		{hclsyntax.OpLogicalOr, adOperator{"||", precOr}}, {hclsyntax.OpLogicalAnd, adOperator{"&&", precAnd}},
		{hclsyntax.OpEqual, adOperator{"==", precEqual}}, {hclsyntax.OpNotEqual, adOperator{"!=", precEqual}},
		{hclsyntax.OpGreaterThan, adOperator{">", precCompare}},
		{hclsyntax.OpGreaterThanOrEqual, adOperator{">=", precCompare}},
		{hclsyntax.OpLessThan, adOperator{"<", precCompare}},
		{hclsyntax.OpLessThanOrEqual, adOperator{"<=", precCompare}},
		{hclsyntax.OpAdd, adOperator{"+", precAdd}}, {hclsyntax.OpSubtract, adOperator{"-", precAdd}},
		{hclsyntax.OpMultiply, adOperator{"*", precMultiply}}, {hclsyntax.OpDivide, adOperator{"/", precMultiply}},
		{hclsyntax.OpModulo, adOperator{"%", precMultiply}},
	} {
		if o.op == op {
			return o.adOperator, true
		}
	}
	return adOperator{}, false
}

// translateExpr translates an expression. It adds parentheses if an operator of
// precedence outer would bind tighter.
func (t *conditionTranslator) translateExpr(e hclsyntax.Expression, outer int) string {
	if t.hasFailed {
		return ""
	}
	if !t.builder.constraintReader().usesMachine(e) {
		return t.evalConstant(e, unitText)
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return t.translateExpr(e.Expression, outer)
	case *hclsyntax.ScopeTraversalExpr:
		return t.translateAttribute(e)
	case *hclsyntax.BinaryOpExpr:
		op, ok := operatorOf(e.Op)
		if !ok {
			return t.reportProblem(e.Range(), "this operator is not known to machines",
				"Use == != < <= > >= && || + - * / and %.")
		}
		u := t.comparisonUnit(e.LHS, e.RHS)
		left, right := t.translateOperand(e.LHS, u, op.prec), t.translateOperand(e.RHS, u, op.prec+1)
		return t.parenthesize(left+" "+op.text+" "+right, op.prec, outer)
	case *hclsyntax.UnaryOpExpr:
		sign := "!"
		if e.Op == hclsyntax.OpNegate {
			sign = "-"
		}
		return t.parenthesize(sign+t.translateExpr(e.Val, precUnary), precUnary, outer)
	case *hclsyntax.ConditionalExpr:
		s := t.translateExpr(e.Condition, precConditional+1) + " ? " +
			t.translateExpr(e.TrueResult, precConditional+1) + " : " + t.translateExpr(e.FalseResult, precConditional)
		return t.parenthesize(s, precConditional, outer)
	case *hclsyntax.FunctionCallExpr:
		return t.translateCall(e)
	case *hclsyntax.TemplateWrapExpr:
		return t.translateExpr(e.Wrapped, outer)
	case *hclsyntax.TemplateExpr:
		return t.translateTemplate(e)
	}
	return t.reportProblem(e.Range(), "this cannot be a condition on a machine",
		"Conditions compare the attributes of a machine with values and join the comparisons with && and ||. For "+
			"more, write a ClassAd expression in quotes.")
}

func (t *conditionTranslator) parenthesize(s string, prec, outer int) string {
	if prec < outer {
		return "(" + s + ")"
	}
	return s
}

// translateOperand translates one side of an operator whose other side has unit u.
func (t *conditionTranslator) translateOperand(e hclsyntax.Expression, u attributeUnit, outer int) string {
	if t.builder.constraintReader().usesMachine(e) {
		return t.translateExpr(e, outer)
	}
	return t.evalConstant(e, u)
}

// comparisonUnit returns the unit of the side that is an attribute with a unit.
func (t *conditionTranslator) comparisonUnit(sides ...hclsyntax.Expression) attributeUnit {
	for _, e := range sides {
		for {
			p, ok := e.(*hclsyntax.ParenthesesExpr)
			if !ok {
				break
			}
			e = p.Expression
		}
		if s, ok := e.(*hclsyntax.ScopeTraversalExpr); ok && s.Traversal.RootName() == "machine" {
			name, _ := traversalStepName(s.Traversal, 1)
			if m, ok := findMachineAttr(name); ok {
				return m.unit
			}
		}
	}
	return unitText
}

// translateAttribute translates machine.NAME.
func (t *conditionTranslator) translateAttribute(e *hclsyntax.ScopeTraversalExpr) string {
	at := e.Range()
	name, ok := traversalStepName(e.Traversal, 1)
	if !ok || len(e.Traversal) != 2 {
		return t.reportProblem(at, "machine has attributes, and nothing more",
			"Write machine.NAME, as in machine.memory.")
	}
	if m, ok := findMachineAttr(name); ok {
		return "TARGET." + m.attribute
	}
	names := machineAttrNames()
	if near := nearestName(name, names); near != "" &&
		suggest.Distance(normalizeName(name), normalizeName(near)) <= 2 && len(normalizeName(name)) > 2 {
		return t.reportProblem(e.Traversal[1].SourceRange(), fmt.Sprintf("machines have no attribute %q", name),
			fmt.Sprintf("Did you mean machine.%s? An attribute of your own pool whose name is so like that one can "+
				"be asked for in a ClassAd expression: \"TARGET.%s …\".", near, name))
	}
	if !envName.matches(name) {
		return t.reportProblem(e.Traversal[1].SourceRange(), fmt.Sprintf("%q cannot be the name of an attribute", name),
			"A name is made of letters, digits and _.")
	}
	return "TARGET." + name
}

// evalConstant evaluates an expression that does not refer to a machine.
func (t *conditionTranslator) evalConstant(e hclsyntax.Expression, u attributeUnit) string {
	v, ok := t.builder.parser.evaluate(e, t.scope)
	if !ok {
		t.hasFailed = true
		return ""
	}
	return t.literalText(v, e.Range(), u)
}

// literalText writes a value in ClassAd; a text becomes a number where a size is
// expected.
func (t *conditionTranslator) literalText(v cty.Value, at hcl.Range, u attributeUnit) string {
	switch ty := v.Type(); {
	case v.IsNull():
		return "undefined"
	case ty == cty.Bool:
		return strconv.FormatBool(v.True())
	case ty == cty.Number && u != unitText && v.AsBigFloat().Sign() != 0:
		return t.reportProblem(at, "this size has no unit",
			fmt.Sprintf("It is %s, which could be bytes or gigabytes. Write it as a text with a unit, %q.",
				describeValue(v), numberText(v)+"GiB"))
	case ty == cty.Number:
		return realText(v.AsBigFloat())
	case ty == cty.String && u != unitText:
		return t.sizeLiteral(v, at, u)
	case ty == cty.String:
		return classad.StringValue(v.AsString()).String()
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		parts := []string{}
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			parts = append(parts, t.literalText(x, at, u))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return t.reportProblem(at, "this cannot be compared with an attribute of a machine",
		fmt.Sprintf("It is %s. Compare with a number, a text, or use contains([…], machine.NAME).", describeValue(v)))
}

func (t *conditionTranslator) sizeLiteral(v cty.Value, at hcl.Range, u attributeUnit) string {
	read, per := readSize("the size"), roost.MiB
	switch u {
	case unitKiB:
		per = roost.KiB
	case unitRate:
		read, per = readByteRate("the rate"), roost.KiB
	}
	text, err := read(v)
	if err != nil {
		w := err.(*valueError)
		return t.reportProblem(at, w.summary, w.detail)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return realText(new(big.Float).Quo(new(big.Float).SetInt64(n), new(big.Float).SetInt64(int64(per))))
}

// realText writes a number, in a form that ClassAd reads as an integer if it is whole.
func realText(f *big.Float) string {
	if n, acc := f.Int64(); acc == big.Exact {
		return strconv.FormatInt(n, 10)
	}
	g, _ := f.Float64()
	return classad.RealValue(g).String()
}

// translateCall translates the functions that ClassAd has, too.
func (t *conditionTranslator) translateCall(e *hclsyntax.FunctionCallExpr) string {
	arg := func(i int) string { return t.translateExpr(e.Args[i], 0) }
	if want := map[string]int{"contains": 2, "startswith": 2, "endswith": 2, "regex": 2, "lower": 1, "upper": 1,
		"floor": 1, "ceil": 1, "length": 1}[e.Name]; want != 0 && len(e.Args) != want {
		return t.reportProblem(e.NameRange, fmt.Sprintf("%s takes %d arguments", e.Name, want),
			fmt.Sprintf("Here it has %d.", len(e.Args)))
	}
	switch e.Name {
	case "contains": // contains(list, value): member(value, list)
		u := t.comparisonUnit(e.Args[1])
		return "member(" + t.translateOperand(e.Args[1], unitText, 0) + ", " + t.translateOperand(e.Args[0], u, 0) + ")"
	case "startswith", "endswith":
		return t.translateAffix(e)
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
	return t.reportProblem(e.NameRange, fmt.Sprintf("%s cannot be asked of a machine", e.Name),
		"Of a machine's attributes can be asked contains, startswith, endswith, regex, lower, upper, floor, ceil, "+
			"length, min and max. "+
			"A ClassAd expression in quotes can say more.")
}

// translateAffix translates startswith and endswith by comparing a part of the text. In
// ClassAd == ignores the case of texts, so it uses =?=.
func (t *conditionTranslator) translateAffix(e *hclsyntax.FunctionCallExpr) string {
	if t.builder.constraintReader().usesMachine(e.Args[1]) {
		return t.reportProblem(e.Args[1].Range(), "this has to be a fixed text",
			"It cannot be an attribute of the machine. A ClassAd expression in quotes can say more.")
	}
	v, ok := t.builder.parser.evaluate(e.Args[1], t.scope)
	if !ok || v.IsNull() || v.Type() != cty.String {
		return t.reportProblem(e.Args[1].Range(), "this has to be a text", "Write it in quotes.")
	}
	n := len(v.AsString())
	if e.Name == "endswith" {
		return fmt.Sprintf("substr(%s, -%d) =?= %s", t.translateExpr(e.Args[0], 0), n,
			classad.StringValue(v.AsString()))
	}
	return fmt.Sprintf("substr(%s, 0, %d) =?= %s", t.translateExpr(e.Args[0], 0), n, classad.StringValue(v.AsString()))
}

// translateTemplate translates a text with attributes in it.
func (t *conditionTranslator) translateTemplate(e *hclsyntax.TemplateExpr) string {
	parts := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		parts[i] = t.translateExpr(p, 0)
	}
	return "strcat(" + strings.Join(parts, ", ") + ")"
}
