package files

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// askedNames is what patterns can be the reason of, as Agent.Expand names it. It knows nothing of the files that there are: a name that a
// pattern with a sign in it may stand for is asked for.
type askedNames struct {
	plain map[string]bool // with all that is below; "." is everything
	globs [][]string      // likewise, between slashes
}

// Asked reports of an entry whether one of those patterns, which have the form of Agent.Expand's, asks for it.
func Asked(patterns []string) func(*wire.FileEntry) bool {
	a := &askedNames{plain: map[string]bool{}}
	for _, p := range patterns {
		a.add(p)
	}
	return func(e *wire.FileEntry) bool { return a.have(e.GetName()) }
}

// AtTop reports of an entry whether it may come without having been named: it is a file at the top.
func AtTop(e *wire.FileEntry) bool {
	return !e.GetDir() && !strings.Contains(e.GetName(), "/")
}

// Hidden reports whether a name begins with a dot. What it names travels only when that was asked for: it is the setting of some program.
func Hidden(name string) bool { return strings.HasPrefix(name, ".") }

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
		if strings.HasSuffix(as, "/") || strings.ContainsAny(from, signs) {
			a.both(path.Clean(as), last)
		}
	case filepath.IsLocal(from):
		a.both(".", from)
	default: // it is called by its last part, or, if it is below the base, by some of those before it, too
		a.both(".", last)
		parts := strings.Split(from, "/")
		for i := range parts {
			if tail := path.Join(parts[i:]...); i > 0 && filepath.IsLocal(tail) {
				a.both(".", tail)
			}
		}
	}
}

// signs are those of patterns.
const signs = `*?[\`

// both adds a name that may be a pattern, or have its signs in it, below a directory.
func (a *askedNames) both(dir, name string) {
	a.plain[path.Join(dir, name)] = true
	if !strings.ContainsAny(name, signs) {
		return
	}
	var parts []string
	if dir != "." {
		for part := range strings.SplitSeq(dir, "/") {
			parts = append(parts, escape(part))
		}
	}
	a.globs = append(a.globs, append(parts, strings.Split(name, "/")...))
}

func (a *askedNames) have(name string) bool {
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
		if fits(g, parts) {
			return true
		}
	}
	return false
}

// fits reports whether a name is what a pattern stands for, or is below that.
func fits(pattern, parts []string) bool {
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
