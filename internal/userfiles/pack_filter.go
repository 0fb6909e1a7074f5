package userfiles

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
)

// packFilter selects what is packed of a tree. Nil selects everything.
type packFilter struct {
	patterns []string
	parts    [][]string // of each pattern, split at slashes
	matched  []bool
}

// newPackFilter parses patterns. Without patterns it returns nil.
func newPackFilter(patterns []string) (*packFilter, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	c := &packFilter{matched: make([]bool, len(patterns))}
	for _, p := range patterns {
		clean := path.Clean(p)
		if _, err := path.Match(clean, ""); err != nil || !fs.ValidPath(clean) || clean == "." {
			return nil, fmt.Errorf("pattern %.200q: %w: it names nothing below the directory", p, roost.Invalid)
		}
		c.patterns, c.parts = append(c.patterns, clean), append(c.parts, strings.Split(clean, "/"))
	}
	return c, nil
}

// nameDecision is the decision on a name.
type nameDecision uint8

const (
	nameSkipped nameDecision = iota // it is left out
	// something below it may be selected: the directory is packed, but not all its
	// contents
	nameTraversed
	nameTaken // it is packed with everything below
)

// decide decides on a name below the directory.
func (c *packFilter) decide(name string) nameDecision {
	if c == nil {
		return nameTaken
	}
	best, parts := nameSkipped, strings.Split(name, "/")
	for i, pattern := range c.parts {
		fits := true
		for k := range min(len(pattern), len(parts)) {
			ok, _ := path.Match(pattern[k], parts[k]) // the pattern is valid
			fits = fits && ok
		}
		switch {
		case !fits:
		case len(parts) >= len(pattern):
			best, c.matched[i] = nameTaken, true
		default:
			best = max(best, nameTraversed)
		}
	}
	return best
}

// missingError returns an error for a plain name that does not exist.
func (c *packFilter) missingError(dir string) error {
	if c == nil {
		return nil
	}
	for i, p := range c.patterns {
		if !c.matched[i] && !strings.ContainsAny(p, "*?[\\") {
			return fmt.Errorf("%s: %w: it is not there", filepath.Join(dir, p), roost.NoInput)
		}
	}
	return nil
}
