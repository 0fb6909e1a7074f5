package journal

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/dbfile"
)

// written is the file of a log with some jobs, checkpointed and not.
func written(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newStory(3, q)
	for i := range 60 {
		var c *Checkpoint
		events := s.step(t)
		if i%25 == 24 {
			c = checkpoint(q)
		}
		if err := j.Append(events, c); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	b, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reopened opens a log of the given bytes.
func reopened(t testing.TB, b []byte) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	j, _, err := Open(dir, host)
	if err == nil {
		j.Close()
	}
	return err
}

// plain fails unless an error says which file is wrong and what one can do about it.
func plain(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), FileName) || strings.Contains(err.Error(), "set the file aside") {
		t.Errorf("got %v", err)
	}
}

func TestDamage(t *testing.T) {
	whole := written(t)
	t.Run("garbage", func(t *testing.T) {
		plain(t, reopened(t, []byte(strings.Repeat("this is no log\n", 3000))))
	})
	t.Run("zeroes", func(t *testing.T) { plain(t, reopened(t, make([]byte, len(whole)))) })
	t.Run("text", func(t *testing.T) { plain(t, reopened(t, []byte("x"))) })
	for _, keep := range []int{1, 100, 4096, 8192, 3 * 4096, len(whole) / 2, len(whole) - 4096} {
		if err := reopened(t, whole[:keep]); err != nil {
			plain(t, err)
		} else if keep < 4*4096 {
			t.Errorf("the first %d of %d bytes were taken for a whole log", keep, len(whole))
		}
	}
}

// Wherever a page is damaged, opening gives a clear error or a queue, never a panic.
func TestDamagedPages(t *testing.T) {
	whole := written(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		b := append([]byte(nil), whole...)
		at := rng.IntN(len(b) - 64)
		for i := range 1 + rng.IntN(64) {
			b[at+i] = byte(rng.Uint32())
		}
		if err := reopened(t, b); err != nil {
			plain(t, err)
		}
	}
}

// What stands in the file is damaged, though the file is not: a batch that stops short, an event of a job that is not there, a later format.
func TestDamagedContents(t *testing.T) {
	for name, write := range map[string]func(tx *dbfile.Tx) error{
		"short batch":  func(tx *dbfile.Tx) error { return tx.Bucket(bucketLog).Put(be(7), []byte{200, 1}) },
		"no event":     func(tx *dbfile.Tx) error { return tx.Bucket(bucketLog).Put(be(7), []byte{2, 1, 2}) },
		"unknown job":  func(tx *dbfile.Tx) error { return tx.Bucket(bucketLog).Put(be(7), []byte{5, 8, 3, 24, 99, 40}) },
		"short number": func(tx *dbfile.Tx) error { return tx.Bucket(bucketLog).Put([]byte{1}, nil) },
		"no snapshot":  func(tx *dbfile.Tx) error { return tx.Bucket(bucketJobs).Put(be(1), []byte("nonsense")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, _ := open(t, dir)
			if err := j.db.Update(write); err != nil {
				t.Fatal(err)
			}
			j.Close()
			j, _, err := Open(dir, host)
			plain(t, err)
			if err == nil {
				j.Close()
			}
		})
	}
}
