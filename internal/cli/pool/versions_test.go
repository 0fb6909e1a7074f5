package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/release"
)

// TestPoolVersions: what is mixed, too old, newer or unknown is said, with names.
func TestPoolVersions(t *testing.T) {
	add := func(p *poolVersions, daemon, text string) {
		ad, err := classad.Parse("[" + text + "]")
		if err != nil {
			t.Fatal(err)
		}
		p.Daemons = append(p.Daemons, versionOf(daemon, ad))
	}
	var same poolVersions
	add(&same, "startd", `Name = "n10"; RoostVersion = "`+roost.Version+`"; RoostCommit = "c1"; DaemonStartTime = 90`)
	add(&same, "startd", `Name = "n2"; RoostVersion = "`+roost.Version+`"; RoostCommit = "c1"`)
	add(&same, "negotiator", `Name = "m"; RoostVersion = "`+roost.Version+`"; RoostCommit = "c1"`)
	same.compare(release.Own())
	if len(same.Warnings) != 0 {
		t.Errorf("warnings about one build: %q", same.Warnings)
	}
	if d := same.Daemons; d[0].Name != "m" || d[1].Name != "n2" || d[2].Name != "n10" {
		t.Errorf("order %+v", d)
	}
	if rows := same.table(time.Unix(100, 0)).Rows; rows[2][5].Text != "10s" || rows[1][5].Text != "-" {
		t.Errorf("rows %+v", rows)
	}
	mixed := same
	add(&mixed, "startd", `Name = "old"; RoostVersion = "0.0.1"`)
	add(&mixed, "schedd", `Name = "new"; RoostVersion = "99.0.0"; RoostProtocol = 7`)
	add(&mixed, "startd", `Name = "odd"`)
	mixed.compare(release.Own())
	all := strings.Join(mixed.Warnings, "\n")
	for _, want := range []string{"different builds: 3 of " + roost.Version + " c1, 1 of 0.0.1, 1 of 99.0.0, " +
		"1 of unknown version", "older than the release before " + roost.Version, "one release at a time: startd old",
		"upgrade this program: schedd new", "cannot be compared with " + roost.Version + ": startd odd"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}
