package hostlist

import (
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"", ""},
		{"n1", "n1"},
		{"n[1-3,7]", "n1 n2 n3 n7"},
		{"n[001-003,12],login", "n001 n002 n003 n12 login"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"n[1-2].vm", "n1.vm n2.vm"},
		{"a,,b c", "a b c"},
		{"n1,n1", "n1 n1"},
		{"n[", "!"}, {"n]", "!"}, {"n[[1]]", "!"}, {"n[]", "!"}, {"n[3-1]", "!"}, {"n[1-x]", "!"},
		{"n[0-99999]", "!"}, {"a[0-999]b[0-999]", "!"}, {"n[1-99999999999999999999]", "!"},
	} {
		hosts, err := Expand(c.list)
		got := strings.Join(hosts, " ")
		if err != nil {
			got = "!"
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.list, got, err, c.want)
		}
	}
}

func TestCompress(t *testing.T) {
	for _, c := range []struct{ hosts, want string }{
		{"", ""},
		{"n1", "n1"},
		{"n1 n2 n3 n7", "n[1-3,7]"},
		{"n9 n10 n11", "n[9-11]"},
		{"n09 n10 n11", "n[09-11]"},
		{"n001 n002 n12", "n[001-002,12]"},
		{"n1.vm n2.vm", "n1.vm,n2.vm"},
		{"a1 b1 a2", "a1,b1,a2"},
		{"n2 n1", "n[2,1]"},
		{"17 18", "17,18"},
		{"r1n1 r1n2 r2n1", "r1n[1-2],r2n1"},
	} {
		if got := Compress(strings.Fields(c.hosts)); got != c.want {
			t.Errorf("%s: %s, want %s", c.hosts, got, c.want)
		}
	}
}

func TestSort(t *testing.T) {
	got := strings.Join(Sort([]string{"n10", "n9", "login", "n10", "a"}), " ")
	if got != "a login n9 n10" {
		t.Error(got)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("n[001-010,12],login")
	f.Add("r[1-2]n[09-11]x n9,n10,n010")
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := Expand(list)
		if err != nil {
			return
		}
		short := Compress(hosts)
		again, err := Expand(short)
		if err != nil || !slices.Equal(hosts, again) {
			t.Errorf("%q: %q is written %q and read as %q, %v", list, hosts, short, again, err)
		}
	})
}
