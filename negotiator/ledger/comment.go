package ledger

import (
	"errors"
	"strings"
	"unicode"
)

// Comment is what administrators say of a machine, whether it is drained or not (PBS: the attribute comment of a node).
type Comment struct {
	Node string `json:"node"`
	Text string `json:"text"`
}

func (c Comment) name() string     { return c.Node }
func (c Comment) users() []string  { return nil }
func (c Comment) groups() []string { return nil }

func (c Comment) check(*Ledger) error {
	switch {
	case strings.TrimSpace(c.Text) == "":
		return errors.New("it says nothing: remove it instead, if that is what you mean")
	case strings.ContainsFunc(c.Text, unicode.IsControl):
		return errors.New("a comment is one line, without control characters")
	case len(c.Text) > maxReason:
		return reason(c.Text)
	}
	return account("a node", c.Node)
}
