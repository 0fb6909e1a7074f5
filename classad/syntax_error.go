package classad

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
)

// SyntaxError describes where and why a text is not in the language. It is of kind
// [roost.Invalid].
type SyntaxError struct {
	Offset int    // in bytes, from 0
	Line   int    // from 1
	Column int    // in characters, from 1
	Msg    string // cause of the error
}

func newSyntaxError(src string, offset int, msg string) *SyntaxError {
	before := src[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return &SyntaxError{
		Offset: offset,
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[start:]),
		Msg:    msg,
	}
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("classad: line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// Unwrap returns roost.Invalid, for errors.Is.
func (e *SyntaxError) Unwrap() error { return roost.Invalid }
