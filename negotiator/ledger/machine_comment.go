package ledger

import (
	"errors"
	"strings"
	"unicode"
)

// MachineComment is an administrator's comment on a machine, drained or not (PBS: the
// attribute comment of a node).
type MachineComment struct {
	Node string `json:"node"`
	Text string `json:"text"`
}

func (c MachineComment) name() string     { return c.Node }
func (c MachineComment) users() []string  { return nil }
func (c MachineComment) groups() []string { return nil }

func (c MachineComment) check(*Ledger) error {
	switch {
	case strings.TrimSpace(c.Text) == "":
		return errors.New("it says nothing: remove it instead, if that is what you mean")
	case strings.ContainsFunc(c.Text, unicode.IsControl):
		return errors.New("a comment is one line, without control characters")
	case len(c.Text) > maxReason:
		return checkReason(c.Text)
	}
	return checkAccountName("a node", c.Node)
}
