package cli

import (
	"fmt"

	"github.com/roost-batch/roost/internal/wire"
)

// checkResult is what one check found.
type checkResult struct {
	Check string     `json:"check"`
	Level checkLevel `json:"level"`
	Text  string     `json:"text"` // one line, and those of a file that it is about, with a caret under what is meant
	Hint  string     `json:"cure,omitempty"`
}

const (
	levelOK      checkLevel = "ok"
	levelWarning checkLevel = "warn"
	levelError   checkLevel = "fail"
)

// evenVotersWarning says what is wrong with an even number of those that vote; "" if it
// is odd.
func evenVotersWarning(s *wire.CellStatus) string {
	voters := 0
	for _, m := range s.GetMembers() {
		if m.GetRole() != "learner" {
			voters++
		}
	}
	if voters == 0 || voters%2 == 1 {
		return ""
	}
	return fmt.Sprintf("%d bear the loss of no more than %d would, and fail more often: add one with roost cell "+
		"add, or remove one", voters, voters-1)
}

type checkLevel string
