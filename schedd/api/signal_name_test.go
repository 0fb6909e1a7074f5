package api

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSignalOf(t *testing.T) {
	for text, want := range map[string]unix.Signal{
		"": 15, "TERM": 15, "SIGTERM": 15, "15": 15, "KILL": 9, "SIGSTOP": 19, "CLD": 17, "0": 0, "NULL": 0,
		"SIGNULL": 0, "34": 34, "64": 64,
	} {
		if got, name := signalOf(text); got != want || name == "" {
			t.Errorf("%q: got %d %q, want %d", text, got, name, want)
		}
	}
	for _, text := range []string{"65", "-1", "SIG", "term", "SIGSIGTERM", "9x", " 9", "RTMIN+1x"} {
		if got, name := signalOf(text); name != "" {
			t.Errorf("%q: got %d %q, want none", text, got, name)
		}
	}
}
