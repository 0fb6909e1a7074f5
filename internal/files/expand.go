package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// expand lists what patterns name.
func expand(base string, patterns []string) ([]Entry, error) {
	var entries []Entry
	for _, pattern := range patterns {
		from, as, _ := strings.Cut(pattern, " => ")
		from, as = strings.TrimSpace(from), strings.TrimSpace(as)
		paths, err := matches(base, from)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			name, err := nameAt(base, path, as, len(paths) > 1)
			if err != nil {
				return nil, err
			}
			if entries, err = gather(entries, path, name); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(entries, func(a, b Entry) bool { return a.Name == b.Name }), nil
}

// matches returns absolute paths. A name that exists is itself, whatever signs of patterns it has in it.
func matches(base, pattern string) ([]string, error) {
	path := pattern
	if !filepath.IsAbs(path) {
		path = escape(base) + "/" + pattern
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
		return nil, unreadable(plain, err)
	}
	paths, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w: %w", pattern, roost.Invalid, err)
	}
	return paths, nil
}

// escape takes the signs of a pattern in a directory's name for themselves.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// nameAt is what a file is called at the other end.
func nameAt(base, path, as string, several bool) (string, error) {
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

// gather appends a file, or a directory and what is in it.
func gather(entries []Entry, path, name string) ([]Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, unreadable(path, errors.New(sort(info.Mode())))
	}
	if !info.IsDir() {
		return add(entries, path, name, info)
	}
	err = filepath.WalkDir(path+"/", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(p, err)
		}
		rel, err := filepath.Rel(path, p)
		inside := filepath.Join(name, rel)
		if err != nil || inside == "." || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		if !printable(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
		}
		if err == nil {
			entries, err = add(entries, p, inside, info)
		}
		return err
	})
	return entries, err
}

func add(entries []Entry, path, name string, info fs.FileInfo) ([]Entry, error) {
	if len(entries) >= MaxEntries {
		return nil, fmt.Errorf("%s: %w: more than %d files to transfer", path, roost.Exhausted, MaxEntries)
	}
	e := entryOf(name, info)
	e.Source = filepath.Clean(path)
	return append(entries, e), nil
}

func snapshot(base string) ([]Entry, error) {
	list, err := os.ReadDir(base)
	if err != nil {
		return nil, unreadable(base, err)
	}
	var entries []Entry
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !d.IsDir() && !d.Type().IsRegular() || !printable(d.Name()) {
			continue
		}
		entries = append(entries, entryOf(d.Name(), info))
	}
	return entries, nil
}
