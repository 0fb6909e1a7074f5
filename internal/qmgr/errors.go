package qmgr

import "errors"

// reason is why PBS refuses a change, in its words.
type reason string

func (r reason) Error() string { return string(r) }

const (
	errValue     = reason("Illegal attribute or resource value")
	errAttribute = reason("Undefined attribute")
	errReadOnly  = reason("Cannot set attribute, read only or insufficient permission")
	errResource  = reason("Unknown resource")
	errSupport   = reason("No support for requested service")
)

// Number is PBS's error number of why a change was refused, and 0 of what is no refusal of this package.
func Number(err error) int {
	var r reason
	errors.As(err, &r)
	return map[reason]int{errValue: 15014, errAttribute: 15002, errReadOnly: 15003, errResource: 15035, errSupport: 15029}[r]
}
