package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

// maxNameLength bounds the length of names, in bytes.
const maxNameLength = 128

// checkPlainName checks a name that people choose: letters, digits, and _ or -.
func checkPlainName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s has no name", what)
	case len(name) > maxNameLength:
		return fmt.Errorf("the name of %s has %d characters, and %d is the most", what, len(name), maxNameLength)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '_' && r != '-') {
			return fmt.Errorf("%q is not a name for %s: use letters, digits, _ and -, and begin with a letter "+
				"or a digit", name, what)
		}
	}
	return nil
}

// checkDottedName checks a name whose parts are separated by dots, such as "sci.chem".
func checkDottedName(what, name string) error {
	parts := strings.Split(name, ".")
	if len(parts) > maxGroupDepth {
		return fmt.Errorf("%s %q: %d levels, and %d is the most", what, name, len(parts), maxGroupDepth)
	}
	for _, part := range parts {
		if checkPlainName(what, part) != nil {
			return fmt.Errorf("%q is not a name for %s: use parts of letters, digits, _ and -, with single dots "+
				"between them, as in \"sci.chem\"", name, what)
		}
	}
	if len(name) > maxNameLength {
		return fmt.Errorf("the name of %s has %d characters, and %d is the most", what, len(name), maxNameLength)
	}
	return nil
}

// checkAccountName checks the name of a user, machine or task, which the system defines.
// Nothing in it may be ambiguous.
func checkAccountName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%s has no name", what)
	}
	if len(name) > 2*maxNameLength {
		return fmt.Errorf("the name of %s has %d characters, and %d is the most", what, len(name), 2*maxNameLength)
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune(`"'\/,;#*`, r) {
			return fmt.Errorf("%q cannot be the name of %s", name, what)
		}
	}
	return nil
}

func checkAccountNames(what string, names []string) error {
	if len(names) > maxNames {
		return fmt.Errorf("%d names, and %d is the most", len(names), maxNames)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if err := checkAccountName(what, name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%s %q is listed twice", what, name)
		}
		seen[name] = true
	}
	return nil
}

// maxGroupDepth bounds how deep groups nest, maxNames how many users or nodes one object
// lists.
const (
	maxGroupDepth = 8
	maxNames      = 10_000
)

// exclusiveFieldsError returns the error for an object that sets two exclusive fields.
func exclusiveFieldsError(a, b string) error {
	return errors.New("give " + a + " or " + b + ", not both")
}

// suggestName formats the known word nearest to a wrong one as part of a message. It
// returns "" if none is near.
func suggestName(word string, known []string) string {
	best := suggest.Nearest(word, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
