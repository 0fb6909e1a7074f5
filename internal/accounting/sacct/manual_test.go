package sacct

import (
	"os"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/accounting"
)

// TestManual holds that roost-accounting(7) has every field with its meaning, and no
// other. It also has the list for XDMoD, and every state.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../../man/roost-accounting.7")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), `\-`, "-")
	_, section, _ := strings.Cut(text, "\n.SS \"Fields of roost sacct\"\n")
	section, _, _ = strings.Cut(section, "\n.S")
	section += "\n"
	for _, f := range Fields() {
		if entry := ".TP\n.B " + f.Name + "\n" + f.About + "\n"; !strings.Contains(section, entry) {
			t.Errorf("roost-accounting(7) does not have\n%s", entry)
		}
	}
	if got := strings.Count(section, ".TP\n"); got != len(Fields()) {
		t.Errorf("roost-accounting(7) has %d fields, want %d", got, len(Fields()))
	}
	if list := strings.ReplaceAll(XDMoDFormat, ",", ", "); !strings.Contains(text, "\n"+list+"\n") {
		t.Errorf("roost-accounting(7) does not have the list %s", list)
	}
	for cause := accounting.EndedExit; cause <= accounting.EndedPrologue; cause++ {
		r := &accounting.AttemptRecord{Job: &accounting.JobEntry{}}
		r.Cause, r.Attempt = cause, 1
		if state := State(r); !strings.Contains(text, state) {
			t.Errorf("roost-accounting(7) does not have the state %s", state)
		}
	}
}
