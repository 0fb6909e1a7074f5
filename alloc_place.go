package roost

import (
	"fmt"
	"strings"
)

// The values of AttrAllocPlace.
const (
	PlaceByIndex  = "index" // each task inside the alloc of its own index
	PlaceAnywhere = "any"   // each task inside any alloc of the set that has room
)

// MaxAllocUsers bounds the users besides its owner who may submit into an alloc set.
const MaxAllocUsers = 64

// CheckAllocUser returns what is wrong with a name of AttrAllocUsers, nil if nothing is.
// It is "bob", a user of the submit node of the set, or
// "bob@node".
func CheckAllocUser(name string) error {
	user, node, isForeign := strings.Cut(name, "@")
	if isAccountText(user) && (!isForeign || isAccountText(node)) {
		return nil
	}
	return fmt.Errorf("%q: %w: the name of a user is wanted, as bob, or as bob@n2 for a user of the submit node n2",
		name, Invalid)
}

// isAccountText reports whether a text can name a user or a node.
func isAccountText(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || c != '-' && c != '.') {
			return false
		}
	}
	return text != "" && len(text) <= 255
}
