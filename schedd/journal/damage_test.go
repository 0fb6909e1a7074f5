package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
)

// writtenLog returns the files of a journal with some jobs, checkpointed and not.
func writtenLog(t testing.TB) map[string][]byte {
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
		if err := appendWith(j, events, c); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	return readFiles(t, dir)
}

// reopenBytes opens a journal with the given bytes in one of its files.
func reopenBytes(t testing.TB, files map[string][]byte, name string, b []byte) error {
	t.Helper()
	dir := t.TempDir()
	files = maps.Clone(files)
	files[name] = b
	writeFiles(t, dir, files)
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
	files := writtenLog(t)
	for name, whole := range files {
		if strings.HasSuffix(name, ".mark") {
			continue
		}
		t.Run("garbage", func(t *testing.T) {
			checkErrorText(t, reopenBytes(t, files, name, []byte(strings.Repeat("this is no log\n", 3000))))
		})
		t.Run("zeroes", func(t *testing.T) { checkErrorText(t, reopenBytes(t, files, name, make([]byte, len(whole)))) })
		t.Run("text", func(t *testing.T) { checkErrorText(t, reopenBytes(t, files, name, []byte("x"))) })
		used := len(bytes.TrimRight(whole, "\x00"))
		for _, retain := range []int{1, 30, 100, 1000, 4096, 8192, 3 * 4096, used / 2, used - 1, len(whole) - 4096} {
			if err := reopenBytes(t, files, name, whole[:retain]); err != nil {
				checkErrorText(t, err)
			} else if retain < 4*4096 && retain < used {
				t.Errorf("the first %d of %d bytes of %s were taken for a whole file", retain, len(whole), name)
			}
		}
	}
}

// TestMissingFiles checks that a journal without one of its files is refused. One that
// was restored from a copy must be, too. A mark alone may be missing.
func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(3, q)
	var files []map[string][]byte
	for i := range 3 {
		for range 20 {
			if err := j.Append(s.step(t)); err != nil {
				t.Fatal(err)
			}
		}
		files = append(files, readFiles(t, dir))
		if i == 1 {
			if err := checkpoint(j, fullCheckpoint(q)); err != nil {
				t.Fatal(err)
			}
		}
	}
	j.Close()
	now := files[len(files)-1]
	refused := func(name string, files map[string][]byte) {
		t.Helper()
		writeFiles(t, dir, files)
		err := reopenIn(dir)
		checkErrorText(t, err)
		report, err := Repair(dir, host, epoch, false)
		if err != nil || report == nil || !strings.Contains(fmt.Sprint(report.Actions), "it is unknown which jobs") {
			t.Errorf("%s: got %v, %v", name, report, err)
		}
		if err := reopenIn(dir); err != nil {
			t.Errorf("%s: after the repair: %v", name, err)
		}
	}
	without := func(part string) map[string][]byte {
		some := maps.Clone(now)
		maps.DeleteFunc(some, func(name string, _ []byte) bool { return strings.HasPrefix(name, part) })
		return some
	}
	with := func(old map[string][]byte, part string) map[string][]byte {
		some := without(part)
		for name, text := range old {
			if strings.HasPrefix(name, part) {
				some[name] = text
			}
		}
		return some
	}
	refused("no log", without(LogName+"/"))
	noFile := without("nothing")
	delete(noFile, FileName)
	refused("no file", noFile)
	delete(noFile, FileName+".mark")
	refused("no file and no mark", noFile)
	refused("the log of before the checkpoint", with(files[1], LogName+"/"))
	old := maps.Clone(now)
	old[FileName] = files[1][FileName]
	refused("the file of before the checkpoint", old)
	segment := newestSegmentOf(now)
	old = maps.Clone(now)
	old[segment] = now[segment][:200]
	refused("the log without its end", old)
	for _, name := range []string{FileName + ".mark", LogName + ".mark"} {
		some := maps.Clone(now)
		delete(some, name)
		writeFiles(t, dir, some)
		j, again := open(t, dir)
		checkSameQueue(t, again, q)
		j.Close()
	}
}

// TestDamagedPages checks that a damaged page gives a clear error or a queue, never a
// panic.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	files := writtenLog(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 90 {
		name := FileName
		if i%3 == 0 {
			name = newestSegmentOf(files)
		}
		b := append([]byte(nil), files[name]...)
		at := rng.IntN(len(bytes.TrimRight(b, "\x00")) - 64)
		for i := range 1 + rng.IntN(64) {
			b[at+i] = byte(rng.Uint32())
		}
		if err := reopenBytes(t, files, name, b); err != nil {
			checkErrorText(t, err)
		}
	}
}

// newestSegmentOf returns the name of the last segment.
func newestSegmentOf(files map[string][]byte) (newest string) {
	for name := range files {
		if strings.HasPrefix(name, LogName+"/") {
			newest = max(newest, name)
		}
	}
	return newest
}

// TestDamagedContents checks invalid contents in an intact file. They are a truncated
// batch, an event of an unknown job, and a later format.
func TestDamagedContents(t *testing.T) {
	entry := func(batch []byte) func(*Journal) error {
		return func(j *Journal) error {
			if err := j.log.Write(batch); err != nil {
				return err
			}
			_, err := j.log.Sync()
			return err
		}
	}
	update := func(f func(*boltfile.Tx) error) func(*Journal) error {
		return func(j *Journal) error { return j.db.Update(f) }
	}
	for name, write := range map[string]func(*Journal) error{
		"short batch": entry([]byte{200, 1}),
		"no event":    entry([]byte{2, 1, 2}),
		"unknown job": entry(appendEvent(nil, []byte{8, 3, 24, 99, 40})),
		"no log":      update(func(tx *boltfile.Tx) error { return tx.Bucket(bucketCounters).Delete(keyLogID) }),
		"no snapshot": update(func(tx *boltfile.Tx) error {
			return tx.Bucket(bucketJobs).Put(bigEndian(1), []byte("nonsense"))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, _ := open(t, dir)
			if err := write(j); err != nil {
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
