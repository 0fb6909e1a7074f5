package owner

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestUntilWhen holds what the words after "roost pause" mean, at noon of a Sunday.
func TestUntilWhen(t *testing.T) {
	for words, want := range map[string]string{
		"1h": "2026-03-01 13:00", "90m": "2026-03-01 13:30", "for 2d": "2026-03-03 12:00",
		"until 18:00": "2026-03-01 18:00", "until 12:00": "2026-03-02 12:00",
		"until 07:30": "2026-03-02 07:30", "until tomorrow": "2026-03-02 00:00", "until 2026-12-01": "2026-12-01 00:00",
		"until 2026-12-01 08:00": "2026-12-01 08:00", "forever": "", "for ever": "",
	} {
		a, _, _ := newOwnerApp(t, t.TempDir())
		c := &frame.Invocation{App: a, Args: strings.Fields(words)}
		got, err := parsePauseEnd(c)
		if text := time.Unix(0, got).UTC().Format("2006-01-02 15:04"); err != nil || got != 0 && text != want ||
			got == 0 && want != "" {
			t.Errorf("%s: %s, %v, want %s", words, text, err, want)
		}
	}
}
