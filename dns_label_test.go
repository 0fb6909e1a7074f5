package roost

import (
	"strings"
	"testing"
)

// TestDNSLabel checks texts that are labels and others, and the nearest label of each.
func TestDNSLabel(t *testing.T) {
	long := strings.Repeat("a", MaxDNSLabel)
	for _, c := range []struct {
		text    string
		is      bool
		nearest string
	}{
		{"web", true, "web"}, {"Web-2", true, "web-2"}, {"4you", true, "4you"}, {long, true, long},
		{"web_1", false, "web-1"}, {"-web", false, "web"}, {"web-", false, "web"}, {"a.b", false, "a-b"},
		{long + "b", false, long}, {"größe", false, "gr--e"}, {"__", false, ""}, {"", false, ""},
		{long[1:] + "_b", false, long[1:]},
	} {
		if IsDNSLabel(c.text) != c.is || NearestDNSLabel(c.text) != c.nearest {
			t.Errorf("%q: %v, nearest %q; want %v, %q", c.text, IsDNSLabel(c.text), NearestDNSLabel(c.text), c.is,
				c.nearest)
		}
		if n := NearestDNSLabel(c.text); n != "" && !IsDNSLabel(n) {
			t.Errorf("%q is no label", n)
		}
	}
}
