package userfiles

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

// TreeSize is the size of a directory's contents.
type TreeSize struct {
	// bytes on disk: blocks and not lengths, and at least minFileSize for each file and
	// directory
	DiskUsed int64
	Files    int             // names of files, directories and others; each name of a file counts
	Largest  []TransferEntry // the largest entries at the top, at most three, largest first, with their sizes
	Complete bool            // everything was counted; otherwise there is more
}

// Measure returns how much disk the contents of a directory use. A file with several
// names counts once. The work is bounded in time, and by the most files to count.
func (a *Agent) Measure(ctx context.Context, base string, most int) (TreeSize, error) {
	r, _, err := a.link.call(ctx, agentRequest{Op: opMeasure, Base: base, Bound: ListLimit{Entries: most}}, nil)
	return TreeSize{DiskUsed: r.Size, Files: r.Files, Largest: r.Entries, Complete: !r.More}, err
}

// Bounds of a measurement.
const (
	maxLargest = 3
	blockSize  = 512 // of st_blocks (stat(2))
	// the least bytes of a file: its inode and its name take room even if it is empty
	minFileSize        = 4096
	measureTimeout     = 8 * time.Second // after this time it ends with what it has
	clockCheckInterval = 256             // files between two checks of the clock
)

// errMeasureLimit ends a walk at a bound.
var errMeasureLimit = errors.New("enough")

// measureTree sums everything below base, without following links. What disappears
// meanwhile counts as nothing. A directory without permissions for its owner gets them
// while it is read, because files could be hidden in it.
func measureTree(base string, most int, stop *atomic.Bool) (r agentReply, err error) {
	if info, err := os.Lstat(base); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 && os.Geteuid() != 0 {
		os.Chmod(base, info.Mode()|0o700)
		defer os.Chmod(base, info.Mode())
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return agentReply{}, unreadableError(base, err)
	}
	defer root.Close()
	m := treeMeasurer{largest: map[string]int64{}, seenInodes: map[[2]uint64]bool{}, maxFiles: most, stop: stop,
		deadline: time.Now().Add(measureTimeout)}
	err = m.addDirectory(root, "", 0)
	if err != nil && !errors.Is(err, errMeasureLimit) {
		return agentReply{}, unreadableError(base, err)
	}
	r.Size, r.Files, r.More = m.size, m.count, err != nil
	for name, size := range m.largest {
		if isPrintable(name) {
			r.Entries = append(r.Entries, TransferEntry{Name: name, Size: size})
		}
	}
	slices.SortFunc(r.Entries, func(a, b TransferEntry) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name))
	})
	r.Entries = r.Entries[:min(len(r.Entries), maxLargest)]
	return r, nil
}

// treeMeasurer sums a tree.
type treeMeasurer struct {
	largest    map[string]int64
	seenInodes map[[2]uint64]bool // files with several names
	count      int
	maxFiles   int
	stop       *atomic.Bool
	deadline   time.Time
	size       int64
}

// addDirectory sums a directory, which counts as part of top, an entry at the top of the
// tree. An empty top means the whole tree.
func (m *treeMeasurer) addDirectory(root *os.Root, top string, depth int) error {
	if depth > maxTreeDepth {
		return errMeasureLimit
	}
	names, err := dirNames(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if m.count++; m.count > m.maxFiles || m.stop.Load() || m.count%clockCheckInterval == 0 &&
			time.Now().After(m.deadline) {
			return errMeasureLimit
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
		err = withPermissions(root, name, info.Mode(), 0o700, name, func() error {
			sub, err := root.OpenRoot(name)
			if err != nil {
				return err
			}
			defer sub.Close()
			return m.addDirectory(sub, of, depth+1)
		})
		if errors.Is(err, errMeasureLimit) {
			return err
		}
	}
	return nil
}

func (m *treeMeasurer) add(top string, info fs.FileInfo) {
	st := info.Sys().(*syscall.Stat_t)
	if id := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !info.IsDir() {
		if m.seenInodes[id] {
			return
		}
		m.seenInodes[id] = true
	}
	size := max(st.Blocks*blockSize, minFileSize)
	m.largest[top] += size
	m.size += size
}
