package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Measured is what lies below a directory.
type Measured struct {
	Used    int64   // bytes of disk: blocks count, not lengths, and each file and directory for one block at least
	Files   int     // files, directories and whatever else has a name; of several names of one file, each
	Largest []Entry // what takes most of it at the top, at most three, the largest first, with their sizes
	Whole   bool    // all was looked at; else there is more
}

// Measure says how much disk what is below a directory takes. A file with several names counts once. The work is bounded, in time and by the most files
// that are looked at.
func (a *Agent) Measure(ctx context.Context, base string, most int) (Measured, error) {
	r, _, err := a.link.call(ctx, request{Op: opMeasure, Base: base, Bound: ListBound{Entries: most}}, nil)
	return Measured{Used: r.Size, Files: r.Files, Largest: r.Entries, Whole: !r.More}, err
}

// Bounds of a measurement.
const (
	maxLargest   = 3
	blockSize    = 512             // of st_blocks (stat(2))
	leastOfFile  = 4096            // bytes that a file counts for: its inode and its name take room, whatever is in it
	measureTime  = 8 * time.Second // then it ends with what it has
	measureEvery = 256             // files between two looks at the clock
)

// errEnough ends a walk.
var errEnough = errors.New("enough")

// measure adds up what is below base, following no link. What vanishes meanwhile counts nothing; a directory that its owner has closed to himself
// is opened while it is looked at, as it would be the place to hide things in.
func measure(base string, most int, stop *atomic.Bool) (r reply, err error) {
	if info, err := os.Lstat(base); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 && os.Geteuid() != 0 {
		os.Chmod(base, info.Mode()|0o700)
		defer os.Chmod(base, info.Mode())
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return reply{}, unreadable(base, err)
	}
	defer root.Close()
	m := measurer{tops: map[string]int64{}, seen: map[[2]uint64]bool{}, most: most, stop: stop, until: time.Now().Add(measureTime)}
	err = m.directory(root, "", 0)
	if err != nil && !errors.Is(err, errEnough) {
		return reply{}, unreadable(base, err)
	}
	r.Size, r.Files, r.More = m.size, m.count, err != nil
	for name, size := range m.tops {
		if printable(name) {
			r.Entries = append(r.Entries, Entry{Name: name, Size: size})
		}
	}
	slices.SortFunc(r.Entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name)) })
	r.Entries = r.Entries[:min(len(r.Entries), maxLargest)]
	return r, nil
}

// measurer adds up a tree.
type measurer struct {
	tops  map[string]int64
	seen  map[[2]uint64]bool // files with several names
	count int
	most  int
	stop  *atomic.Bool
	until time.Time
	size  int64
}

// directory adds up what is in a directory, which counts for top, a name at the top of the whole; empty: it is the whole.
func (m *measurer) directory(root *os.Root, top string, depth int) error {
	if depth > maxTreeDepth {
		return errEnough
	}
	names, err := namesIn(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if m.count++; m.count > m.most || m.stop.Load() || m.count%measureEvery == 0 && time.Now().After(m.until) {
			return errEnough
		}
		info, err := root.Lstat(name)
		if err != nil {
			continue
		}
		of := cmp.Or(top, name)
		m.add(of, info)
		if !info.IsDir() {
			continue
		}
		err = opened(root, name, info.Mode(), 0o700, name, func() error {
			sub, err := root.OpenRoot(name)
			if err != nil {
				return err
			}
			defer sub.Close()
			return m.directory(sub, of, depth+1)
		})
		if errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

func (m *measurer) add(top string, info fs.FileInfo) {
	st := info.Sys().(*syscall.Stat_t)
	if id := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !info.IsDir() {
		if m.seen[id] {
			return
		}
		m.seen[id] = true
	}
	size := max(st.Blocks*blockSize, leastOfFile)
	m.tops[top] += size
	m.size += size
}
