package classad

import "strings"

// InternPool lets ads that are kept share what they have in common: the names of their
// attributes, where they have the same ones in the same order, and literals and
// expressions that are the same. Of ads of many machines that leaves each little more
// than a word for an attribute, and what is its own. It is not safe for concurrent use.
type InternPool struct {
	shapes map[string]*Ad // by all names, NUL after each; of these only labels and table count
	values map[Value]*literalNode
	exprs  map[string]exprNode // by text
	key    []byte
}

// Bounds on what a pool remembers. When one is reached it begins anew, and what ads share
// stays shared.
const (
	maxShapes      = 1 << 10
	maxLiterals    = 1 << 14
	maxExprs       = 1 << 12
	maxStringBytes = 256 // bytes of a string
)

// NewPool is an empty pool.
func NewPool() *InternPool {
	p := &InternPool{}
	p.reset()
	return p
}

func (p *InternPool) reset() {
	p.shapes, p.values, p.exprs = map[string]*Ad{}, map[Value]*literalNode{}, map[string]exprNode{}
}

// Intern makes the ad share what it has in common with others that the pool has seen.
// Nobody else may use the ad meanwhile; afterwards it says what it said before, and can
// be changed like any other.
func (p *InternPool) Intern(ad *Ad) {
	if len(p.shapes) >= maxShapes || len(p.values) >= maxLiterals || len(p.exprs) >= maxExprs {
		p.reset()
	}
	key := p.key[:0]
	for i := range ad.labels {
		key = append(append(key, ad.labels[i].name...), 0)
	}
	p.key = key
	shape := p.shapes[string(key)]
	if shape == nil {
		shape = &Ad{labels: make([]attrLabel, len(ad.labels)), hashTable: ad.hashTable}
		for i, l := range ad.labels { // names may be part of the text that the ad was read from
			shape.labels[i] = attrLabel{l.hash, strings.Clone(l.name)}
		}
		p.shapes[string(key)] = shape
	}
	exprs := make([]Expr, len(ad.exprs))
	for i, e := range ad.exprs {
		exprs[i] = Expr{p.node(e.n)}
	}
	ad.labels, ad.hashTable, ad.exprs, ad.shared = shape.labels, shape.hashTable, exprs, true
}

// node is the same expression as others have it.
func (p *InternPool) node(n exprNode) exprNode {
	switch n := n.(type) {
	case nil:
		return nil
	case *literalNode:
		return p.literal(n)
	}
	text := Expr{n}.String()
	if len(text) >= maxPrintedBytes {
		return n
	}
	if same, ok := p.exprs[text]; ok {
		return same
	}
	p.exprs[text] = n
	return n
}

func (p *InternPool) literal(l *literalNode) exprNode {
	v := l.v
	switch v.kind {
	case Undefined, Boolean, Integer, Real:
	case String:
		if len(v.str) > maxStringBytes {
			return l
		}
	default:
		return l
	}
	if same := p.values[v]; same != nil {
		return same
	}
	if v.kind == String {
		v.str = strings.Clone(v.str)
	}
	same := &literalNode{v}
	p.values[v] = same
	return same
}
