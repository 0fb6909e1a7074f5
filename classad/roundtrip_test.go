package classad

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRoundTrip writes ads in each form and holds that they are read back the same, literal for literal, whatever they hold.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "\x03abc", "\x05\x10\x00\x01\x02\x03\x04\x05\x06\x07\x08", "ad\x09\x07\x05\x03\x01", "\x0b\x0b\x0b\x02\xff\xfe'\\\"\n",
		"\x08\x06\x07\x01\x01\x01\x02\x02\x03\x04\x0c\x0d\x0e\x0f\x10\x11\x12", strings.Repeat("\x0a\x0b\x09", 40), strings.Repeat("\x06\x02x\\", 30)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := generator{data: data}
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
		if g.notInOld {
			return
		}
		if err != nil || !identicalAds(ad, fromOld) {
			t.Fatalf("%s is\n%s\nin old syntax, which is read back as %v, %v", ad, old, fromOld, err)
		}
	})
}

// generator makes ads of bytes.
type generator struct {
	data     []byte
	badNames bool // a name is not UTF-8, which JSON cannot hold
	notInOld bool // something is in the ad that old syntax cannot hold
}

func (g *generator) byte() byte {
	if len(g.data) == 0 {
		return 0
	}
	c := g.data[0]
	g.data = g.data[1:]
	return c
}

func (g *generator) n(n int) int { return int(g.byte()) % n }

func (g *generator) bits() uint64 {
	var n uint64
	for range 8 {
		n = n<<8 | uint64(g.byte())
	}
	return n
}

// text is some text without zeros.
func (g *generator) text() string {
	n := min(g.n(12), len(g.data))
	s := strings.ReplaceAll(string(g.data[:n]), "\x00", "\\")
	g.data = g.data[n:]
	g.notInOld = g.notInOld || strings.ContainsAny(s, "\n\r")
	return s
}

func (g *generator) name() string {
	if g.n(3) > 0 {
		return []string{"a", "b", "MY", "target", "parent", "true", "IS", "x1", "_", "Requirements", "absTime", "self"}[g.n(12)]
	}
	s := g.text()
	if s == "" {
		return "empty"
	}
	g.badNames = g.badNames || !utf8.ValidString(s)
	g.notInOld = g.notInOld || strings.HasSuffix(s, `\`)
	return s
}

func (g *generator) ad(depth int) *Ad {
	ad := New()
	for range g.n(5) {
		ad.Insert(g.name(), Expr{g.node(depth)})
	}
	return ad
}

func (g *generator) exprs(depth int) []Expr {
	var elems []Expr
	for range g.n(4) {
		elems = append(elems, Expr{g.node(depth)})
	}
	return elems
}

func (g *generator) literal() node {
	switch g.n(9) {
	case 0:
		return &literal{UndefinedValue()}
	case 1:
		return &literal{ErrorValue()}
	case 2:
		return &literal{BoolValue(g.n(2) == 0)}
	case 3:
		return &literal{IntValue(int64(g.bits()))}
	case 4:
		return &literal{IntValue(int64(g.n(200)) - 100)}
	case 5:
		if f := math.Float64frombits(g.bits()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return &literal{RealValue(f)}
		}
		return &literal{RealValue(math.Copysign(0, -1))}
	case 6:
		return &literal{AbsTimeValue(int64(g.bits())%1e11, 60*(g.n(200)-100))}
	case 7:
		return &literal{RelTimeValue(float64(int64(g.bits()))/float64(int64(1)<<(g.n(60))) + 0)}
	}
	s := g.text()
	// Old syntax writes one that ends in a backslash as a substr(), which gives the same.
	g.notInOld = g.notInOld || strings.HasSuffix(s, `\`)
	return &literal{StringValue(s)}
}

func (g *generator) node(depth int) node {
	if depth == 0 {
		return g.literal()
	}
	depth--
	switch g.n(16) {
	case 0:
		name := g.name()
		return &attrRef{name, hashName(name), scopeOf(name)}
	case 1:
		name := g.name()
		return &rootRef{name, hashName(name)}
	case 2, 3:
		x, name := g.node(depth), g.name()
		sel := &selection{x: x, name: name, hash: hashName(name)}
		if ref, ok := x.(*attrRef); ok {
			sel.scope = ref.scope
		}
		return sel
	case 4:
		return &index{g.node(depth), g.node(depth)}
	case 5:
		return &unary{[]operator{opAdd, opSubtract, opNot, opComplement}[g.n(4)], g.node(depth)}
	case 6, 7:
		return &binary{opOr + operator(g.n(int(opModulo-opOr)+1)), g.node(depth), g.node(depth)}
	case 8:
		return &elvis{g.node(depth), g.node(depth)}
	case 9:
		return &ternary{g.node(depth), g.node(depth), g.node(depth)}
	case 10:
		return &paren{g.node(depth)}
	case 11:
		name := g.name()
		if foldEqual(name, "abstime") {
			return &literal{} // is a literal if its argument is one
		}
		return &callNode{name: name, args: g.exprs(depth)}
	case 12:
		return &listNode{elems: g.exprs(depth)}
	case 13:
		return &adNode{g.ad(depth)}
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

// identicalNodes compares expressions node for node, but for parentheses.
func identicalNodes(a, b node) bool {
	switch a := bare(a).(type) {
	case *literal:
		l, ok := bare(b).(*literal)
		if !ok {
			// A time that its literal cannot hold is written as a call.
			v := Eval(Expr{b}, nil, nil, nil)
			return a.v.kind == AbsTime && v.kind == AbsTime && v.num == a.v.num && v.off == a.v.off
		}
		return a.v == l.v
	case *attrRef:
		r, ok := bare(b).(*attrRef)
		return ok && *a == *r
	case *rootRef:
		r, ok := bare(b).(*rootRef)
		return ok && *a == *r
	case *selection:
		s, ok := bare(b).(*selection)
		return ok && a.name == s.name && a.hash == s.hash && a.scope == s.scope && identicalNodes(a.x, s.x)
	case *index:
		i, ok := bare(b).(*index)
		return ok && identicalNodes(a.x, i.x) && identicalNodes(a.i, i.i)
	case *unary:
		u, ok := bare(b).(*unary)
		return ok && a.op == u.op && identicalNodes(a.x, u.x)
	case *binary:
		c, ok := bare(b).(*binary)
		return ok && a.op == c.op && identicalNodes(a.x, c.x) && identicalNodes(a.y, c.y)
	case *elvis:
		e, ok := bare(b).(*elvis)
		return ok && identicalNodes(a.x, e.x) && identicalNodes(a.y, e.y)
	case *ternary:
		c, ok := bare(b).(*ternary)
		return ok && identicalNodes(a.cond, c.cond) && identicalNodes(a.x, c.x) && identicalNodes(a.y, c.y)
	case *callNode:
		c, ok := bare(b).(*callNode)
		return ok && a.name == c.name && identicalExprs(a.args, c.args)
	case *listNode:
		l, ok := bare(b).(*listNode)
		return ok && identicalExprs(a.elems, l.elems)
	case *adNode:
		c, ok := bare(b).(*adNode)
		return ok && identicalAds(a.ad, c.ad)
	}
	return false
}
