package peer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attackers and victims are the parties of WHO CAN DO WHAT TO WHOM in roost-security(7),
// with their headings and tags. Each attacker is tested against each victim.
var (
	attackers = []string{"A user", "An execute node", "A submit node", "A central manager",
		"A client of the central managers", "An outsider"}
	victims = []string{"users", "execute nodes", "submit nodes", "central managers"}
	// attackers of another pool; not each has something to do with each victim, and some
	// are tried with messages instead of patched daemons
	foreign = []string{"A guest", "A host"}
)

// TestEachPairTested checks that the statements of roost-security(7) are tested. The page
// states what each attacker can and cannot do to each victim, and names existing tests
// for each statement. At least one test of each pair is live: it is in internal/e2e,
// which runs the real daemons, patched ones where the page says so.
func TestEachPairTested(t *testing.T) {
	page, err := os.ReadFile("../../../man/roost-security.7")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), ".SH WHO CAN DO WHAT TO WHOM\n")
	if !found {
		t.Fatal("roost-security(7) does not say who can do what to whom")
	}
	text, _, _ = strings.Cut(text, "\n.PP\n")
	tests := testNames(t)
	pairs, live := map[string]int{}, map[string]int{}
	attacker, victim, sentence := "", "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, ".SS "):
			attacker = strings.Trim(strings.TrimPrefix(line, ".SS "), `"`)
			if !slices.Contains(attackers, attacker) && !slices.Contains(foreign, attacker) {
				t.Errorf("nobody tries %q as an attacker", attacker)
			}
		case strings.HasPrefix(line, ".B "):
			if victim = strings.TrimPrefix(line, ".B "); !slices.Contains(victims, victim) {
				t.Errorf("%s: nobody is called %q", attacker, victim)
			}
		case line == ".IP" || line == ".TP" || line == "":
		case strings.HasPrefix(line, ".RI ("):
			for _, name := range testName.FindAllString(line, -1) {
				real, there := tests[name]
				if !there {
					t.Errorf("%s to %s: there is no %s in the tree", attacker, victim, name)
				}
				if pairs[attacker+" to "+victim]++; real {
					live[attacker+" to "+victim]++
				}
			}
			if sentence == "" || !testName.MatchString(line) {
				t.Errorf("%s to %s: %q names a test of nothing, or no test", attacker, victim, line)
			}
			sentence = ""
		case attacker != "":
			sentence += line
		}
	}
	if sentence != "" {
		t.Errorf("no test is named for %q", sentence)
	}
	for _, a := range foreign {
		if pairs[a+" to users"] == 0 || pairs[a+" to execute nodes"] == 0 {
			t.Errorf("%s: the page does not say what it can do to users and execute nodes", a)
		}
	}
	for _, a := range attackers {
		for _, v := range victims {
			if pairs[a+" to "+v] == 0 {
				t.Errorf("%s to %s: the page says nothing, and no test tries it", a, v)
			}
			if live[a+" to "+v] == 0 {
				t.Errorf("%s to %s: no test with real daemons tries it", a, v)
			}
		}
	}
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w*`)

// testNames returns the tests of the module, and whether each runs the real daemons.
func testNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names[string(m[1])] = names[string(m[1])] || filepath.Base(filepath.Dir(path)) == "e2e"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
