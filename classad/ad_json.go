package classad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// HTCondor's JSON form: an ad is an object, a list an array, and a literal is itself
// (UNDEFINED is null). Every other expression is a string "/Expr(…)/". A string that
// looks like such an expression is written as an expression.
const (
	exprOpen  = "/Expr("
	exprClose = ")/"
)

// MarshalJSON writes HTCondor's JSON form (condor_q -json). A nil ad is null.
func (a *Ad) MarshalJSON() ([]byte, error) {
	if a == nil {
		return []byte("null"), nil
	}
	return appendJSONAd(nil, a), nil
}

func appendJSONAd(b []byte, a *Ad) []byte {
	b = append(b, '{')
	for i := range a.labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONString(b, strings.ToValidUTF8(a.labels[i].name, "\ufffd")), ':')
		b = appendJSON(b, a.exprs[i])
	}
	return append(b, '}')
}

func appendJSON(b []byte, e Expr) []byte {
	switch n := e.n.(type) {
	case nil:
		return append(b, "null"...)
	case *literalNode:
		if text, ok := jsonLiteral(b, n.v); ok {
			return text
		}
	case *boundValue:
		return appendJSON(b,
			Value{kind: n.v.kind, comp: &compositeValue{elems: n.v.comp.elems, ad: n.v.comp.ad}}.Expr())
	case *listNode:
		b = append(b, '[')
		for i, elem := range n.elems {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, elem)
		}
		return append(b, ']')
	case *adNode:
		return appendJSONAd(b, n.ad)
	}
	return appendJSONExpr(b, e.String())
}

// appendJSONExpr appends an expression as a string with escaped slashes. The escapes
// distinguish it from a plain string with the same text, as in upstream.
func appendJSONExpr(b []byte, text string) []byte {
	b = append(b, `"\/Expr(`...)
	quoted := appendJSONString(nil, text)
	return append(append(b, quoted[1:len(quoted)-1]...), `)\/"`...)
}

func jsonLiteral(b []byte, v Value) ([]byte, bool) {
	switch v.kind {
	case Undefined:
		return append(b, "null"...), true
	case Boolean, Integer:
		return printStyle{}.value(b, v), true
	case Real:
		if f := v.real(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return shortReal(b, f), true
		}
	case String:
		if !strings.HasPrefix(v.str, exprOpen) && validJSON(v.str) && strings.IndexByte(v.str, 0) < 0 {
			return appendJSONString(b, v.str), true
		}
	}
	return b, false
}

// validJSON reports whether a string survives JSON, which requires UTF-8.
func validJSON(s string) bool { return strings.ToValidUTF8(s, "") == s }

func appendJSONString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // marshalling a string cannot fail
	return append(b, text...)
}

// UnmarshalJSON replaces a with the ad in HTCondor's JSON form. Whole numbers that fit
// become Integers.
func (a *Ad) UnmarshalJSON(text []byte) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("classad: the JSON is longer than %d bytes: %w", MaxBytes, roost.Invalid)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	r := jsonReader{d: d}
	e, err := r.expr()
	if err != nil {
		return fmt.Errorf("classad: JSON at byte %d: %s: %w", d.InputOffset(), err, roost.Invalid)
	}
	ad, ok := e.n.(*adNode)
	if !ok {
		return fmt.Errorf("classad: the JSON of an ad must be an object: %w", roost.Invalid)
	}
	*a = *ad.ad
	return nil
}

type jsonReader struct {
	d     *json.Decoder
	depth int
}

func (r *jsonReader) expr() (Expr, error) {
	tok, err := r.d.Token()
	if err != nil {
		return Expr{}, err
	}
	switch t := tok.(type) {
	case json.Delim:
		if r.depth++; r.depth > MaxDepth {
			return Expr{}, fmt.Errorf("nested deeper than %d levels", MaxDepth)
		}
		defer func() { r.depth-- }()
		if t == '{' {
			return r.object()
		}
		return r.array()
	case bool:
		return Expr{&literalNode{BoolValue(t)}}, nil
	case json.Number:
		return jsonNumber(string(t))
	case string:
		return jsonText(t)
	}
	return Expr{&literalNode{}}, nil
}

func (r *jsonReader) object() (Expr, error) {
	ad := New()
	for r.d.More() {
		key, err := r.d.Token()
		if err != nil {
			return Expr{}, err
		}
		name, _ := key.(string)
		if name == "" || strings.IndexByte(name, 0) >= 0 {
			return Expr{}, fmt.Errorf("%q cannot be the name of an attribute", name)
		}
		e, err := r.expr()
		if err != nil {
			return Expr{}, err
		}
		ad.Insert(name, e)
	}
	_, err := r.d.Token()
	return Expr{&adNode{ad: ad}}, err
}

func (r *jsonReader) array() (Expr, error) {
	list := &listNode{}
	for r.d.More() {
		e, err := r.expr()
		if err != nil {
			return Expr{}, err
		}
		list.elems = append(list.elems, e)
	}
	_, err := r.d.Token()
	return Expr{list}, err
}

func jsonNumber(text string) (Expr, error) {
	if !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		return Expr{&literalNode{IntValue(n)}}, err
	}
	f, err := strconv.ParseFloat(text, 64)
	return Expr{&literalNode{RealValue(f)}}, err
}

func jsonText(s string) (Expr, error) {
	if inner, ok := strings.CutPrefix(s, exprOpen); ok {
		if inner, ok = strings.CutSuffix(inner, exprClose); ok {
			return ParseExpr(inner)
		}
	}
	if strings.IndexByte(s, 0) >= 0 {
		return Expr{}, fmt.Errorf("a string must not hold a zero byte")
	}
	return Expr{&literalNode{StringValue(s)}}, nil
}
