package outputfile

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/roost-batch/roost/internal/checksum"
)

// TimeMark is how far a stream was written at an instant. A byte counts as written at the
// first mark behind it.
type TimeMark struct {
	Time   int64 // unix time in milliseconds
	Offset int64 // bytes of the stream
}

// TimeMarks say when the parts of a stream were written. Times and offsets rise from one
// mark to the next.
type TimeMarks []TimeMark

// Marks are at least markInterval apart. There are at most maxMarks. When they become too
// many, those go that are closer to their neighbours than a part of their age. So a time
// is exact to a second, or to about a hundredth of its age. A stream that is written to
// for a hundred days needs 1,550 marks.
const (
	markInterval = time.Second
	maxMarks     = 2048
	agePart      = 128
)

// add appends a mark. It does nothing if the stream is not longer than at the last mark;
// of a shorter one the marks that it does not have any more go.
func (m TimeMarks) add(at TimeMark) TimeMarks {
	for len(m) > 0 && m[len(m)-1].Offset > at.Offset {
		m = m[:len(m)-1]
	}
	if n := len(m); n > 0 {
		if m[n-1].Offset == at.Offset {
			return m
		}
		at.Time = max(at.Time, m[n-1].Time+1) // the clock was set back
	} else if at.Offset == 0 {
		return m
	}
	return append(m, at)
}

// end is the offset of the last mark.
func (m TimeMarks) end() int64 {
	if len(m) == 0 {
		return 0
	}
	return m[len(m)-1].Offset
}

// thin makes room for more marks where there are nearly too many. Those whose neighbours
// are closer than a part of their age go, and if need be than a larger part.
func (m TimeMarks) thin() TimeMarks {
	for part := int64(agePart); len(m) > maxMarks*7/8; part /= 2 {
		m = m.thinTo(max(part, 1))
		if part <= 1 {
			return m[max(len(m)-maxMarks/2, 0):]
		}
	}
	return m
}

// thinTo removes marks whose neighbours are closer to each other than a part of the
// mark's age.
func (m TimeMarks) thinTo(part int64) TimeMarks {
	last := m[len(m)-1]
	thinned := TimeMarks{m[0]}
	for i := 1; i < len(m)-1; i++ {
		gap := max(markInterval.Milliseconds(), (last.Time-m[i].Time)/part)
		if m[i+1].Time-thinned[len(thinned)-1].Time > gap {
			thinned = append(thinned, m[i])
		}
	}
	return append(thinned, last)
}

// Range returns which part of a stream was written from one instant to another, in unix
// milliseconds. 0 as until means the end, wherever that is.
func (m TimeMarks) Range(since, until int64) (start, end int64) {
	if i := sort.Search(len(m), func(i int) bool { return m[i].Time >= since }); i > 0 {
		start = m[i-1].Offset
	}
	if until == 0 {
		return start, math.MaxInt64
	}
	if i := sort.Search(len(m), func(i int) bool { return m[i].Time > until }); i > 0 {
		end = m[i-1].Offset
	}
	return start, end
}

// At returns when a byte of the stream was written, and where the part ends that was
// written then. What is behind the last mark is written now.
func (m TimeMarks) At(offset int64, now time.Time) (written, end int64) {
	i := sort.Search(len(m), func(i int) bool { return m[i].Offset > offset })
	if i == len(m) {
		return now.UnixMilli(), math.MaxInt64
	}
	return m[i].Time, m[i].Offset
}

// Split calls send with the parts of a piece of a stream, and when each was written. The
// piece begins at an offset.
func (m TimeMarks) Split(piece []byte, offset int64, now time.Time,
	send func(part []byte, offset, written int64) error) error {
	for len(piece) > 0 {
		written, end := m.At(offset, now)
		part := piece[:min(int64(len(piece)), end-offset)]
		if err := send(part, offset, written); err != nil {
			return err
		}
		piece, offset = piece[len(part):], offset+int64(len(part))
	}
	return nil
}

// Before returns the marks of the stream as far as an offset.
func (m TimeMarks) Before(end int64) TimeMarks {
	i := sort.Search(len(m), func(i int) bool { return m[i].Offset >= end })
	if i == len(m) || m[i].Offset == end {
		return m[:min(i+1, len(m))]
	}
	return append(slices.Clone(m[:i]), TimeMark{m[i].Time, end})
}

// markRecord is the size of a stored mark: its time, its offset, and a checksum of the
// two. A record is read alone: a damaged one costs the exactness of a time.
const markRecord = 16 + checksum.Size

// Encode returns the marks as they are stored and sent.
func (m TimeMarks) Encode() []byte {
	b := make([]byte, 0, len(m)*markRecord)
	for _, mark := range m {
		b = appendMark(b, mark)
	}
	return b
}

func appendMark(b []byte, mark TimeMark) []byte {
	begin := len(b)
	b = binary.BigEndian.AppendUint64(b, uint64(mark.Time))
	b = binary.BigEndian.AppendUint64(b, uint64(mark.Offset))
	return binary.BigEndian.AppendUint32(b, checksum.Of(b[begin:]))
}

// DecodeTimeMarks reads marks, whoever sent them. What is no mark, or does not follow the
// one before it, is left out.
func DecodeTimeMarks(b []byte) (m TimeMarks) {
	for ; len(b) >= markRecord && len(m) < maxMarks; b = b[markRecord:] {
		mark := TimeMark{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
		if binary.BigEndian.Uint32(b[16:]) != checksum.Of(b[:16]) || mark.Time <= 0 || mark.Offset <= 0 {
			continue
		}
		if n := len(m); n == 0 || mark.Time > m[n-1].Time && mark.Offset > m[n-1].Offset {
			m = append(m, mark)
		}
	}
	return m
}
