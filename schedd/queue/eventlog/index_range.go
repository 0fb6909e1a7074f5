package eventlog

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// IndexRange is the indexes First to Last, both included.
type IndexRange struct{ First, Last int }

func (r IndexRange) String() string {
	if r.Last == r.First {
		return strconv.Itoa(r.First)
	}
	return strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last)
}

func decodeRange(b []byte) (r IndexRange, err error) {
	err = eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			r.First = int(f.value)
		case 2:
			r.Last = int(f.value)
		}
		return nil
	})
	return r, err
}

// decodeTasks reads a range of tasks of a job that has that many. An error ends with the
// purpose.
func decodeTasks(b []byte, tasks int, purpose string) (IndexRange, error) {
	r, err := decodeRange(b)
	if err == nil && (r.First < 0 || r.Last < r.First || r.Last >= tasks) {
		err = fmt.Errorf("tasks %d to %d of %d%s", r.First, r.Last, tasks, purpose)
	}
	return r, err
}

// appendRanges adds ranges to a message, each as a field of that number.
func appendRanges(b []byte, field protowire.Number, ranges []IndexRange) []byte {
	for _, r := range ranges {
		b = appendMessage(b, field, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(r.First)), 2, uint64(r.Last))
		})
	}
	return b
}
