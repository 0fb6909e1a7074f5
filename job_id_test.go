package roost

import "testing"

func TestIDs(t *testing.T) {
	for _, c := range []struct {
		text string
		want JobID
	}{
		{"123", JobID{123, "here"}}, {"123.host", JobID{123, "host"}}, {"123.host.example.org",
			JobID{123, "host.example.org"}}, {"123[].host", JobID{123, "host"}}, {"123[]", JobID{123, "here"}},
	} {
		if got, err := ParseJobID(c.text, "here"); err != nil || got != c.want {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
	for _, text := range []string{"", "0", "x", "-1", "123.", "123[7]", "123[.host", "123]", "1 2", "123.a b",
		"99999999999999999999"} {
		if got, err := ParseJobID(text, "here"); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
	if got := (JobID{123, "host"}).Task(7).String(); got != "123[7].host" {
		t.Errorf("got %s", got)
	}
}
