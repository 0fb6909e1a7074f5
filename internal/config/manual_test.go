package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestManual compares roost-node(5) with Load, both ways: each setting and block is
// documented, and no others are.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../../man/roost-node.5")
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	for _, line := range regexp.MustCompile(`(?m)^\.TP\n\.BR? (.*)$|^\.SH ([a-z_]+)$`).
		FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Fields(strings.NewReplacer(`", "`, " ", ",", " ").Replace(line[1] + line[2])) {
			documented = append(documented, strings.Trim(name, `"`))
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ *([a-z_]+) (?: *=|.*\{$)`).FindAllSubmatch(Write(fullNode()), -1) {
		known = append(known, string(m[1]))
	}
	slices.Sort(documented)
	slices.Sort(known)
	documented, known = slices.Compact(documented), slices.Compact(known)
	if !slices.Equal(documented, known) {
		t.Errorf("the manual tells of\n%v\nand the node file knows\n%v", documented, known)
	}
}

// TestSamples loads every sample file.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("../../etc/nodes/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		if _, err := Load(file); err != nil {
			t.Errorf("%v", err)
		}
	}
}
