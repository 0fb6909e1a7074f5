package submit

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxSteps bounds the work of all expressions of one file. A step is a value that an
// expression makes or takes, or sixteen bytes of text; a million of them take about a
// tenth of a second.
const maxSteps = 10_000_000

// stepCounter counts the steps of evaluations.
//
// hclsyntax evaluates without bounds: for expressions nest, and a list of ten lists of
// ten lists … costs ten times more with every line of the file, though it takes hardly
// any memory because its parts are shared. So every place in an expression that makes a
// value is wrapped in a counter before the evaluation ([stepCounter.wrapExpr]), which
// charges for the whole of each value. So no value with more than maxSteps parts can
// exist, however much of it is shared.
type stepCounter struct {
	steps     int
	wrapped   map[hclsyntax.Expression]bool
	functions map[string]function.Function
}

// stepsExhausted is the panic value when the steps are used up. An error would not stop
// the work, because for expressions of hclsyntax run to their end whatever errors their
// parts report. Only [stepCounter.evaluate] recovers it. The same holds for
// numberTooLarge.
type stepsExhausted struct{}

func newMeter() *stepCounter {
	return &stepCounter{steps: maxSteps, wrapped: map[hclsyntax.Expression]bool{}}
}

// numberTooLarge is the panic value when a number exceeds the range of float64. hcl
// computes with any exponent, and printing such a number would take forever.
type numberTooLarge struct{}

// evaluate evaluates an expression. The error is stepsExhausted or numberTooLarge.
func (m *stepCounter) evaluate(expr hclsyntax.Expression,
	ctx *hcl.EvalContext) (v cty.Value, diags hcl.Diagnostics, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stepsExhausted:
			v, diags, err = cty.DynamicVal, nil, r
		case numberTooLarge:
			v, diags, err = cty.DynamicVal, nil, r
		default:
			panic(r)
		}
	}()
	if !m.wrapped[expr] {
		m.wrapParts(expr)
		m.wrapped[expr] = true
	}
	v, diags = expr.Value(ctx)
	m.chargeValue(v)
	return v, diags, nil
}

func (stepsExhausted) Error() string { return "too many steps" }
func (numberTooLarge) Error() string { return "a number that is too large" }

// spend consumes n steps.
func (m *stepCounter) spend(n int) {
	if m.steps -= n; m.steps < 0 {
		panic(stepsExhausted{})
	}
}

// chargeValue consumes a step for every part of v.
func (m *stepCounter) chargeValue(v cty.Value) {
	m.spend(1)
	if !v.IsKnown() || v.IsNull() {
		return
	}
	switch ty := v.Type(); {
	case ty == cty.Number:
		if f := v.AsBigFloat(); f.IsInf() || f.MantExp(nil) > 1024 || f.MantExp(nil) < -1074 {
			panic(numberTooLarge{})
		}
	case ty == cty.Bool:
	case ty == cty.String:
		m.spend(len(v.AsString()) / 16)
	case ty.IsListType() && ty.ElementType().IsPrimitiveType() && ty.ElementType() != cty.String:
		m.spend(v.LengthInt())
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			m.chargeValue(element)
		}
	}
}

// countedExpression is an expression that charges for its value.
type countedExpression struct {
	hclsyntax.Expression
	meter         *stepCounter
	isNumeric     bool // its value is converted to a number
	stepsPerRound int  // steps of one round of a for clause
}

// Value evaluates the expression and charges for the value.
func (c *countedExpression) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := c.Expression.Value(ctx)
	c.meter.spend(c.stepsPerRound)
	c.meter.chargeValue(v)
	if c.isNumeric && v.Type() == cty.String && v.IsKnown() && !v.IsNull() && hasHugeExponent(v.AsString()) {
		panic(numberTooLarge{})
	}
	return v, diags
}

// hasHugeExponent reports whether a number in text form has an exponent of more than
// three digits. Reading it could take forever.
func hasHugeExponent(number string) bool {
	i := strings.LastIndexAny(number, "eEpP")
	return i >= 0 && len(strings.TrimLeft(number[i+1:], "+-0")) > 3
}

func (m *stepCounter) wrapExpr(slot *hclsyntax.Expression) {
	if *slot == nil {
		return
	}
	if _, done := (*slot).(*countedExpression); done {
		return
	}
	m.wrapParts(*slot)
	*slot = &countedExpression{Expression: *slot, meter: m}
}

// wrapParts wraps the parts of expr. A reference to an existing value that is not
// consumed as a whole (the list in list[3]) is not charged.
func (m *stepCounter) wrapParts(expr hclsyntax.Expression) {
	switch e := expr.(type) {
	case *hclsyntax.TemplateExpr:
		m.wrapAll(e.Parts)
	case *hclsyntax.TemplateWrapExpr:
		m.wrapExpr(&e.Wrapped)
	case *hclsyntax.TemplateJoinExpr:
		m.wrapExpr(&e.Tuple)
	case *hclsyntax.ParenthesesExpr:
		m.wrapParts(e.Expression)
	case *hclsyntax.TupleConsExpr:
		m.wrapAll(e.Exprs)
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			m.wrapParts(e.Items[i].KeyExpr)
			m.wrapExpr(&e.Items[i].ValueExpr)
		}
	case *hclsyntax.ObjectConsKeyExpr:
		m.wrapParts(e.Wrapped)
	case *hclsyntax.FunctionCallExpr:
		m.wrapAll(e.Args)
		m.numericArgs(e)
	case *hclsyntax.ConditionalExpr:
		m.wrapExpr(&e.Condition)
		m.wrapExpr(&e.TrueResult)
		m.wrapExpr(&e.FalseResult)
	case *hclsyntax.BinaryOpExpr:
		m.wrapExpr(&e.LHS)
		m.wrapExpr(&e.RHS)
		if e.Op.Impl.Params()[0].Type == cty.Number {
			e.LHS.(*countedExpression).isNumeric, e.RHS.(*countedExpression).isNumeric = true, true
		}
	case *hclsyntax.UnaryOpExpr:
		m.wrapExpr(&e.Val)
	case *hclsyntax.ForExpr:
		m.wrapExpr(&e.CollExpr)
		m.wrapExpr(&e.KeyExpr)
		m.wrapExpr(&e.ValExpr)
		e.ValExpr.(*countedExpression).stepsPerRound = 5
		m.wrapExpr(&e.CondExpr)
	case *hclsyntax.SplatExpr:
		m.wrapExpr(&e.Source)
		m.wrapExpr(&e.Each)
	case *hclsyntax.IndexExpr:
		m.wrapParts(e.Collection)
		m.wrapExpr(&e.Key)
	case *hclsyntax.RelativeTraversalExpr:
		m.wrapParts(e.Source)
	}
}

func (m *stepCounter) wrapAll(list []hclsyntax.Expression) {
	for i := range list {
		m.wrapExpr(&list[i])
	}
}

// numericArgs marks the arguments that a function takes as numbers.
func (m *stepCounter) numericArgs(e *hclsyntax.FunctionCallExpr) {
	f := m.functions[e.Name]
	for i, arg := range e.Args {
		if params := f.Params(); i < len(params) && params[i].Type == cty.Number ||
			i >= len(params) && f.VarParam() != nil && f.VarParam().Type == cty.Number || e.Name == "tonumber" {
			arg.(*countedExpression).isNumeric = true
		}
	}
}
