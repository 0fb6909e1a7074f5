package export

import (
	"fmt"
	"iter"
	"math"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// timedStream is an iterator of records in the order of their times, with its next
// record.
type timedStream[T any] struct {
	name string
	next func() (T, error, bool)
	stop func()
	time func(*T) accounting.Millis
	head T
	at   accounting.Millis // time of head
	live bool              // there is a head
}

// openStream starts an iterator. A nil iterator has no records.
func openStream[T any](name string, records iter.Seq2[T, error], time func(*T) accounting.Millis) *timedStream[T] {
	if records == nil {
		records = func(func(T, error) bool) {}
	}
	s := &timedStream[T]{name: name, time: time, at: math.MinInt64}
	s.next, s.stop = iter.Pull2(records)
	return s
}

// advance takes the next record. Records out of order are an error: a merge would put
// them in the wrong place, and perhaps in the wrong file.
func (s *timedStream[T]) advance() error {
	last := s.at
	record, err, ok := s.next()
	s.head, s.live = record, ok
	if !ok {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if s.at = s.time(&s.head); s.at < last {
		return fmt.Errorf("%s: %w: a record of %d follows one of %d; read them in the order of time", s.name,
			roost.Invalid, s.at, last)
	}
	return nil
}
