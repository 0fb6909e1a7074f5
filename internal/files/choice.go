package files

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
)

// choice is what of a tree is packed. Nil takes everything.
type choice struct {
	patterns []string
	parts    [][]string // of each pattern, between slashes
	met      []bool
}

// choose reads patterns; none is no choice.
func choose(patterns []string) (*choice, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	c := &choice{met: make([]bool, len(patterns))}
	for _, p := range patterns {
		clean := path.Clean(p)
		if _, err := path.Match(clean, ""); err != nil || !fs.ValidPath(clean) || clean == "." {
			return nil, fmt.Errorf("pattern %.200q: %w: it names nothing below the directory", p, roost.Invalid)
		}
		c.patterns, c.parts = append(c.patterns, clean), append(c.parts, strings.Split(clean, "/"))
	}
	return c, nil
}

// taking is what becomes of a name.
type taking uint8

const (
	leaves taking = iota // it is not wanted
	passes               // something below may be: a directory is packed, but not all that is in it
	takes                // it is wanted, with all that is below
)

// takes decides on a name below the directory.
func (c *choice) takes(name string) taking {
	if c == nil {
		return takes
	}
	best, parts := leaves, strings.Split(name, "/")
	for i, pattern := range c.parts {
		fits := true
		for k := range min(len(pattern), len(parts)) {
			ok, _ := path.Match(pattern[k], parts[k]) // the pattern is well formed
			fits = fits && ok
		}
		switch {
		case !fits:
		case len(parts) >= len(pattern):
			best, c.met[i] = takes, true
		default:
			best = max(best, passes)
		}
	}
	return best
}

// missing is the error for a plain name that is not there.
func (c *choice) missing(dir string) error {
	if c == nil {
		return nil
	}
	for i, p := range c.patterns {
		if !c.met[i] && !strings.ContainsAny(p, "*?[\\") {
			return fmt.Errorf("%s: %w: it is not there", filepath.Join(dir, p), roost.NoInput)
		}
	}
	return nil
}
