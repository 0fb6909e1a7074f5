package cli

import (
	"fmt"

	"github.com/roost-batch/roost/internal/wire"
)

// finding is what one check found.
type finding struct {
	Check string `json:"check"`
	Level level  `json:"level"`
	Text  string `json:"text"` // one line, and those of a file that it is about, with a caret under what is meant
	Cure  string `json:"cure,omitempty"`
}

const (
	fine level = "ok"
	warn level = "warn"
	bad  level = "fail"
)

// evenly says what is wrong with an even number of those that vote; "" if it is odd.
func evenly(s *wire.CellStatus) string {
	voters := 0
	for _, m := range s.GetMembers() {
		if m.GetRole() != "learner" {
			voters++
		}
	}
	if voters == 0 || voters%2 == 1 {
		return ""
	}
	return fmt.Sprintf("%d bear the loss of no more than %d would, and fail more often: add one with roost cell add, or remove one", voters, voters-1)
}

type level string
