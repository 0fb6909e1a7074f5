package page

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strings"
	"testing"
)

// TestVendorFiles checks that files of others are those whose versions and checksums are
// listed, and no others. scripts/vendor.sh compares the list with npm.
func TestVendorFiles(t *testing.T) {
	list, err := files.ReadFile("static/vendor/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"versions.txt": true}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 || strings.LastIndex(fields[1], "@") < 1 {
			t.Fatalf("%q: want file, package@version, path, SHA-256", line)
		}
		text, err := files.ReadFile("static/vendor/" + fields[0])
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != fields[3] {
			t.Errorf("%s has the checksum %s, want that of %s, %s", fields[0], got, fields[1], fields[3])
		}
		known[fields[0]] = true
	}
	all, err := fs.ReadDir(files, "static/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if !known[e.Name()] {
			t.Errorf("%s is not in versions.txt", e.Name())
		}
		if _, err := fs.Stat(files, "static/"+e.Name()); err == nil {
			t.Errorf("%s hides a file of others", e.Name())
		}
	}
}
