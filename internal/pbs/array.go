package pbs

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// array is the index of every task: first, first+step, … or a list of Torque's.
type array struct {
	first, step, count int
	list               []int // instead, when the indexes are no such row
}

func (a *array) index(task int) int {
	if a.list != nil {
		return a.list[task]
	}
	return a.first + task*a.step
}

// maxListed bounds the indexes of a Torque list, which are kept one by one.
const maxListed = 1_000_000

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
	s.indices = v
	parts := strings.Split(v, ",")
	if letter == 'J' && len(parts) > 1 {
		return bad
	}
	if len(parts) == 1 {
		a, last, ok := parseRow(parts[0])
		if !ok || letter == 'J' && last == a.first {
			return bad
		}
		s.array = a
		return nil
	}
	seen, all := map[int]bool{}, &array{}
	for _, part := range parts {
		a, _, ok := parseRow(strings.TrimSpace(part))
		if !ok || len(all.list)+a.count > maxListed {
			return bad
		}
		for i := range a.count {
			if n := a.index(i); !seen[n] {
				seen[n] = true
				all.list = append(all.list, n)
			}
		}
	}
	all.count = len(all.list)
	s.array = all
	return nil
}

// parseRow reads "X", "X-Y" and "X-Y:Z".
func parseRow(s string) (row *array, last int, ok bool) {
	s, step, stepped := strings.Cut(s, ":")
	low, high, ranged := strings.Cut(s, "-")
	if !ranged {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 31)
	end, err2 := strconv.ParseUint(high, 10, 31)
	by := uint64(1)
	if stepped {
		var err error
		if by, err = strconv.ParseUint(step, 10, 31); err != nil || by < 1 || !ranged {
			return nil, 0, false
		}
	}
	if err1 != nil || err2 != nil || end < first || (end-first)/by+1 > roost.MaxTasks {
		return nil, 0, false
	}
	return &array{first: int(first), step: int(by), count: int((end-first)/by + 1)}, int(end), true
}
