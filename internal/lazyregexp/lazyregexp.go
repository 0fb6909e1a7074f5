// Package lazyregexp compiles regular expressions at their first use. A command that
// starts in a few milliseconds cannot spend one on the expressions of other commands.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. The first call compiles
// it, and panics if the expression is invalid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
