package match

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestBadSoftConstraints checks that invalid soft constraints are refused with a message
// that names the attribute.
func TestBadSoftConstraints(t *testing.T) {
	for ad, want := range map[string]string{
		`[ConcurrencyLimits = "a b"]`: "limit",
		`[Packages = "gcc"]`:          "Packages",
		`[Packages = {1}]`:            "Packages",
		`[Packages = {""}]`:           "Packages",
		`[Prefer = {"TARGET.a >"}]`:   `Prefer: invalid request: "TARGET.a >"`,
		`[Prefer = TARGET.a > 1]`:     "Prefer",
		`[Prefer = {` + strings.Repeat(`"true",`, 16) + `"true"}]`: "at most 16",
	} {
		_, err := NewClass(ad, fairshare.Submitter{Owner: "ann"}, roost.BatchBand, roost.Resources{CPU: 1000})
		if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", ad, err, want)
		}
	}
}

func TestTaskIsOfJob(t *testing.T) {
	tests := []struct {
		task, job string
		want      bool
	}{
		{"12[3].host", "12.host", true}, {"12.host", "12.host", true}, {"12[3].host", "1.host", false},
		{"1[3].host", "12.host", false},
		{"12[3].host", "12.hos", false}, {"12[3.host", "12.host", false}, {"", "", false},
		{"12[33].host", "12.host", true},
	}
	for _, test := range tests {
		if got := taskIsOfJob(test.task, test.job); got != test.want {
			t.Errorf("%s of %s: got %v", test.task, test.job, got)
		}
	}
}
