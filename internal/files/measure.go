package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Measure says how much disk what is below a directory takes, and which things at its top take most of it: at most three, the largest first, as
// entries with a size. Blocks count, not lengths, and a file with several names once. The work is bounded: whole is false when there are more
// files than are looked at, and then there is more than used.
func (a *Agent) Measure(ctx context.Context, base string) (used int64, largest []Entry, whole bool, err error) {
	r, _, err := a.link.call(ctx, request{Op: opMeasure, Base: base}, nil)
	return r.Size, r.Entries, !r.More, err
}

// Bounds of a measurement. An agent does one thing at a time, and others wait.
const (
	maxMeasured = 50_000 // files and directories
	maxLargest  = 3
	blockSize   = 512 // of st_blocks (stat(2))
)

// errEnough ends a walk.
var errEnough = errors.New("enough")

// measure adds up what is below base, following no link. What vanishes meanwhile counts nothing; a directory that its owner has closed to himself
// is opened while it is looked at, as it would be the place to hide things in.
func measure(base string) (r reply, err error) {
	if info, err := os.Lstat(base); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 && os.Geteuid() != 0 {
		os.Chmod(base, info.Mode()|0o700)
		defer os.Chmod(base, info.Mode())
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return reply{}, unreadable(base, err)
	}
	defer root.Close()
	m := measurer{tops: map[string]int64{}, seen: map[[2]uint64]bool{}}
	err = m.directory(root, "", 0)
	if err != nil && !errors.Is(err, errEnough) {
		return reply{}, unreadable(base, err)
	}
	r.Size, r.More = m.size, err != nil
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
		if m.count++; m.count > maxMeasured {
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
	m.tops[top] += st.Blocks * blockSize
	m.size += st.Blocks * blockSize
}
