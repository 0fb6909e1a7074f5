package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestConfigCheck checks files with and without mistakes, and the file of a running node.
func TestConfigCheck(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.hcl", "name = \"n1\"\ndir = \""+dir+"\"\ncollector {}\nnegotiator {}\nschedd {}\n")
	bad := write("bad.hcl", "name = \"n1\"\ncollector {\n  lissten = [\"127.0.0.1:9701\"]\n}\n")

	check := func(files ...string) (code int, doc struct {
		OK    bool
		Files []fileCheck
	}, errors string) {
		a, stdout, stderr := clitest.NewApp(t, dir, frame.WithCommonFlags([]*frame.Command{ConfigCommand()}))
		code = a.Run(t.Context(), append([]string{"roost", "config", "check", "--json"}, files...))
		if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
			t.Fatalf("%v: %s%s", err, stdout, stderr)
		}
		return code, doc, stderr.String()
	}
	code, doc, errors := check(good)
	if want := []string{"collector", "negotiator", "schedd"}; code != 0 || !doc.OK ||
		!slices.Equal(doc.Files[0].Daemons, want) {
		t.Errorf("a good file: exit %d, %+v, %s", code, doc, errors)
	}
	code, doc, errors = check(good, bad)
	if code != 78 || doc.OK || !doc.Files[0].OK || doc.Files[1].OK ||
		!strings.Contains(doc.Files[1].Error, "bad.hcl line 3") && !strings.Contains(doc.Files[1].Error, "bad.hcl:3") {
		t.Errorf("a bad file: exit %d, %+v, %s", code, doc, errors)
	}
}
