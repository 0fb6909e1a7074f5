package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// listArchive reads an archive back. It returns a line for each entry, with its mode,
// name, and quoted contents.
func listArchive(t *testing.T, data string) []string {
	t.Helper()
	var out []string
	for {
		if len(data) < 110 || data[:6] != "070701" {
			t.Fatalf("no header where one should be: %.20q", data)
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(data[6+8*i:14+8*i], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		mode, size, major, minor, length := field(1), field(6), field(9), field(10), field(11)
		name := data[110 : 110+length-1]
		data = data[(110+length+3)&^3:]
		content := data[:size]
		data = data[(size+3)&^3:]
		if name == "TRAILER!!!" {
			if data != "" {
				t.Errorf("%d bytes behind the end", len(data))
			}
			return out
		}
		out = append(out, fmt.Sprintf("%06o %s %q %d:%d", mode, name, content, major, minor))
	}
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	base, over := filepath.Join(dir, "base"), filepath.Join(dir, "over")
	for name, text := range map[string]string{
		"base/usr/bin/sh": "shell", "base/usr/bin/ls": "list it", "over/bin/sh": "another", "over/etc/x": "",
		"init": "#!",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(base, "bin")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if err := run(out, []string{base + "=/", over + "=/", filepath.Join(dir, "init") + "=/init"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`120777 bin "usr/bin" 0:0`,
		`040755 dev "" 0:0`,
		`020600 dev/console "" 5:1`,
		`020666 dev/null "" 1:3`,
		`040755 etc "" 0:0`,
		`100755 etc/x "" 0:0`,
		`100755 init "#!" 0:0`,
		`040755 usr "" 0:0`,
		`040755 usr/bin "" 0:0`,
		`100755 usr/bin/ls "list it" 0:0`,
		`100755 usr/bin/sh "another" 0:0`,
	}
	if got := listArchive(t, string(data)); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBadArguments(t *testing.T) {
	for arg, want := range map[string]string{
		"x": "SOURCE=DEST", "x=y": "DEST beginning with a slash", "=/y": "SOURCE=DEST",
		"/no/such/file=/y": "no such file",
	} {
		out := filepath.Join(t.TempDir(), "out")
		if err := run(out, []string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", arg, err, want)
		}
	}
	if got := slices.Sorted(maps.Keys(newTree())); len(got) != 2 {
		t.Errorf("an empty tree has %v", got)
	}
}
