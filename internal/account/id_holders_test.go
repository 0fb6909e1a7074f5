package account

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nann:x:200005:100::/:/bin/sh\nbroken\nbob:x:many:1::/:/bin/sh\n",
		"group":  "staff:x:265535:\nother:x:265536:\n",
		"subuid": "ann:100000:65536\nbob:165536:65536\n1003:4294967000:65536\nzero:200001:0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []IDHolder{
		{dir + "/passwd", "ann", IDRange{200_005, 200_005}}, {dir + "/group", "staff", IDRange{265_535, 265_535}},
		{dir + "/subuid", "bob", IDRange{165_536, 231_071}},
	}
	if got := IDHolders(dir, IDRange{200_000, 265_535}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := IDHolders(dir, IDRange{4_294_967_200, 4_294_967_290}); len(got) != 1 || got[0].Name != "1003" {
		t.Errorf("got %v, want 1003's, whose last ids are past the end", got)
	}
	if got := IDHolders(dir, IDRange{}); got != nil {
		t.Errorf("no ids are %v's", got)
	}
}
