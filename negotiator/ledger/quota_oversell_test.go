package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestOversell checks which quotas a pool of 100 cores and 8 GPUs may sell beside those
// that are set.
func TestOversell(t *testing.T) {
	quota := func(who, band, most string) string {
		kind, name, _ := strings.Cut(who, " ")
		return fmt.Sprintf(`{%q: %q, "band": %q, "most": {%s}}`, kind, name, band, most)
	}
	set := func(l *Ledger, kind ObjectKind, text string) *AdminCommand {
		return &AdminCommand{Who: "root@c1", Trusted: true, Verb: VerbSet, Kind: kind, Object: []byte(text)}
	}
	l, now := New(), time.Unix(1_000_000, 0)
	apply := func(kind ObjectKind, text string) {
		t.Helper()
		epoch, _ := l.Epoch()
		result := l.Apply(&LogEntry{At: now.UnixNano(), Epoch: epoch, Commands: []AdminCommand{*set(l, kind, text)}})
		if err := result.Commands[0]; err != nil {
			t.Fatal(err)
		}
	}
	l.Apply(&LogEntry{At: now.UnixNano(), Lead: "c1"})
	total := roost.Resources{CPU: 100_000, GPUs: 8}
	if err := CheckOversell(l, set(l, KindQuota, quota("user ann", "production", `"cpus": 900`)), total); err != nil {
		t.Errorf("with the default everything may be sold: %v", err)
	}
	apply(KindSetting, `{"name": "oversell_production", "value": "off"}`)
	for _, g := range []string{"chem", "chem.lab"} {
		apply(KindGroup, fmt.Sprintf(`{"name": %q}`, g))
	}
	apply(KindQuota, quota("user ann", "production", `"cpus": 30`))
	apply(KindQuota, quota("user ann", "monitoring", `"cpus": 10`))
	apply(KindQuota, quota("user each", "production", `"cpus": 500`))
	apply(KindQuota, quota("user bob", "batch", `"cpus": 500`))
	apply(KindQuota, quota("group chem", "production", `"cpus": 40`))
	apply(KindQuota, quota("group chem.lab", "production", `"cpus": 40`))
	for _, test := range []struct{ what, text, want string }{
		{"what is left", quota("user bob", "production", `"cpus": 20`), ""},
		{"more than is left", quota("user bob", "production", `"cpus": 20.5`),
			"would add up to 100.5 cpus, and the pool has 100 cpus"},
		{"in the place of what she has", quota("user ann", "production", `"cpus": 50`), ""},
		{"more in its place", quota("user ann", "monitoring", `"cpus": 31`), "would add up to 101 cpus"},
		{"a group in a group", quota("group chem.lab", "production", `"cpus": 39`), ""},
		{"a group with groups in it", quota("group chem", "production", `"cpus": 61`), "would add up to 101 cpus"},
		{"GPUs", quota("user bob", "production", `"gpus": 9`), "would add up to 9 gpus, and the pool has 8 gpus"},
		{"a number of tasks", quota("user bob", "production", `"tasks": 100000`), ""},
		{"batch", quota("user carl", "batch", `"cpus": 1000`), ""},
		{"what each may have", quota("user each", "production", `"cpus": 1000`), ""},
	} {
		err := CheckOversell(l, set(l, KindQuota, test.text), total)
		if test.want == "" && err != nil || test.want != "" && !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: got %v, want %q", test.what, err, test.want)
		}
	}
}
