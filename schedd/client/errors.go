package client

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a refusal of the pool.
type Error struct {
	Status int    // the exit status of roost, which stands for the kind of the error
	Text   string // says what is wrong, and what to do

	silent bool // the command printed no error: the status is that of jobs
}

func (e *Error) Error() string { return e.Text }

// Kinds of errors, for errors.Is.
var (
	ErrInvalid     = errors.New("invalid")           // a job or a request makes no sense
	ErrNotFound    = errors.New("not found")         // there is no such job or task
	ErrFinished    = errors.New("already finished")  // the job has ended
	ErrConflict    = errors.New("conflict")          // a limit, a quota, or the state of the job forbids it
	ErrPermission  = errors.New("permission denied") // the user may not do this
	ErrUnavailable = errors.New("unavailable")       // the pool does not answer; trying again may help
)

// Is reports whether the error is of a kind.
func (e *Error) Is(kind error) bool {
	switch e.Status {
	case 64, 65, 66:
		return kind == ErrInvalid
	case 68:
		return kind == ErrNotFound
	case 35:
		return kind == ErrFinished
	case 75:
		return kind == ErrConflict
	case 77:
		return kind == ErrPermission
	case 69:
		return kind == ErrUnavailable
	}
	return false
}

// newError returns the error of a command line that failed.
func newError(status int, text string) error {
	text = strings.TrimPrefix(strings.TrimSpace(text), "roost: ")
	if text == "" {
		return &Error{Status: status, Text: fmt.Sprintf("roost ended with exit status %d", status), silent: true}
	}
	return &Error{Status: status, Text: text}
}
