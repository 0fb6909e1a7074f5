package journal

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
)

// writtenLog returns the file of a log with some jobs, checkpointed and not.
func writtenLog(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(3, q)
	for i := range 60 {
		var c *QueueCheckpoint
		events := s.step(t)
		if i%25 == 24 {
			c = fullCheckpoint(q)
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

// reopenBytes opens a log with the given bytes.
func reopenBytes(t testing.TB, b []byte) error {
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

// checkErrorText fails unless an error names the damaged file and a remedy.
func checkErrorText(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), FileName) ||
		strings.Contains(err.Error(), "set the file aside") {
		t.Errorf("got %v", err)
	}
}

func TestDamage(t *testing.T) {
	whole := writtenLog(t)
	t.Run("garbage", func(t *testing.T) {
		checkErrorText(t, reopenBytes(t, []byte(strings.Repeat("this is no log\n", 3000))))
	})
	t.Run("zeroes", func(t *testing.T) { checkErrorText(t, reopenBytes(t, make([]byte, len(whole)))) })
	t.Run("text", func(t *testing.T) { checkErrorText(t, reopenBytes(t, []byte("x"))) })
	for _, retain := range []int{1, 100, 4096, 8192, 3 * 4096, len(whole) / 2, len(whole) - 4096} {
		if err := reopenBytes(t, whole[:retain]); err != nil {
			checkErrorText(t, err)
		} else if retain < 4*4096 {
			t.Errorf("the first %d of %d bytes were taken for a whole log", retain, len(whole))
		}
	}
}

// TestDamagedPages checks that a damaged page gives a clear error or a queue, never a
// panic.
func TestDamagedPages(t *testing.T) {
	whole := writtenLog(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		b := append([]byte(nil), whole...)
		at := rng.IntN(len(b) - 64)
		for i := range 1 + rng.IntN(64) {
			b[at+i] = byte(rng.Uint32())
		}
		if err := reopenBytes(t, b); err != nil {
			checkErrorText(t, err)
		}
	}
}

// TestDamagedContents checks invalid contents in an intact file. They are a truncated
// batch, an event of an unknown job, and a later format.
func TestDamagedContents(t *testing.T) {
	for name, write := range map[string]func(tx *boltfile.Tx) error{
		"short batch": func(tx *boltfile.Tx) error { return tx.Bucket(bucketLog).Put(bigEndian(7), []byte{200, 1}) },
		"no event":    func(tx *boltfile.Tx) error { return tx.Bucket(bucketLog).Put(bigEndian(7), []byte{2, 1, 2}) },
		"unknown job": func(tx *boltfile.Tx) error {
			return tx.Bucket(bucketLog).Put(bigEndian(7), []byte{5, 8, 3, 24, 99, 40})
		},
		"short number": func(tx *boltfile.Tx) error { return tx.Bucket(bucketLog).Put([]byte{1}, nil) },
		"no snapshot": func(tx *boltfile.Tx) error {
			return tx.Bucket(bucketJobs).Put(bigEndian(1), []byte("nonsense"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, _ := open(t, dir)
			if err := j.db.Update(write); err != nil {
				t.Fatal(err)
			}
			j.Close()
			j, _, err := Open(dir, host)
			checkErrorText(t, err)
			if err == nil {
				j.Close()
			}
		})
	}
}
