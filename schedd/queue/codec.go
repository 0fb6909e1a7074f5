package queue

import (
	"encoding/binary"
	"fmt"

	"github.com/roost-batch/roost"
)

// codecVersion stands in front of every event and snapshot on disk.
const codecVersion = 1

// AppendEvent adds the event's form on disk to buf.
func AppendEvent(buf []byte, e *Event) []byte {
	w := writer{append(buf, codecVersion, byte(e.What))}
	w.signed(e.Time)
	w.number(e.Job)
	switch e.What {
	case Submitted:
		w.submission(e.Submission)
	case Assigned, Started, Ended, Lost:
		w.number(uint64(e.Index))
		w.number(uint64(e.Attempt))
	}
	switch e.What {
	case Assigned:
		w.text(e.Node)
		w.text(e.Address)
		w.number(e.Claim)
	case Ended:
		w.exit(e.Exit)
	case Lost:
		w.text(e.Reason)
	case Held, Released, RemovalRequested, Retried:
		w.ranges(e.Ranges)
		w.text(e.By)
		w.text(e.Reason)
		w.signed(int64(e.Code))
		w.truth(e.Force)
	}
	return w.b
}

// DecodeEvent reads what AppendEvent wrote, all of it.
func DecodeEvent(b []byte) (Event, error) {
	r := scanner{b: b}
	r.version()
	e := Event{What: What(r.byte()), Time: r.signed(), Job: r.number()}
	switch e.What {
	case Submitted:
		e.Submission = r.submission()
	case Assigned, Started, Ended, Lost:
		e.Index, e.Attempt = r.index(), roost.Attempt(r.index())
	case Held, Released, RemovalRequested, Retried, Due, Purged:
	default:
		r.fail(fmt.Sprintf("%v is no event of this version", e.What))
	}
	switch e.What {
	case Assigned:
		e.Node, e.Address, e.Claim = r.text(), r.text(), r.number()
	case Ended:
		e.Exit = r.exit()
	case Lost:
		e.Reason = r.text()
	case Held, Released, RemovalRequested, Retried:
		e.Ranges, e.By, e.Reason, e.Code, e.Force = r.ranges(), r.text(), r.text(), int(r.signed()), r.truth()
	}
	return e, r.end("event")
}

// writer lays out numbers as varints and texts behind their length.
type writer struct{ b []byte }

func (w *writer) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) signed(n int64)  { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) truth(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

func (w *writer) ranges(list []Range) {
	w.number(uint64(len(list)))
	for _, r := range list {
		w.number(uint64(r.First))
		w.number(uint64(r.Last - r.First))
	}
}

func (w *writer) exit(x *Exit) {
	w.signed(int64(x.Code))
	w.signed(int64(x.Signal))
	w.truth(x.Core)
	w.number(uint64(x.Cause))
	w.text(x.Reason)
	for _, n := range [...]int64{x.Wall, x.User, x.System, x.MaxRSS, x.Output.Stdout, x.Output.Stderr, int64(x.Output.Files)} {
		w.signed(n)
	}
	w.text(x.Output.Spool)
}

func (w *writer) waits(list []Wait) {
	w.number(uint64(len(list)))
	for _, wait := range list {
		w.number(uint64(wait.Type))
		w.number(wait.Job)
	}
}

func (w *writer) submission(s *Submission) {
	w.text(s.Key)
	w.number(uint64(s.Part))
	w.number(uint64(s.Parts))
	w.text(s.Owner)
	w.number(uint64(s.UID))
	w.number(uint64(s.GID))
	w.text(s.Ad)
	w.number(uint64(s.Count))
	w.number(uint64(len(s.Columns)))
	for _, c := range s.Columns {
		w.text(c.Name)
		w.number(uint64(len(c.Values)))
		for _, v := range c.Values {
			w.text(v)
		}
	}
	w.waits(s.Waits)
}

// scanner reads what a writer laid out. The first mistake sticks, and everything after it reads as nothing.
type scanner struct {
	b   []byte
	err error
}

func (r *scanner) fail(cause string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", roost.Internal, cause)
	}
	r.b = nil
}

func (r *scanner) end(what string) error {
	if r.err == nil && len(r.b) > 0 {
		r.fail(fmt.Sprintf("%d bytes are left over", len(r.b)))
	}
	if r.err != nil {
		return fmt.Errorf("decode %s: %w", what, r.err)
	}
	return nil
}

func (r *scanner) version() {
	if v := r.byte(); r.err == nil && v != codecVersion {
		r.fail(fmt.Sprintf("it has version %d, and this program reads version %d", v, codecVersion))
	}
}

func (r *scanner) byte() byte {
	if len(r.b) == 0 {
		r.fail("it is cut short")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *scanner) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail("a number is cut short")
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *scanner) signed() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.fail("a number is cut short")
		return 0
	}
	r.b = r.b[size:]
	return n
}

// index reads a number that is no larger than what counts tasks.
func (r *scanner) index() int {
	n := r.number()
	if n > 1<<31-1 {
		r.fail("a number is too large")
		return 0
	}
	return int(n)
}

// length reads how many things of at least size bytes follow.
func (r *scanner) length(size int) int {
	n := r.number()
	if n > uint64(len(r.b)/size) {
		r.fail("it is cut short")
		return 0
	}
	return int(n)
}

func (r *scanner) text() string {
	n := r.length(1)
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *scanner) truth() bool { return r.byte() != 0 }

func (r *scanner) ranges() (list []Range) {
	for range r.length(2) {
		first := r.index()
		list = append(list, Range{first, first + r.index()})
	}
	return list
}

func (r *scanner) exit() *Exit {
	x := &Exit{Code: int32(r.signed()), Signal: int32(r.signed()), Core: r.truth(), Cause: Cause(r.number()), Reason: r.text()}
	x.Wall, x.User, x.System, x.MaxRSS = r.signed(), r.signed(), r.signed(), r.signed()
	x.Output = Output{Stdout: r.signed(), Stderr: r.signed(), Files: int(r.signed()), Spool: r.text()}
	return x
}

func (r *scanner) waits() (list []Wait) {
	for range r.length(2) {
		w := Wait{WaitType(r.number()), r.number()}
		if w.Type < AfterOK || w.Type > After {
			r.fail("a dependency has no known type")
			return nil
		}
		list = append(list, w)
	}
	return list
}

func (r *scanner) submission() *Submission {
	s := &Submission{Key: r.text(), Part: r.index(), Parts: r.index(), Owner: r.text(), UID: uint32(r.number()), GID: uint32(r.number())}
	s.Ad, s.Count = r.text(), r.index()
	for range r.length(2) {
		c := Column{Name: r.text()}
		if n := r.length(1); n > 0 {
			c.Values = make([]string, n)
		}
		for i := range c.Values {
			c.Values[i] = r.text()
		}
		s.Columns = append(s.Columns, c)
	}
	s.Waits = r.waits()
	return s
}
