package makefile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runMake runs GNU make in a directory.
func runMake(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("make", args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "MFLAGS") && !strings.HasPrefix(v, "LC_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("make %q: %w: %s", args, err, stderr.String())
	}
	return string(out), err
}

// tree is a directory before make runs: texts and times of files.
type tree struct {
	files map[string]string
	times map[string]time.Time
}

func (x *tree) add(r *rand.Rand, name string) {
	x.files[name] = name + "\n"
	x.times[name] = time.Unix(1e9+int64(r.IntN(1e6)), 0)
}

func (x *tree) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range x.files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if when := x.times[name]; !when.IsZero() {
			if err := os.Chtimes(file, when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// logged is the recipe of a target that writes what it is made of. Each line of log is
// the target and the prerequisites that are newer.
const logged = "\t@echo '$@: $(sort $?)' >> log\n"

// randomTree returns a makefile with its files, and the goals.
func randomTree(r *rand.Rand) (*tree, []string) {
	x := &tree{map[string]string{}, map[string]time.Time{}}
	var m strings.Builder
	var names, colons []string
	fmt.Fprint(&m, "all: ; @echo nothing >> log\n")
	for i := range 2 + r.IntN(3) {
		names = append(names, fmt.Sprintf("s%d", i))
		x.add(r, names[i])
	}
	some := func(most int) string {
		var list []string
		for range r.IntN(most + 1) {
			list = append(list, names[r.IntN(len(names))])
		}
		slices.Sort(list)
		return strings.Join(slices.Compact(list), " ")
	}
	for i := range 3 + r.IntN(10) {
		name := fmt.Sprintf("t%d", i)
		prerequisites := some(3)
		if r.IntN(3) == 0 {
			prerequisites += " | " + some(2)
		}
		content := "\tcat $(filter-out FORCE p%,$^) /dev/null > $@\n"
		switch r.IntN(10) {
		case 0:
			name = fmt.Sprintf("p%d", i)
			fmt.Fprintf(&m, ".PHONY: %s\n%s: %s\n%s", name, name, prerequisites, logged)
		case 1:
			name = fmt.Sprintf("p%d", i)
			fmt.Fprintf(&m, "%s: %s\n", name, prerequisites)
		case 2:
			fmt.Fprintf(&m, "%s: FORCE %s\n%s%s", name, prerequisites, logged, content)
		case 3:
			stem := fmt.Sprintf("r%d", i)
			x.add(r, stem+".in")
			name = stem + ".out"
			fmt.Fprintf(&m, "%s: %s\n", name, prerequisites)
		case 4:
			stem := fmt.Sprintf("w%d", i)
			x.add(r, stem+".two")
			names = append(names, stem+".left")
			name = stem + ".right"
		case 5:
			colons = append(colons, name)
			for k := range 2 {
				fmt.Fprintf(&m, "%s:: %s\n%s\techo %d > $@\n", name, some(2), logged, k)
			}
		default:
			fmt.Fprintf(&m, "%s: %s\n%s%s", name, prerequisites, logged, content)
		}
		if r.IntN(3) > 0 && name[0] != 'p' {
			x.add(r, name)
		}
		if !slices.Contains(colons, name) { // nothing else can need one
			names = append(names, name)
		}
	}
	names = append(names, colons...)
	fmt.Fprintf(&m, "FORCE:\n%%.mid: %%.in\n%s\tcp $< $@\n%%.out: %%.mid\n%s\tcp $< $@\n", logged, logged)
	fmt.Fprintf(&m, "%%.left %%.right: %%.two\n%s\tcp $< $*.left; cp $< $*.right\n", logged)
	x.files["Makefile"] = m.String()
	goals := []string{names[len(names)-1]}
	for range r.IntN(3) {
		goals = append(goals, names[r.IntN(len(names))])
	}
	return x, goals
}

// runRecipes runs the recipes of a directory one by one, in a random order that is valid.
func runRecipes(t *testing.T, r *rand.Rand, dir string, goals []string) {
	t.Helper()
	out, err := runMake(t, dir, append([]string{"-n", "-p", "--trace", "--no-print-directory"}, goals...)...)
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDatabase(out)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.Recipes()
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for len(list) > 0 {
		var ready []int
		for i, one := range list {
			if !slices.ContainsFunc(one.After, func(name string) bool { return !done[name] }) {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			t.Fatalf("recipes wait for each other: %+v", list)
		}
		i := ready[r.IntN(len(ready))]
		if out, err := runMake(t, dir, d.Arguments(&list[i], nil, nil)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		done[list[i].Target] = true
		list = slices.Delete(list, i, i+1)
	}
}

// readLog returns the lines of the log, sorted.
func readLog(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	slices.Sort(lines)
	return lines
}

// TestRecipesAgainstMake runs random makefiles as a whole by make, and recipe by recipe
// in another order. The same recipes have to run, with the same prerequisites that are
// newer, and with the same results; afterwards nothing is left to do.
func TestRecipesAgainstMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	count := 25
	if testing.Short() {
		count = 10
	}
	recipes := 0
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		x, goals := randomTree(r)
		whole, single := x.write(t), x.write(t)
		if _, err := runMake(t, whole, goals...); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, x.files["Makefile"])
		}
		runRecipes(t, r, single, goals)
		want, got := readLog(t, whole), readLog(t, single)
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: make %q\n%s\nran %q\nwant %q", seed, goals, x.files["Makefile"], got, want)
		}
		recipes += len(want)
		for name := range x.files {
			a, _ := os.ReadFile(filepath.Join(whole, name))
			b, _ := os.ReadFile(filepath.Join(single, name))
			if !bytes.Equal(a, b) {
				t.Errorf("seed %d: %s is %q, want %q", seed, name, b, a)
			}
		}
	}
	if recipes < count {
		t.Errorf("only %d recipes ran", recipes)
	}
}

// TestDoubleColon checks that a double-colon target that another one needs is an error.
func TestDoubleColon(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	x := &tree{map[string]string{"Makefile": "all: a b\n\techo all\na::\n\techo a\nb:\n\techo b\n"}, nil}
	out, err := runMake(t, x.write(t), "-n", "-p", "--trace")
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDatabase(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Recipes(); err != (DoubleColonError{"a", "all"}) {
		t.Errorf("got %v", err)
	}
}
