package classad

import "iter"

// Ad is an ordered set of attributes. Names are compared without regard to case, and an
// ad has the first spelling of each name. The zero Ad is empty and ready for use. Do not
// change an Ad that others read; [Ad.Copy] is cheap, because copies share expressions.
type Ad struct {
	labels           []attrLabel // of the attributes, in order
	exprs            []Expr      // expressions of the attributes, in the same order
	hashTable        []uint32    // open-addressed hash table of indexes into labels, plus one; nil while there are few
	shared           bool        // labels and hash table are shared with other ads: see [InternPool]
	hasReservedNames bool        // an attribute may have a name that the language gives a meaning, such as TARGET
}

type attrLabel struct {
	hash uint32
	name string
}

// maxUnhashed is the number of attributes up to which a linear search beats a hash table.
const maxUnhashed = 8

// New returns an empty ad.
func New() *Ad { return &Ad{} }

// Len returns the number of attributes.
func (a *Ad) Len() int { return len(a.labels) }

// Names returns the names of the attributes in their order.
func (a *Ad) Names() []string {
	names := make([]string, len(a.labels))
	for i := range a.labels {
		names[i] = a.labels[i].name
	}
	return names
}

// All ranges over the attributes in their order.
func (a *Ad) All() iter.Seq2[string, Expr] {
	return func(yield func(string, Expr) bool) {
		for i := range a.labels {
			if !yield(a.labels[i].name, a.exprs[i]) {
				return
			}
		}
	}
}

// Lookup returns the expression of an attribute, not evaluated.
func (a *Ad) Lookup(name string) (Expr, bool) {
	if i := a.labelIndex(hashName(name), name); i >= 0 {
		return a.exprs[i], true
	}
	return Expr{}, false
}

// Insert sets an attribute. A new one is appended; an existing one retains its position
// and spelling.
func (a *Ad) Insert(name string, e Expr) {
	h := hashName(name)
	if i := a.labelIndex(h, name); i >= 0 {
		a.exprs[i] = e
		return
	}
	a.unshareLabels()
	// growing from one to two, four and eight costs more than the memory that it saves
	if a.labels == nil {
		a.labels, a.exprs = make([]attrLabel, 0, maxUnhashed), make([]Expr, 0, maxUnhashed)
	}
	a.labels, a.exprs = append(a.labels, attrLabel{h, name}), append(a.exprs, e)
	a.hasReservedNames = a.hasReservedNames || scopeOf(name) != scopeNone
	if len(a.labels) > maxUnhashed {
		a.addToHash(len(a.labels) - 1)
	}
}

// Delete removes an attribute and reports whether it existed.
func (a *Ad) Delete(name string) bool {
	i := a.labelIndex(hashName(name), name)
	if i < 0 {
		return false
	}
	a.labels, a.exprs = append(a.labels[:i:i], a.labels[i+1:]...), append(a.exprs[:i:i], a.exprs[i+1:]...)
	a.hashTable, a.shared = nil, false
	if len(a.labels) > maxUnhashed {
		a.rehash()
	}
	return true
}

// Copy returns an ad with the same attributes, which can be changed without changing a.
func (a *Ad) Copy() *Ad {
	c := &Ad{labels: a.labels, exprs: make([]Expr, len(a.exprs), len(a.exprs)+4), hashTable: a.hashTable,
		shared: a.shared, hasReservedNames: a.hasReservedNames}
	copy(c.exprs, a.exprs)
	if !a.shared {
		c.shared = true
		c.unshareLabels()
	}
	return c
}

// unshareLabels copies shared labels and the shared table, so that the ad can change
// them.
func (a *Ad) unshareLabels() {
	if a.shared {
		a.labels = append(make([]attrLabel, 0, len(a.labels)+4), a.labels...)
		if a.hashTable != nil {
			a.hashTable = append([]uint32(nil), a.hashTable...)
		}
		a.shared = false
	}
}

// Update sets every attribute of other in a.
func (a *Ad) Update(other *Ad) {
	for i := range other.labels {
		a.Insert(other.labels[i].name, other.exprs[i])
	}
}

// labelIndex returns the index of a name in labels, or -1.
func (a *Ad) labelIndex(hash uint32, name string) int {
	if a.hashTable == nil {
		for i := range a.labels {
			if at := &a.labels[i]; at.hash == hash && foldEqual(at.name, name) {
				return i
			}
		}
		return -1
	}
	mask := uint32(len(a.hashTable) - 1)
	for p := hash & mask; a.hashTable[p] != 0; p = (p + 1) & mask {
		i := int(a.hashTable[p] - 1)
		if at := &a.labels[i]; at.hash == hash && foldEqual(at.name, name) {
			return i
		}
	}
	return -1
}

// addToHash puts attribute i into the hash table, which is at most half full.
func (a *Ad) addToHash(i int) {
	if a.hashTable == nil || 2*len(a.labels) > len(a.hashTable) {
		a.rehash()
		return
	}
	mask := uint32(len(a.hashTable) - 1)
	p := a.labels[i].hash & mask
	for a.hashTable[p] != 0 {
		p = (p + 1) & mask
	}
	a.hashTable[p] = uint32(i + 1)
}

func (a *Ad) rehash() {
	size := 64
	for size < 4*len(a.labels) {
		size *= 2
	}
	a.hashTable = make([]uint32, size)
	for i := range a.labels {
		mask := uint32(size - 1)
		p := a.labels[i].hash & mask
		for a.hashTable[p] != 0 {
			p = (p + 1) & mask
		}
		a.hashTable[p] = uint32(i + 1)
	}
}

// hashName returns the FNV-1a hash of the name in lower case.
func hashName(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(lower(name[i]))) * 16777619
	}
	return h ^ h>>15
}
