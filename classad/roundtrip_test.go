package classad

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRoundTrip writes random ads in each form and checks that they are read back the
// same, literal for literal.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "\x03abc", "\x05\x10\x00\x01\x02\x03\x04\x05\x06\x07\x08",
		"ad\x09\x07\x05\x03\x01", "\x0b\x0b\x0b\x02\xff\xfe'\\\"\n",
		"\x08\x06\x07\x01\x01\x01\x02\x02\x03\x04\x0c\x0d\x0e\x0f\x10\x11\x12", strings.Repeat("\x0a\x0b\x09", 40),
		strings.Repeat("\x06\x02x\\", 30)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := adGenerator{data: data}
		ad := g.ad(4)
		back, err := Parse(ad.String())
		if err != nil || !identicalAds(ad, back) {
			t.Fatalf("%s is read back as %v, %v", ad, back, err)
		}
		text, err := json.Marshal(ad)
		if err != nil {
			t.Fatalf("%s: %v", ad, err)
		}
		var fromJSON Ad
		if err := json.Unmarshal(text, &fromJSON); err != nil || !g.badNames && !identicalAds(ad, &fromJSON) {
			t.Fatalf("%s is %s in JSON, which is read back as %s, %v", ad, text, &fromJSON, err)
		}
		old := ad.Old()
		fromOld, err := ParseOld(old)
		if g.oldUnrepresentable {
			return
		}
		if err != nil || !identicalAds(ad, fromOld) {
			t.Fatalf("%s is\n%s\nin old syntax, which is read back as %v, %v", ad, old, fromOld, err)
		}
	})
}

// adGenerator makes ads from bytes.
type adGenerator struct {
	data               []byte
	badNames           bool // a name is not UTF-8, which JSON cannot represent
	oldUnrepresentable bool // the ad contains something that old syntax cannot represent
}

func (g *adGenerator) byte() byte {
	if len(g.data) == 0 {
		return 0
	}
	c := g.data[0]
	g.data = g.data[1:]
	return c
}

func (g *adGenerator) intn(n int) int { return int(g.byte()) % n }

func (g *adGenerator) bits() uint64 {
	var n uint64
	for range 8 {
		n = n<<8 | uint64(g.byte())
	}
	return n
}

// text returns a text without NUL bytes.
func (g *adGenerator) text() string {
	n := min(g.intn(12), len(g.data))
	s := strings.ReplaceAll(string(g.data[:n]), "\x00", "\\")
	g.data = g.data[n:]
	g.oldUnrepresentable = g.oldUnrepresentable || strings.ContainsAny(s, "\n\r")
	return s
}

func (g *adGenerator) name() string {
	if g.intn(3) > 0 {
		return []string{"a", "b", "MY", "target", "parent", "true", "IS", "x1", "_", "Requirements", "absTime",
			"self"}[g.intn(12)]
	}
	s := g.text()
	if s == "" {
		return "empty"
	}
	g.badNames = g.badNames || !utf8.ValidString(s)
	g.oldUnrepresentable = g.oldUnrepresentable || strings.HasSuffix(s, `\`)
	return s
}

func (g *adGenerator) ad(depth int) *Ad {
	ad := New()
	for range g.intn(5) {
		ad.Insert(g.name(), Expr{g.node(depth)})
	}
	return ad
}

func (g *adGenerator) exprs(depth int) []Expr {
	var elems []Expr
	for range g.intn(4) {
		elems = append(elems, Expr{g.node(depth)})
	}
	return elems
}

func (g *adGenerator) literal() exprNode {
	switch g.intn(9) {
	case 0:
		return &literalNode{UndefinedValue()}
	case 1:
		return &literalNode{ErrorValue()}
	case 2:
		return &literalNode{BoolValue(g.intn(2) == 0)}
	case 3:
		return &literalNode{IntValue(int64(g.bits()))}
	case 4:
		return &literalNode{IntValue(int64(g.intn(200)) - 100)}
	case 5:
		if f := math.Float64frombits(g.bits()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return &literalNode{RealValue(f)}
		}
		return &literalNode{RealValue(math.Copysign(0, -1))}
	case 6:
		return &literalNode{AbsTimeValue(int64(g.bits())%1e11, 60*(g.intn(200)-100))}
	case 7:
		return &literalNode{RelTimeValue(float64(int64(g.bits()))/float64(int64(1)<<(g.intn(60))) + 0)}
	}
	s := g.text()
	// Old syntax writes a text that ends in a backslash as a substr() with the same
	// value.
	g.oldUnrepresentable = g.oldUnrepresentable || strings.HasSuffix(s, `\`)
	return &literalNode{StringValue(s)}
}

func (g *adGenerator) node(depth int) exprNode {
	if depth == 0 {
		return g.literal()
	}
	depth--
	switch g.intn(16) {
	case 0:
		name := g.name()
		return &attrRef{name, hashName(name), scopeOf(name)}
	case 1:
		name := g.name()
		return &rootRef{name, hashName(name)}
	case 2, 3:
		x, name := g.node(depth), g.name()
		sel := &selectionNode{x: x, name: name, hash: hashName(name)}
		if ref, ok := x.(*attrRef); ok {
			sel.scope = ref.scope
		}
		return sel
	case 4:
		return &subscriptNode{g.node(depth), g.node(depth)}
	case 5:
		return &unaryNode{[]exprOperator{opAdd, opSubtract, opNot, opComplement}[g.intn(4)], g.node(depth)}
	case 6, 7:
		return &binaryNode{opOr + exprOperator(g.intn(int(opModulo-opOr)+1)), g.node(depth), g.node(depth)}
	case 8:
		return &elvisNode{g.node(depth), g.node(depth)}
	case 9:
		return &ternaryNode{g.node(depth), g.node(depth), g.node(depth)}
	case 10:
		return &parenNode{g.node(depth)}
	case 11:
		name := g.name()
		if foldEqual(name, "abstime") {
			return &literalNode{} // the printed form is a literal if the argument is one
		}
		return &callNode{name: name, args: g.exprs(depth)}
	case 12:
		return &listNode{elems: g.exprs(depth)}
	case 13:
		return &adNode{ad: g.ad(depth)}
	}
	return g.literal()
}

func identicalAds(a, b *Ad) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.labels {
		if a.labels[i].name != b.labels[i].name || !identicalNodes(a.exprs[i].n, b.exprs[i].n) {
			return false
		}
	}
	return true
}

func identicalExprs(a, b []Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !identicalNodes(a[i].n, b[i].n) {
			return false
		}
	}
	return true
}

// identicalNodes compares expressions node for node, ignoring parentheses.
func identicalNodes(a, b exprNode) bool {
	switch a := withoutParens(a).(type) {
	case *literalNode:
		l, ok := withoutParens(b).(*literalNode)
		if !ok {
			// A time that its literal cannot represent is written as a call.
			v := Eval(Expr{b}, nil, nil, nil)
			return a.v.kind == AbsTime && v.kind == AbsTime && v.num == a.v.num && v.off == a.v.off
		}
		return a.v == l.v
	case *attrRef:
		r, ok := withoutParens(b).(*attrRef)
		return ok && *a == *r
	case *rootRef:
		r, ok := withoutParens(b).(*rootRef)
		return ok && *a == *r
	case *selectionNode:
		s, ok := withoutParens(b).(*selectionNode)
		return ok && a.name == s.name && a.hash == s.hash && a.scope == s.scope && identicalNodes(a.x, s.x)
	case *subscriptNode:
		i, ok := withoutParens(b).(*subscriptNode)
		return ok && identicalNodes(a.x, i.x) && identicalNodes(a.i, i.i)
	case *unaryNode:
		u, ok := withoutParens(b).(*unaryNode)
		return ok && a.op == u.op && identicalNodes(a.x, u.x)
	case *binaryNode:
		c, ok := withoutParens(b).(*binaryNode)
		return ok && a.op == c.op && identicalNodes(a.x, c.x) && identicalNodes(a.y, c.y)
	case *elvisNode:
		e, ok := withoutParens(b).(*elvisNode)
		return ok && identicalNodes(a.x, e.x) && identicalNodes(a.y, e.y)
	case *ternaryNode:
		c, ok := withoutParens(b).(*ternaryNode)
		return ok && identicalNodes(a.cond, c.cond) && identicalNodes(a.x, c.x) && identicalNodes(a.y, c.y)
	case *callNode:
		c, ok := withoutParens(b).(*callNode)
		return ok && a.name == c.name && identicalExprs(a.args, c.args)
	case *listNode:
		l, ok := withoutParens(b).(*listNode)
		return ok && identicalExprs(a.elems, l.elems)
	case *adNode:
		c, ok := withoutParens(b).(*adNode)
		return ok && identicalAds(a.ad, c.ad)
	}
	return false
}
