package pooldir

import (
	"os"
	"strings"
)

// HostName returns this host's name up to the first dot, without characters that an id
// may not contain.
func HostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return NodeNameOf(name)
}

// NodeNameOf makes a node's name from a host's name. It is the part before the first dot,
// with only letters, digits, "-" and "_".
func NodeNameOf(host string) string {
	short, _, _ := strings.Cut(host, ".")
	short = strings.Map(func(r rune) rune {
		if isLetter(r) || isDigit(r) || r == '-' || r == '_' {
			return r
		}
		return -1
	}, short)
	short = strings.TrimLeft(short, "-_")
	if short == "" {
		return "localhost"
	}
	return short[:min(len(short), maxName)]
}

const maxName = 64 // the limit of a certificate's common name (RFC 5280, ub-common-name)

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func isDigit(r rune) bool  { return r >= '0' && r <= '9' }

// IsValidName reports whether s can be the name of a node. Names have letters, digits,
// ".", "-" and "_", begin with a letter or a digit, and have at most 64 characters.
func IsValidName(s string) bool {
	for i, r := range s {
		if !isLetter(r) && !isDigit(r) && (i == 0 || !strings.ContainsRune("-_.", r)) {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}
