package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fileTree is the contents of the archive, by path without a leading slash.
type fileTree map[string]treeEntry

// treeEntry is one file. Its contents are read when the archive is written.
type treeEntry struct {
	mode   fs.FileMode
	source string // path of a regular file
	target string // target of a symbolic link
	device [2]uint32
}

// newTree returns a tree with the two devices that a kernel needs before anything is
// mounted.
func newTree() fileTree {
	t := fileTree{}
	t["dev/console"] = treeEntry{mode: fs.ModeDevice | fs.ModeCharDevice | 0o600, device: [2]uint32{5, 1}}
	t["dev/null"] = treeEntry{mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, device: [2]uint32{1, 3}}
	return t
}

// add adds one argument SOURCE=DEST.
func (t fileTree) add(arg string) error {
	source, dest, ok := strings.Cut(arg, "=")
	if !ok || source == "" || !path.IsAbs(dest) {
		return fmt.Errorf("%q: want SOURCE=DEST, with DEST beginning with a slash", arg)
	}
	// A source that is a link is followed; links below it stay links.
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		return t.addFile(strings.TrimPrefix(path.Join(dest, below), "/"), name, d)
	})
}

func (t fileTree) addFile(at, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	e := treeEntry{mode: info.Mode()}
	switch {
	case info.Mode().IsRegular():
		e.source = name
	case info.Mode()&fs.ModeSymlink != 0:
		if e.target, err = os.Readlink(name); err != nil {
			return err
		}
	case !info.IsDir():
		return nil // sockets, pipes and devices of this machine are left out
	}
	// Debian's /bin is a link to usr/bin. If a second source has a directory there, it
	// goes to the target of the link.
	for dir, below := at, ""; dir != "." && dir != ""; dir, below = path.Dir(dir), path.Join(path.Base(dir), below) {
		if was, ok := t[dir]; ok && was.target != "" && (below != "" || info.IsDir()) {
			at = strings.TrimPrefix(path.Join(path.Dir("/"+dir), was.target, below), "/")
			if path.IsAbs(was.target) {
				at = strings.TrimPrefix(path.Join(was.target, below), "/")
			}
			break
		}
	}
	if was, ok := t[at]; at != "" && !(ok && was.mode.IsDir() && info.IsDir()) {
		t[at] = e
	}
	return nil
}

// write writes the archive. Directories precede their contents, because the kernel does
// not create them.
func (t fileTree) write(w io.Writer) error {
	for _, name := range slices.Collect(maps.Keys(t)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := t[dir]; !ok {
				t[dir] = treeEntry{mode: fs.ModeDir | 0o755}
			}
		}
	}
	out := cpioArchive{w: w}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := out.add(name, t[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.writeTrailer()
}
