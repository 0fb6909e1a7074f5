package outputfile

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/damage"
)

// writtenStream is a stream of which each byte's time is known.
type writtenStream struct {
	path  string
	log   TimeLog
	now   time.Time
	bytes []int64 // unix milliseconds at which each was written
}

// append writes n bytes now.
func (s *writtenStream) append(t *testing.T, n int) {
	t.Helper()
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(s.path, s.now, s.now); err != nil {
		t.Fatal(err)
	}
	s.bytes = append(s.bytes, slices.Repeat([]int64{s.now.UnixMilli()}, n)...)
}

func (s *writtenStream) record(t *testing.T) {
	t.Helper()
	if err := s.log.Record(s.path, s.now); err != nil {
		t.Fatal(err)
	}
}

// TestTimesOfStream writes a stream at drawn times, with a new log now and then, as when
// the daemon starts again. What was written since an instant begins at most a second's
// output early, and what was written until one is never more than that.
func TestTimesOfStream(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &writtenStream{path: filepath.Join(t.TempDir(), "out"), now: time.UnixMilli(1_800_000_000_000)}
		for range 300 {
			s.now = s.now.Add(time.Duration(rng.IntN(400)) * time.Millisecond)
			if rng.IntN(3) > 0 {
				s.append(t, 1+rng.IntN(5))
			}
			if rng.IntN(20) == 0 {
				s.now = s.now.Add(time.Duration(rng.IntN(3600)) * time.Second)
			}
			s.record(t)
			if rng.IntN(30) == 0 {
				s.log = TimeLog{}
			}
		}
		marks, err := ReadTimeMarks(s.path, s.now)
		if err != nil {
			t.Fatal(err)
		}
		if end := marks.end(); end != int64(len(s.bytes)) {
			t.Fatalf("seed %d: the marks end at %d of %d", seed, end, len(s.bytes))
		}
		for range 200 {
			at := s.bytes[rng.IntN(len(s.bytes))] + int64(rng.IntN(3)) - 1
			since, end := marks.Range(at, 0)
			first := int64(slices.IndexFunc(s.bytes, func(b int64) bool { return b >= at }))
			if first < 0 {
				first = int64(len(s.bytes))
			}
			if since > first || end != math.MaxInt64 {
				t.Fatalf("seed %d: since %d begins at %d, and the first byte is %d", seed, at, since, first)
			}
			if since < first && s.bytes[since] < at-2000 {
				t.Fatalf("seed %d: since %d has what was written %d ms before", seed, at, at-s.bytes[since])
			}
			if _, until := marks.Range(0, at); until > 0 && s.bytes[until-1] > at {
				t.Fatalf("seed %d: until %d has what was written %d ms later", seed, at, s.bytes[until-1]-at)
			}
		}
	}
}

// TestTimesAreBounded has a stream that is written to for a hundred days. The marks stay
// few, and the time of a byte exact to a part of its age.
func TestTimesAreBounded(t *testing.T) {
	const seconds, step = 100 * 24 * 3600, 10
	var m TimeMarks
	for i := int64(1); i <= seconds/step; i++ {
		if m = m.add(TimeMark{i * step * 1000, i}); len(m) > maxMarks {
			m = m.thin()
		}
	}
	if len(m) > maxMarks {
		t.Fatalf("%d marks, want at most %d", len(m), maxMarks)
	}
	for i, mark := range m[1:] {
		gap, age := mark.Time-m[i].Time, m[len(m)-1].Time-m[i].Time
		if gap > max(step*2000, age/(agePart/2)) {
			t.Fatalf("a gap of %d ms is %d ms old", gap, age)
		}
	}
	m = m[:0]
	for i := int64(1); i <= maxMarks; i++ { // ages of which each mark is worth its place
		m = append(m, TimeMark{int64(math.Pow(1.004, float64(i)) * 1e5 * float64(i)), i})
	}
	if m = m.thin(); len(m) > maxMarks*7/8 {
		t.Errorf("%d marks are left, and there is no room for more", len(m))
	}
}

// TestTimesOfCutStream has a file become shorter, and the clock be set back. The marks go
// with the bytes, and times still rise.
func TestTimesOfCutStream(t *testing.T) {
	s := &writtenStream{path: filepath.Join(t.TempDir(), "out"), now: time.UnixMilli(1_000_000)}
	for range 3 {
		s.now = s.now.Add(time.Second)
		s.append(t, 10)
		s.record(t)
	}
	if err := os.Truncate(s.path, 15); err != nil {
		t.Fatal(err)
	}
	s.now = time.UnixMilli(500_000)
	if err := os.Chtimes(s.path, s.now, s.now); err != nil {
		t.Fatal(err)
	}
	s.record(t)
	want := TimeMarks{{1_001_000, 10}, {1_001_001, 15}}
	for _, from := range []*TimeLog{&s.log, {}} {
		if err := from.Record(s.path, s.now); err != nil || !slices.Equal(from.marks, want) {
			t.Errorf("got %v, %v, want %v", from.marks, err, want)
		}
	}
	if got := want.Before(12); !slices.Equal(got, TimeMarks{{1_001_000, 10}, {1_001_001, 12}}) {
		t.Errorf("before 12: %v", got)
	}
	if got := want.Before(10); !slices.Equal(got, want[:1]) {
		t.Errorf("before 10: %v", got)
	}
}

// TestSplit checks that the parts of a piece have their times. Together they are the
// piece.
func TestSplit(t *testing.T) {
	m, got := TimeMarks{{1000, 3}, {2000, 5}}, ""
	err := m.Split([]byte("bcdefg"), 1, time.UnixMilli(9000), func(part []byte, offset, written int64) error {
		got += fmt.Sprintf("%d:%s@%d ", offset, part, written)
		return nil
	})
	if want := "1:bc@1000 3:de@2000 5:fg@9000 "; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestDamage damages stored marks. What is read are marks that were stored, in their
// order, and the next record makes the file whole.
func TestDamage(t *testing.T) {
	var m TimeMarks
	for i := range int64(100) {
		m = append(m, TimeMark{1000 + i*1000, 7 + i*i})
	}
	path, rng := filepath.Join(t.TempDir(), "out"), rand.New(rand.NewPCG(1, 1))
	if err := os.WriteFile(path, make([]byte, m.end()+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for range damage.TrialCount(t, 300) {
		what, b := damage.DamageOnce(rng, m.Encode())
		next := 0
		read := DecodeTimeMarks(b)
		for _, mark := range read {
			i := slices.Index(m, mark)
			if i < next {
				t.Fatalf("%s: read %v", what, mark)
			}
			next = i + 1
		}
		if err := os.WriteFile(path+TimesSuffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var l TimeLog
		if err := l.Record(path, time.Now()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path + TimesSuffix)
		if err != nil || !bytes.Equal(b, l.marks.Encode()) || len(l.marks) != len(read)+1 {
			t.Fatalf("%s: %d marks are stored, %d were read, %v", what, len(b)/markRecord, len(read), err)
		}
	}
}
