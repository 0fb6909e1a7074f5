package makefile

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSample checks the recipes of the sample makefile.
func TestSample(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	text, err := os.ReadFile("../../etc/flows/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	x := &tree{files: map[string]string{"Makefile": string(text), "a.hcl": "one two\n", "b.dag": "three\n"}}
	dir := x.write(t)
	d := readDatabase(t, dir)
	list, err := d.Recipes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range list {
		memory, _ := d.Variable(&list[i], "ROOST_MEMORY")
		cpus, _ := d.Variable(&list[i], "ROOST_CPUS")
		got = append(got, strings.Join([]string{r.Target, memory.Value, cpus.Value, strings.Join(r.After, "+")}, " "))
	}
	want := []string{"counts 64M  ", "counts/a.hcl.n 64M  counts", "counts/b.dag.n 64M  counts",
		"total 64M 1 counts/a.hcl.n+counts/b.dag.n"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "counts")); err == nil {
		t.Error("a recipe has run")
	}
}

func readDatabase(t *testing.T, dir string) *Database {
	t.Helper()
	out, err := runMake(t, dir, "-n", "-p", "--trace")
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDatabase(out)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDatabase checks what is read of variables. Texts of the makefile that look like
// parts of the data base are not taken for them.
func TestDatabase(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	x := &tree{files: map[string]string{"in": "", "Makefile": `
X = 3
ROOST_MEMORY = 1G
define text
# Files

fake: in
#  recipe to execute (from 'Makefile', line 1):
	true
endef
all: a.o b.o c
a.o: ROOST_MEMORY := $(X)G
%.o: ROOST_MEMORY = 2G
%.o: ROOST_CPUS = $(X)
b.%: ROOST_CPUS = 5
c: private ROOST_GPUS = 1
%.o: in
	echo one \
# Files \

	touch $@
c:
	echo 'Makefile:1: update target '\''in'\'' due to: fake'
.PHONY: all
`}}
	d := readDatabase(t, x.write(t))
	list, err := d.Recipes()
	if err != nil || len(list) != 3 || d.Targets["fake"] != nil {
		t.Fatalf("%+v, %v", list, err)
	}
	var got []string
	for i := range list {
		line := list[i].Target
		for _, name := range []string{"ROOST_MEMORY", "ROOST_CPUS", "ROOST_GPUS"} {
			v, _ := d.Variable(&list[i], name)
			line += " " + v.Value
		}
		got = append(got, line)
	}
	if want := []string{"a.o 3G $(X) ", "b.o 2G 5 ", "c 1G  1"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !slices.Equal(d.Makefiles, []string{"Makefile"}) {
		t.Errorf("makefiles are %q", d.Makefiles)
	}
}
