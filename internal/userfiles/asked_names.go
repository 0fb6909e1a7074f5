package userfiles

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// askedNames is what patterns can be the reason of, as Agent.Expand names it. It knows
// nothing of the files that there are: a name that a pattern with a sign in it may stand
// for is asked for.
type askedNames struct {
	plain map[string]bool // with all that is below; "." is everything
	globs [][]string      // likewise, between slashes
}

// AskedFilter reports of an entry whether one of those patterns, which have the form of
// Agent.Expand's, asks for it.
func AskedFilter(patterns []string) func(*wire.FileEntry) bool {
	a := &askedNames{plain: map[string]bool{}}
	for _, p := range patterns {
		a.add(p)
	}
	return func(e *wire.FileEntry) bool { return a.contains(e.GetName()) }
}

// TopLevelFilter reports of an entry whether it may come without having been named: it is
// a file at the top.
func TopLevelFilter(e *wire.FileEntry) bool {
	return !e.GetDir() && !strings.Contains(e.GetName(), "/")
}

// IsHidden reports whether a name begins with a dot. What it names travels only when that
// was asked for: it is the setting of some program.
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
	default: // it is called by its last part, or, if it is below the base, by some of those before it, too
		a.addNameAndPattern(".", last)
		parts := strings.Split(from, "/")
		for i := range parts {
			if tail := path.Join(parts[i:]...); i > 0 && filepath.IsLocal(tail) {
				a.addNameAndPattern(".", tail)
			}
		}
	}
}

// patternSigns are those of patterns.
const patternSigns = `*?[\`

// addNameAndPattern adds a name that may be a pattern, or have its signs in it, below a
// directory.
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

// matchesPattern reports whether a name is what a pattern stands for, or is below that.
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
