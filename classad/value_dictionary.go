package classad

// valueDictionary numbers values, so that a column can hold them as integers and equal
// ones are compared and computed once. Numbers are not reused while the dictionary lives.
type valueDictionary struct {
	ids         map[string]uint32 // by text
	values      []Value
	canonicalID []uint32          // of a string: the first number whose string is equal without regard to case
	variants    []uint32          // of a leader: how many strings it leads
	folded      map[string]uint32 // the leader of each string in lower case
}

func newDictionary() *valueDictionary {
	return &valueDictionary{ids: map[string]uint32{}, folded: map[string]uint32{}}
}

// text is the number of a string.
func (d *valueDictionary) text(s string) uint32 {
	if id, ok := d.ids[s]; ok {
		return id
	}
	id := uint32(len(d.values))
	fold := lowerASCII(s)
	lead, ok := d.folded[fold]
	if !ok {
		lead = id
		d.folded[fold] = id
	}
	d.ids[s] = id
	d.values = append(d.values, StringValue(s))
	d.canonicalID = append(d.canonicalID, lead)
	d.variants = append(d.variants, 0)
	d.variants[lead]++
	return id
}

// other is the number of a value that is not a string, of which key is the text. The key
// may be changed afterwards.
func (d *valueDictionary) other(key []byte, v Value) uint32 {
	if id, ok := d.ids[string(key)]; ok {
		return id
	}
	id := uint32(len(d.values))
	d.ids[string(key)] = id
	d.values = append(d.values, v)
	return id
}
