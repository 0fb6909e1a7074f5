package roost

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestIndexes compares indexes with those counted one by one.
func TestIndexes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var parts []string
		var want []int
		for range 1 + r.IntN(5) {
			first, step := r.IntN(60), 1+r.IntN(4)
			last := first + r.IntN(8)
			text := fmt.Sprintf("%d-%d:%d", first, last, step)
			switch r.IntN(3) {
			case 0:
				last, text = first, fmt.Sprint(first)
			case 1:
				step, text = 1, fmt.Sprintf("%d-%d", first, last)
			}
			parts = append(parts, text)
			for i := first; i <= last; i += step {
				want = append(want, i)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		text := strings.Join(parts, ",")
		x, err := ParseArrayIndexes(text)
		if err != nil || x.Len() != len(want) {
			t.Fatalf("%s: %d indexes (%v), want %v", text, x.Len(), err, want)
		}
		for task, index := range want {
			if got := x.IndexOf(task); got != index {
				t.Fatalf("%s: task %d has %d, want %d", text, task, got, index)
			}
		}
		for index := range 80 {
			task, ok := x.TaskOf(index)
			if at, there := slices.BinarySearch(want, index); ok != there || ok && task != at {
				t.Fatalf("%s: index %d is of task %d, %v, want %d, %v", text, index, task, ok, at, there)
			}
		}
		for index := range 80 {
			if at, _ := slices.BinarySearch(want, index); x.FirstTaskFrom(index) != at {
				t.Fatalf("%s: the first from index %d on is of task %d, want %d", text, index,
					x.FirstTaskFrom(index), at)
			}
		}
		for range 5 {
			first := r.IntN(len(want))
			last := first + r.IntN(len(want)-first)
			some, err := ParseArrayIndexes(x.RangeText(first, last))
			if err != nil || some.Len() != last-first+1 || some.IndexOf(0) != want[first] ||
				some.IndexOf(some.Len()-1) != want[last] {
				t.Fatalf("%s: tasks %d to %d have %s (%v)", text, first, last, x.RangeText(first, last), err)
			}
		}
		again, err := ParseArrayIndexes(x.String())
		if err != nil || again.String() != x.String() || again.Len() != x.Len() {
			t.Fatalf("%s becomes %s, and that %s (%v)", text, x, again, err)
		}
		if plain := want[0] == 0 && want[len(want)-1] == len(want)-1; plain && strings.Count(x.String(), ",") == 0 &&
			!x.IsPlain() {
			t.Fatalf("%s is plain", text)
		}
	}
}

func TestIndexesRefused(t *testing.T) {
	for _, text := range []string{"", "x", "1,", "-1", "1-", "5-1", "1:2", "1-5:0", "1-5:", "1-5:x", "1 2",
		"0-10000000", "2147483648", "0-2000000,1-3", "1-9:2:2"} {
		if x, err := ParseArrayIndexes(text); err == nil {
			t.Errorf("%q was read as %v", text, x)
		}
	}
	if x, err := ParseArrayIndexes("1-10000000"); err != nil || x.Len() != MaxTasks ||
		x.IndexOf(MaxTasks-1) != MaxTasks {
		t.Errorf("ten million: %v", err)
	}
}
