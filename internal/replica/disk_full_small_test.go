package replica

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost/internal/damage"
)

// TestFullDisk fills a small disk with a log, at the end of a segment or in the middle of
// one. It opens the log several times while the disk is full, and then makes room. All
// acknowledged entries are there, and the log can be used.
func TestFullDisk(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2, 3, 4, 26} { // with the last there is hardly room for the first segment
		t.Run(fmt.Sprint(seed), func(t *testing.T) { fillDisk(t, rand.New(rand.NewPCG(seed, 4))) })
	}
}

func fillDisk(t *testing.T, rng *rand.Rand) {
	size := segmentSize + rng.IntN(2*segmentSize)
	dir := damage.SmallDisk(t, "", size, 0o700)
	most := 1 + rng.IntN(128<<10)
	acknowledged := uint64(0)
	entry := func(index uint64) *raft.Log { // made from its index
		r := rand.New(rand.NewPCG(index, 5))
		return &raft.Log{Index: index, Term: 1, Data: bytes.Repeat([]byte{byte(index)}, 1+r.IntN(most))}
	}
	var wrong error
	open := func() (*diskStore, error) {
		s, err := openStore(dir, slog.New(slog.DiscardHandler), func(err error) { wrong = diskFullHint(dir, err) })
		if err != nil {
			return nil, diskFullHint(dir, err)
		}
		last, err := s.LastIndex()
		if err != nil || last < acknowledged {
			t.Fatalf("%d entries are left of %d: %v", last, acknowledged, err)
		}
		for index := uint64(1); index <= last; index++ {
			var got raft.Log
			if err := s.GetLog(index, &got); err != nil || !bytes.Equal(got.Data, entry(index).Data) {
				t.Fatalf("entry %d is not what it was: %v", index, err)
			}
		}
		acknowledged = last
		return s, nil
	}
	advised := func(err error) {
		if !strings.Contains(err.Error(), "make room in "+dir) {
			t.Errorf("after entry %d: %v", acknowledged, err)
		}
	}
	write := func(s *diskStore, until uint64) error {
		for acknowledged < until {
			var batch []*raft.Log
			for range 1 + rng.IntN(4) {
				batch = append(batch, entry(acknowledged+1+uint64(len(batch))))
			}
			if err := s.StoreLogs(batch); err != nil {
				return err
			}
			if acknowledged += uint64(len(batch)); rng.IntN(8) == 0 {
				if err := s.SetUint64([]byte("CurrentTerm"), acknowledged); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for range 5 { // the master restarts it again and again
		s, err := open()
		if err != nil {
			advised(err)
			continue
		}
		if err := write(s, 1<<40); err == nil || wrong == nil {
			t.Fatalf("the disk is never full: %v, %v", err, wrong)
		}
		advised(wrong)
		s.close()
	}
	if err := syscall.Mount("roost-test", dir, "tmpfs", syscall.MS_REMOUNT,
		fmt.Sprintf("size=%d", size+8*segmentSize)); err != nil {
		t.Fatal(err)
	}
	s, err := open()
	if err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	before, used := acknowledged, usedBelow(t, dir)
	for usedBelow(t, dir) < used+2*segmentSize {
		if err := write(s, acknowledged+10); err != nil {
			t.Fatalf("there is room again: %v", err)
		}
	}
	s.close()
	if s, err = open(); err != nil {
		t.Fatal(err)
	}
	s.close()
	t.Logf("%d entries before, %d after", before, acknowledged)
}

func usedBelow(t *testing.T, dir string) (bytes int64) {
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes
}
