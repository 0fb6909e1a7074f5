package release

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// TestRelation: patch versions make no difference, and only one release back is near.
func TestRelation(t *testing.T) {
	for _, c := range []struct {
		own, previous, version string
		want                   Relation
	}{
		{"0.3.0", "0.2", "0.3.7", Same}, {"0.3.0", "0.2", "0.3", Same},
		{"0.3.0", "0.2", "0.2.9", OneBefore}, {"0.3.0", "0.2", "0.1.0", TooOld},
		{"0.3.0", "0.2", "0.4.0", Newer}, {"0.3.0", "0.2", "1.0.0", Newer}, {"0.3.0", "0.2", "0.10.0", Newer},
		{"1.0.0", "0.9", "0.9.4", OneBefore}, {"1.0.0", "0.9", "0.8.4", TooOld},
		{"0.1.0", "", "0.0.9", TooOld}, {"0.1.0", "", "", Unknown}, {"0.1.0", "", "0", Unknown},
		{"0.1.0", "", "a.b", Unknown}, {"0.1.0", "", "-1.2", Unknown},
	} {
		if got := relation(c.own, c.previous, c.version); got != c.want {
			t.Errorf("relation(%q, %q, %q) = %v, want %v", c.own, c.previous, c.version, got, c.want)
		}
	}
	if got := RelationOf(roost.Version); got != Same {
		t.Errorf("this program compared with itself: %v", got)
	}
}

// TestAdOfProgram: an ad says what the program is, and does not say too much.
func TestAdOfProgram(t *testing.T) {
	ad := classad.New()
	Describe(ad)
	if got := Of(ad); got != Own() {
		t.Errorf("got %+v, want %+v", got, Own())
	}
	ad.SetString(roost.AttrVersion, strings.Repeat("1", 65))
	ad.SetString(AttrCommit, strings.Repeat("c", 65))
	if got := Of(ad); got.Version != "" || got.Commit != "" {
		t.Errorf("a long version is taken: %+v", got)
	}
}
