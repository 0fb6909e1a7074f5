package proto

import "encoding/binary"

// MaxFrame bounds the body of a frame, in bytes: execve(2) takes no more for arguments and environment together.
const MaxFrame = 8 << 20

// writer appends fields to a body.
type writer struct{ b []byte }

func (w *writer) num(n uint64)   { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) signed(n int64) { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) text(s string)  { w.num(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) key(a Attempt)  { w.num(a.Job); w.num(uint64(a.Index)); w.num(uint64(a.Number)) }
func (w *writer) flag(set bool) {
	if set {
		w.num(1)
	} else {
		w.num(0)
	}
}

func (w *writer) texts(list []string) {
	w.num(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

func (w *writer) nums(list []uint32) {
	w.num(uint64(len(list)))
	for _, n := range list {
		w.num(uint64(n))
	}
}

// reader takes fields off a body. Past the end every field is zero; what cannot be a field at all sets bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) num() uint64 {
	if len(r.b) == 0 || r.bad {
		return 0
	}
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) signed() int64 {
	n := r.num()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) small() uint32 {
	n := r.num()
	if n > 1<<32-1 {
		r.bad = true
	}
	return uint32(n)
}

func (r *reader) flag() bool   { return r.num() != 0 }
func (r *reader) key() Attempt { return Attempt{Job: r.num(), Index: r.small(), Number: r.small()} }

func (r *reader) text() string {
	n := r.num()
	if n > uint64(len(r.b)) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// count reads the length of a list whose elements take at least a byte each.
func (r *reader) count() int {
	n := r.num()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) texts() []string {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, r.text())
	}
	return list
}

func (r *reader) nums() []uint32 {
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]uint32, 0, n)
	for range n {
		list = append(list, r.small())
	}
	return list
}
