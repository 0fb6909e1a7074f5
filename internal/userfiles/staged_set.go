package userfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// stagedSet is a set of files that get their names together, when all of them are
// complete and checked. Until then each is in its directory under another name. If the
// set is dropped its files are removed, with directories made for them.
type stagedSet struct {
	root  *os.Root
	base  string
	files []stagedFile
	dirs  []string // directories made for it, outer ones first
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

// stagedSetOf returns the set of a request.
func (s *agentServer) stagedSetOf(q *agentRequest) (*stagedSet, error) {
	t := s.stages[q.Stage]
	if t == nil || t.base != q.Base {
		return nil, fmt.Errorf("handle %d: %w", q.Stage, roost.Invalid)
	}
	return t, nil
}

// mkdir creates a directory and its parents, and records which were missing.
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

// installStage gives the files of a set their names, in the order in which they were
// made.
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
		t.root.Remove(t.dirs[i]) // a directory with other contents stays
	}
	t.root.Close()
}
