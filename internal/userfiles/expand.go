package userfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// expand lists the files that patterns match.
func expand(base string, patterns []string, bound ListLimit) ([]TransferEntry, error) {
	entries := &limitedList{limit: bound}
	for _, pattern := range patterns {
		from, as, _ := strings.Cut(pattern, " => ")
		from, as = strings.TrimSpace(from), strings.TrimSpace(as)
		paths, err := matchPaths(base, from)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			name, err := transferName(base, path, as, len(paths) > 1)
			if err != nil {
				return nil, err
			}
			if err := collectEntries(entries, path, name); err != nil {
				return nil, err
			}
		}
	}
	list := entries.list
	slices.SortStableFunc(list, func(a, b TransferEntry) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b TransferEntry) bool { return a.Name == b.Name }), nil
}

// matchPaths returns absolute paths. A name that exists is used as it is, even with
// characters of patterns in it.
func matchPaths(base, pattern string) ([]string, error) {
	path := pattern
	if !filepath.IsAbs(path) {
		path = escapePattern(base) + "/" + pattern
	}
	plain := pattern
	if !filepath.IsAbs(plain) {
		plain = filepath.Join(base, pattern)
	}
	_, err := os.Stat(plain)
	if err == nil {
		return []string{filepath.Clean(plain)}, nil
	}
	if !strings.ContainsAny(pattern, `*?[`) {
		return nil, unreadableError(plain, err)
	}
	paths, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w: %w", pattern, roost.Invalid, err)
	}
	return paths, nil
}

// escapePattern escapes the characters of patterns in a directory's name.
func escapePattern(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// transferName returns the name of a file at the other end.
func transferName(base, path, as string, several bool) (string, error) {
	name := filepath.Base(path)
	switch rel, err := filepath.Rel(base, path); {
	case as != "" && (several || strings.HasSuffix(as, "/")):
		name = filepath.Join(as, name)
	case as != "":
		name = filepath.Clean(as)
	case err == nil && filepath.IsLocal(rel):
		name = rel
	}
	if name == "." {
		return name, nil
	}
	return name, CheckName(name)
}

// collectEntries appends a file, or a directory with its contents.
func collectEntries(entries *limitedList, path, name string) error {
	info, err := os.Stat(path)
	if err != nil {
		return unreadableError(path, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return unreadableError(path, errors.New(fileKind(info.Mode())))
	}
	if !info.IsDir() {
		return entries.addFile(path, name, info)
	}
	return filepath.WalkDir(path+"/", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return unreadableError(p, err)
		}
		rel, err := filepath.Rel(path, p)
		inside := filepath.Join(name, rel)
		if err != nil || inside == "." || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		if !isPrintable(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err == nil {
			err = entries.addFile(p, inside, info)
		}
		return err
	})
}

// snapshotPage is the number of names of a directory that are read at once.
const snapshotPage = 4096

func snapshot(base string, bound ListLimit) ([]TransferEntry, error) {
	dir, err := os.Open(base)
	if err != nil {
		return nil, unreadableError(base, err)
	}
	defer dir.Close()
	entries := &limitedList{limit: bound}
	for {
		list, err := dir.ReadDir(snapshotPage)
		for _, d := range list {
			info, err := d.Info()
			if err != nil || !d.IsDir() && !d.Type().IsRegular() || !isPrintable(d.Name()) {
				continue
			}
			e := entryOf(d.Name(), info)
			e.measure(filepath.Join(base, d.Name()))
			if err := entries.add(e); err != nil {
				return nil, fmt.Errorf("%s: %w", base, err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unreadableError(base, err)
		}
	}
	slices.SortFunc(entries.list, func(a, b TransferEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries.list, nil
}
