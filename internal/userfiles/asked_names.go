package userfiles

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// askedNames is the set of names that patterns can produce in Agent.Expand. It does not
// know the existing files: every name that a pattern could match is in the set.
type askedNames struct {
	plain map[string]bool // names with everything below them; "." is everything
	globs [][]string      // patterns with everything below them, split at slashes
}

// AskedFilter returns a function that reports whether one of the patterns requests an
// entry. Patterns have the form of Agent.Expand's.
func AskedFilter(patterns []string) func(*wire.FileEntry) bool {
	a := &askedNames{plain: map[string]bool{}}
	for _, p := range patterns {
		a.add(p)
	}
	return func(e *wire.FileEntry) bool { return a.contains(e.GetName()) }
}

// TopLevelFilter reports whether an entry may be sent without being requested: it is a
// file at the top.
func TopLevelFilter(e *wire.FileEntry) bool {
	return !e.GetDir() && !strings.Contains(e.GetName(), "/")
}

// IsHidden reports whether a name begins with a dot. Such a file usually has a program's
// settings, and is transferred only if it was requested.
func IsHidden(name string) bool { return strings.HasPrefix(name, ".") }

func (a *askedNames) add(pattern string) {
	from, as, _ := strings.Cut(pattern, " => ")
	from, as = path.Clean(strings.TrimSpace(from)), strings.TrimSpace(as)
	last := path.Base(from)
	if last == "." || last == ".." || last == "/" {
		last = "*"
	}
	switch {
	case as != "":
		if !strings.HasSuffix(as, "/") {
			a.plain[path.Clean(as)] = true
		}
		if strings.HasSuffix(as, "/") || strings.ContainsAny(from, patternSigns) {
			a.addNameAndPattern(path.Clean(as), last)
		}
	case filepath.IsLocal(from):
		a.addNameAndPattern(".", from)
	default: // its name is the last part, or, if it is below the base, that with some of the parts before
		a.addNameAndPattern(".", last)
		parts := strings.Split(from, "/")
		for i := range parts {
			if tail := path.Join(parts[i:]...); i > 0 && filepath.IsLocal(tail) {
				a.addNameAndPattern(".", tail)
			}
		}
	}
}

// patternSigns are the special characters of patterns.
const patternSigns = `*?[\`

// addNameAndPattern adds a name below a directory that may be a pattern, or contain the
// characters of one.
func (a *askedNames) addNameAndPattern(dir, name string) {
	a.plain[path.Join(dir, name)] = true
	if !strings.ContainsAny(name, patternSigns) {
		return
	}
	var parts []string
	if dir != "." {
		for part := range strings.SplitSeq(dir, "/") {
			parts = append(parts, escapePattern(part))
		}
	}
	a.globs = append(a.globs, append(parts, strings.Split(name, "/")...))
}

func (a *askedNames) contains(name string) bool {
	for at := name; ; at = path.Dir(at) {
		if a.plain[at] {
			return true
		}
		if at == "." || at == "/" {
			break
		}
	}
	if len(a.globs) == 0 {
		return false
	}
	parts := strings.Split(name, "/")
	for _, g := range a.globs {
		if matchesPattern(g, parts) {
			return true
		}
	}
	return false
}

// matchesPattern reports whether a pattern matches a name or a directory above it.
func matchesPattern(pattern, parts []string) bool {
	if len(parts) < len(pattern) {
		return false
	}
	for i, p := range pattern {
		if ok, err := path.Match(p, parts[i]); !ok || err != nil {
			return false
		}
	}
	return true
}
