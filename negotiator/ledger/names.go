package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/spell"
)

// longest bounds the names of things.
const longest = 128

// plain checks a name that people give to something: letters, digits, and _ - in it.
func plain(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s has no name", what)
	case len(name) > longest:
		return fmt.Errorf("the name of %s has %d characters, and %d is the most", what, len(name), longest)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '_' && r != '-') {
			return fmt.Errorf("%q is not a name for %s: use letters, digits, _ and -, and begin with a letter or a digit", name, what)
		}
	}
	return nil
}

// dotted checks a name of parts with dots between them, such as "sci.chem".
func dotted(what, name string) error {
	parts := strings.Split(name, ".")
	if len(parts) > maxDepth {
		return fmt.Errorf("%s %q: %d levels, and %d is the most", what, name, len(parts), maxDepth)
	}
	for _, part := range parts {
		if plain(what, part) != nil {
			return fmt.Errorf("%q is not a name for %s: use parts of letters, digits, _ and -, with single dots between them, as in \"sci.chem\"", name, what)
		}
	}
	if len(name) > longest {
		return fmt.Errorf("the name of %s has %d characters, and %d is the most", what, len(name), longest)
	}
	return nil
}

// account checks the name of a user, or of anything else that the system names: a machine, a task. Nothing in it may be taken for something else.
func account(what, name string) error {
	if name == "" {
		return fmt.Errorf("%s has no name", what)
	}
	if len(name) > 2*longest {
		return fmt.Errorf("the name of %s has %d characters, and %d is the most", what, len(name), 2*longest)
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune(`"'\/,;#*`, r) {
			return fmt.Errorf("%q cannot be the name of %s", name, what)
		}
	}
	return nil
}

func accounts(what string, names []string) error {
	if len(names) > maxNames {
		return fmt.Errorf("%d names, and %d is the most", len(names), maxNames)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if err := account(what, name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%s %q stands there twice", what, name)
		}
		seen[name] = true
	}
	return nil
}

// maxDepth bounds how deep groups nest, maxNames how many users or nodes one object lists.
const (
	maxDepth = 8
	maxNames = 10_000
)

// errTwo is what objects get that are both of two things.
func errTwo(a, b string) error { return errors.New("give " + a + " or " + b + ", not both") }

// suggest names the known word that a wrong one may have been meant for, as a piece of a message; it is empty if none is near.
func suggest(word string, known []string) string {
	best := spell.Nearest(word, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
