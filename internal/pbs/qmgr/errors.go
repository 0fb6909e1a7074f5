package qmgr

import "errors"

// refusalReason is a reason for which PBS refuses a change.
type refusalReason string

func (r refusalReason) Error() string { return string(r) }

const (
	errValue     = refusalReason("Illegal attribute or resource value")
	errAttribute = refusalReason("Undefined attribute")
	errReadOnly  = refusalReason("Cannot set attribute, read only or insufficient permission")
	errResource  = refusalReason("Unknown resource")
	errSupport   = refusalReason("No support for requested service")
)

// ErrorNumber returns PBS's error number of a refusal, and 0 for other errors.
func ErrorNumber(err error) int {
	var r refusalReason
	errors.As(err, &r)
	return map[refusalReason]int{errValue: 15014, errAttribute: 15002, errReadOnly: 15003, errResource: 15035,
		errSupport: 15029}[r]
}
