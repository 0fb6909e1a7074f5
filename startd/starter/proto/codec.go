package proto

import "encoding/binary"

// MaxFrame bounds the body of a frame, in bytes: execve(2) accepts no more for arguments
// and environment together.
const MaxFrame = 8 << 20

// bodyWriter appends fields to a body.
type bodyWriter struct{ buffer []byte }

func (w *bodyWriter) num(n uint64)   { w.buffer = binary.AppendUvarint(w.buffer, n) }
func (w *bodyWriter) signed(n int64) { w.buffer = binary.AppendVarint(w.buffer, n) }
func (w *bodyWriter) text(s string)  { w.num(uint64(len(s))); w.buffer = append(w.buffer, s...) }
func (w *bodyWriter) key(a TaskAttempt) {
	w.num(a.Job)
	w.num(uint64(a.Index))
	w.num(uint64(a.Number))
}
func (w *bodyWriter) flag(set bool) {
	if set {
		w.num(1)
	} else {
		w.num(0)
	}
}

func (w *bodyWriter) texts(list []string) {
	w.num(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

func (w *bodyWriter) nums(list []uint32) {
	w.num(uint64(len(list)))
	for _, n := range list {
		w.num(uint64(n))
	}
}

// bodyReader reads fields from a body. Past the end every field is zero; malformed input
// sets failed.
type bodyReader struct {
	buffer []byte
	failed bool
}

func (r *bodyReader) num() uint64 {
	if len(r.buffer) == 0 || r.failed {
		return 0
	}
	n, size := binary.Uvarint(r.buffer)
	if size <= 0 {
		r.failed = true
		return 0
	}
	r.buffer = r.buffer[size:]
	return n
}

func (r *bodyReader) signed() int64 {
	n := r.num()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *bodyReader) small() uint32 {
	n := r.num()
	if n > 1<<32-1 {
		r.failed = true
	}
	return uint32(n)
}

func (r *bodyReader) flag() bool { return r.num() != 0 }
func (r *bodyReader) key() TaskAttempt {
	return TaskAttempt{Job: r.num(), Index: r.small(), Number: r.small()}
}

func (r *bodyReader) text() string {
	n := r.num()
	if n > uint64(len(r.buffer)) {
		r.failed = true
		return ""
	}
	s := string(r.buffer[:n])
	r.buffer = r.buffer[n:]
	return s
}

// bytes reads a text that the reader is to clear.
func (r *bodyReader) bytes() []byte {
	n := r.num()
	if n > uint64(len(r.buffer)) {
		r.failed = true
		return nil
	}
	b := append([]byte(nil), r.buffer[:n]...)
	r.buffer = r.buffer[n:]
	return b
}

// count reads the length of a list whose elements take at least a byte each.
func (r *bodyReader) count() int {
	n := r.num()
	if n > uint64(len(r.buffer)) {
		r.failed = true
		return 0
	}
	return int(n)
}

func (r *bodyReader) texts() []string {
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

func (r *bodyReader) nums() []uint32 {
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
