package member

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func TestClocksThatAreApart(t *testing.T) {
	theirs := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for off, says := range map[time.Duration]string{
		0: "", maxSkew: "", -maxSkew: "", 3 * time.Hour: "3h0m0s ahead of the pool's, where it is 2026-03-01 12:00:00 UTC", -87600 * time.Hour: "87600h0m0s behind the pool's",
	} {
		err := apart(theirs.Add(off), theirs)
		if says == "" && err != nil || says != "" && (!errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v: got %v, want %q", off, err, says)
		}
	}
}
