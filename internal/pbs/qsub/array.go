package qsub

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// setArray parses OpenPBS's -J X-Y[:Z][%N] with X < Y, and Torque's -t with lists and
// single indexes.
func (s *JobSubmission) setArray(letter byte, v string) error {
	bad := IllegalValueError(letter)
	v, most, limited := strings.Cut(v, "%")
	s.maxRunning = 0
	if limited {
		n, err := strconv.Atoi(most)
		if err != nil || n < 1 {
			return bad
		}
		s.maxRunning = n
	}
	if letter == 'J' {
		span, _, _ := strings.Cut(v, ":")
		low, high, ranged := strings.Cut(span, "-")
		first, err1 := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		if !ranged || strings.Contains(v, ",") || err1 != nil || err2 != nil || first >= last {
			return bad
		}
	}
	indexes, err := roost.ParseArrayIndexes(v)
	if err != nil {
		return bad
	}
	s.Array, s.ArrayRange = &indexes, v
	return nil
}

// indexReference returns the reference to the array index in texts of the ad, or "".
func (s *JobSubmission) indexReference() string {
	switch {
	case s.Array == nil:
		return ""
	case s.Array.IsPlain():
		return "$(TaskIndex)"
	}
	return "$(ArrayIndex)"
}
