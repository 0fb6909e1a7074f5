package userfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// stagedSet is files that get their names together, when all of them are there and were
// found to be in order. Until then each lies in its directory under another name. What
// was made for a set that comes to nothing is removed, directories too.
type stagedSet struct {
	root  *os.Root
	base  string
	files []stagedFile
	dirs  []string // that were made for it, outer ones first
}

type stagedFile struct{ tmp, name string }

func (s *agentServer) beginStage(q *agentRequest) error {
	root, err := os.OpenRoot(q.Base)
	if err != nil {
		return unwritableError(q.Base, err)
	}
	s.stages[q.Handle] = &stagedSet{root: root, base: q.Base}
	return nil
}

// stagedSetOf is the one that a request belongs to.
func (s *agentServer) stagedSetOf(q *agentRequest) (*stagedSet, error) {
	t := s.stages[q.Stage]
	if t == nil || t.base != q.Base {
		return nil, fmt.Errorf("handle %d: %w", q.Stage, roost.Invalid)
	}
	return t, nil
}

// mkdir makes a directory and those above it, and notes which were not there.
func (t *stagedSet) mkdir(name string, mode fs.FileMode) error {
	err := t.root.Mkdir(name, mode)
	switch {
	case err == nil:
		t.dirs = append(t.dirs, name)
		return nil
	case errors.Is(err, fs.ErrExist):
		if info, serr := t.root.Stat(name); serr != nil || !info.IsDir() {
			return err
		}
		return nil
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(name) != ".":
		if err := t.mkdir(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err = t.root.Mkdir(name, mode); err == nil {
			t.dirs = append(t.dirs, name)
		}
	}
	return err
}

// installStage gives the files of a set their names, in the order in which they came.
func (s *agentServer) installStage(handle uint64) error {
	t := s.stages[handle]
	if t == nil {
		return fmt.Errorf("handle %d: %w", handle, roost.Invalid)
	}
	delete(s.stages, handle)
	for i, f := range t.files {
		if err := t.root.Rename(f.tmp, f.name); err != nil {
			t.files = t.files[i:]
			t.discard()
			return unwritableError(filepath.Join(t.base, f.name), err)
		}
	}
	return t.root.Close()
}

// discard removes what was made for the set.
func (t *stagedSet) discard() {
	for _, f := range t.files {
		t.root.Remove(f.tmp)
	}
	for i := len(t.dirs) - 1; i >= 0; i-- {
		t.root.Remove(t.dirs[i]) // one that somebody has put something into stays
	}
	t.root.Close()
}
