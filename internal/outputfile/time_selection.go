package outputfile

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
)

// TimeRequest is what a reader wants to know of the times of a stream.
type TimeRequest interface {
	GetSinceMs() int64 // only what was written then or later, in unix milliseconds; 0: all
	GetUntilMs() int64 // only what was written until then; 0: all
	GetTimes() bool    // when each part was written, where that is known
}

// SelectsByTime reports whether a reader wants a part of a stream that times select.
func SelectsByTime(r TimeRequest) bool { return r.GetSinceMs() > 0 || r.GetUntilMs() > 0 }

// TimeSelection is the part of a stream that a reader wants: from Start to before End.
type TimeSelection struct {
	Start, End int64
	marks      TimeMarks
	timed      bool // parts go with their times
}

// SelectAll is the whole stream, without times.
func SelectAll() TimeSelection { return TimeSelection{End: math.MaxInt64} }

// Select returns the part of a stream with these marks that a reader wants.
func (m TimeMarks) Select(r TimeRequest) TimeSelection {
	s := TimeSelection{marks: m, timed: SelectsByTime(r) || r.GetTimes()}
	s.Start, s.End = m.Range(r.GetSinceMs(), r.GetUntilMs())
	return s
}

// Cut returns as much of a piece of the stream as is wanted of it.
func (s *TimeSelection) Cut(piece []byte, offset int64) []byte {
	return piece[:max(min(int64(len(piece)), s.End-offset), 0)]
}

// Send calls send with a piece of the stream, in parts with their times. If nobody wants
// times it is one part, with time 0.
func (s *TimeSelection) Send(piece []byte, offset int64, send func(part []byte, offset, written int64) error) error {
	if !s.timed {
		return send(piece, offset, 0)
	}
	return s.marks.Split(piece, offset, time.Now(), send)
}

// UnknownTimesError is the refusal to select by time from what a task wrote to a file
// itself.
func UnknownTimesError(path string) error {
	return fmt.Errorf("%w: the job sends this output to %s, and when the parts of that file were written is not "+
		"known; ask without a time, or give the job no file for it", roost.Conflict, path)
}
