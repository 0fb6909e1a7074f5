package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestComingFrom holds that the commands and states that roost-coming-from(7) speaks of
// are there, and that it knows all states.
func TestComingFrom(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "man", "roost-coming-from.7"))
	if err != nil {
		t.Fatal(err)
	}
	first := func(section string) (words []string) {
		_, rest, _ := strings.Cut(string(text), ".SH "+section+"\n")
		rest, _, _ = strings.Cut(rest, ".TE\n")
		for _, line := range strings.Split(rest, "\n") {
			if word, _, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(word, "\\") {
				words = append(words, word)
			}
		}
		return words
	}
	names := first("COMMANDS")
	for _, name := range names {
		if frame.FindCommand(allCommands(), name) == nil {
			t.Errorf("it names %q, which is no command", name)
		}
	}
	if states := first("STATES"); len(names) < 20 || !slices.Equal(states, roost.TaskStateNames()) {
		t.Errorf("%d commands and the states %v", len(names), states)
	}
	for _, setting := range first("WHAT IS ASKED FOR") {
		name, _, _ := strings.Cut(setting, " ")
		page, err := os.ReadFile(filepath.Join("..", "..", "man", "roost-job.5"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), name) {
			t.Errorf("roost-job(5) does not know %s", name)
		}
	}
}
