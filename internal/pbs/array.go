package pbs

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// setArray reads OpenPBS's -J X-Y[:Z][%N] with X < Y, and Torque's -t with lists and single indexes.
func (s *submission) setArray(letter byte, v string) error {
	bad := illegal(letter)
	v, most, limited := strings.Cut(v, "%")
	s.atOnce = 0
	if limited {
		n, err := strconv.Atoi(most)
		if err != nil || n < 1 {
			return bad
		}
		s.atOnce = n
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
	indexes, err := roost.ParseIndexes(v)
	if err != nil {
		return bad
	}
	s.array, s.indices = &indexes, v
	return nil
}

// indexRef stands for the array index in the texts of the ad, or is empty.
func (s *submission) indexRef() string {
	switch {
	case s.array == nil:
		return ""
	case s.array.Plain():
		return "$(TaskIndex)"
	}
	return "$(ArrayIndex)"
}
