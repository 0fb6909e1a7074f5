package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
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

// measure adds up what is below base, following no link. What vanishes meanwhile, or may not be looked into, counts nothing.
func measure(base string) (r reply, err error) {
	tops, seen, count := map[string]int64{}, map[[2]uint64]bool{}, 0
	err = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if path == base {
			return err
		}
		if count++; count > maxMeasured {
			return errEnough
		}
		info, ierr := d.Info()
		if err != nil || ierr != nil {
			return nil
		}
		st := info.Sys().(*syscall.Stat_t)
		if id := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !d.IsDir() {
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		top, _, _ := strings.Cut(path[len(base)+1:], "/")
		tops[top] += st.Blocks * blockSize
		r.Size += st.Blocks * blockSize
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return reply{}, unreadable(base, err)
	}
	r.More = err != nil
	for name, size := range tops {
		if printable(name) {
			r.Entries = append(r.Entries, Entry{Name: name, Size: size})
		}
	}
	slices.SortFunc(r.Entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name)) })
	r.Entries = r.Entries[:min(len(r.Entries), maxLargest)]
	return r, nil
}
