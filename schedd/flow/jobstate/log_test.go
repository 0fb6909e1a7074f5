package jobstate

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestLog checks the lines of a node that is tried again.
func TestLog(t *testing.T) {
	l := New(4)
	l.Begin(10, 1, 7)
	l.Begin(10, 1, 7)
	l.BeginAttempt(3)
	l.Add(NodeEvent{11, 3, "A", "SUBMIT", "8.0", "local"})
	l.Add(NodeEvent{12, 3, "A", "JOB_FAILURE", "1", "a tag"})
	l.EndAttempt(3)
	again := Restore(l.State())
	for _, l := range []*Log{l, again} {
		l.BeginAttempt(3)
		l.Add(NodeEvent{13, 3, "A", "PRE_SCRIPT_STARTED", "", ""})
		l.End(14, 0)
		l.End(14, 0)
	}
	want := []string{"10 INTERNAL *** DAGMAN_STARTED 7.0 ***", "11 A SUBMIT 8.0 local - 5",
		"12 A JOB_FAILURE 1 a_tag - 5", "13 A PRE_SCRIPT_STARTED - - - 6", "14 INTERNAL *** DAGMAN_FINISHED 0 ***"}
	if got := l.Take(); !reflect.DeepEqual(got, want) || len(l.Take()) > 0 {
		t.Errorf("lines %q, want %q", got, want)
	}
	if !reflect.DeepEqual(l.State(), again.State()) {
		t.Errorf("restored %+v, want %+v", again.State(), l.State())
	}
	l.Written(2)
	if got := l.State().Lines; !reflect.DeepEqual(got, want[2:]) || len(l.Take()) > 0 {
		t.Errorf("%q are not known to be in the file", got)
	}
	l.Begin(15, 2, 7)
	if got := l.Take(); len(got) != 1 || !strings.HasSuffix(got[0], "STARTED 7.0 ***") {
		t.Errorf("a second run begins with %q", got)
	}
}

// TestBound checks that the lines that nobody writes do not grow without bound.
func TestBound(t *testing.T) {
	l := New(0)
	name := strings.Repeat("n", 1<<20)
	for range 40 {
		l.Add(NodeEvent{Name: name})
	}
	if l.size > maxRetained || len(l.lines) < 10 {
		t.Errorf("%d lines of %d bytes", len(l.lines), l.size)
	}
}

// TestMissing cuts files off at random places, and checks that each is complete again.
// Lines repeat often, and older lines may not be known any more.
func TestMissing(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var all []string
		repeats := rng.IntN(2) == 0
		for i := range 1 + rng.IntN(40) {
			if repeats && rng.IntN(3) == 0 {
				i = rng.IntN(3)
			}
			all = append(all, "line "+strconv.Itoa(i))
		}
		text := strings.Join(all, "\n") + "\n"
		before := ""
		if rng.IntN(2) == 0 {
			before = "of another run\n"
		}
		cut := rng.IntN(len(text) + 1)
		known := rng.IntN(strings.Count(text[:cut], "\n") + 1)
		if repeats {
			known = 0 // otherwise there are several answers
		}
		if known > 0 && known == strings.Count(text[:cut], "\n") {
			known-- // one line in the file is known, unless there is none
		}
		got := before + text[:cut] + Missing(before+text[:cut], all[known:])
		if got != before+text {
			t.Fatalf("seed %d: %q of %q, known from %d, became %q", seed, text[:cut], text, known, got)
		}
	}
}

// TestMissingElsewhere checks a file of which another writer has written the end.
func TestMissingElsewhere(t *testing.T) {
	if got := Missing("a\nb\nforeign\n", []string{"a", "b", "c"}); got != "c\n" {
		t.Errorf("missing is %q", got)
	}
	if got := Missing("", nil); got != "" {
		t.Errorf("missing of nothing is %q", got)
	}
}
