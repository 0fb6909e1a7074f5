package classad

import "strings"

// InternPool lets stored ads share what they have in common. Ads with the same attribute
// names in the same order share their names, and equal literals and expressions are
// shared. An ad of a machine then needs little more than a word for each attribute, and
// its own values. It is not safe for concurrent use.
type InternPool struct {
	shapes map[string]*Ad // by all names, with a NUL after each; only labels and hash table of these ads are used
	values map[Value]*literalNode
	exprs  map[string]exprNode // by text
	key    []byte
}

// Bounds on what a pool stores. At a bound the pool starts again empty, and ads still
// share what they share.
const (
	maxShapes      = 1 << 10
	maxLiterals    = 1 << 14
	maxExprs       = 1 << 12
	maxStringBytes = 256 // bytes of a string
)

// NewPool returns an empty pool.
func NewPool() *InternPool {
	p := &InternPool{}
	p.reset()
	return p
}

func (p *InternPool) reset() {
	p.shapes, p.values, p.exprs = map[string]*Ad{}, map[Value]*literalNode{}, map[string]exprNode{}
}

// Intern makes an ad share parts with ads that the pool has seen. Nothing else may use
// the ad meanwhile. Afterwards the ad has the same contents, and can be changed like any
// other.
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
		for i, l := range ad.labels { // names may be part of the text from which the ad was parsed
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

// node returns the shared copy of an expression.
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
