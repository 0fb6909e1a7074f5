package submit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSamples checks that the sample job files are valid.
func TestSamples(t *testing.T) {
	names, _ := filepath.Glob("../../etc/jobs/*.hcl")
	if len(names) == 0 {
		t.Fatal("no samples")
	}
	there := testTree{"/bin/sh": "#", "/usr/bin/python3": "#", "/bin/echo": "#", "/usr/bin/wc": "#"}
	for _, name := range names {
		there["/home/ann/sims/"+filepath.Base(name)] = "x"
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		opts := testOptions(name)
		opts.Files = there
		if jobs, diags := ParseFile(src, opts); diags.HasErrors() || len(jobs) == 0 {
			t.Errorf("%s: %s", name, Format(diags, src, 100, false))
		}
	}
}

// allSettings lists all functions and settings.
func allSettings(p *fileParser) []string {
	return slices.Concat(functionNames(p.functions()), jobSettings, allocSettings, checkpointSettings, serviceSettings,
		backoffSettings, portSettings, checkSettings, scheduleSettings, updateSettings, logSettings, autoscaleSettings,
		sizeSettings, secretSettings)
}

// TestManual compares roost-job(5) with the settings and functions.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../man/roost-job.5")
	if err != nil {
		t.Fatal(err)
	}
	p := newParser(nil, testOptions(""))
	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[a-z_]+`).FindAllString(string(page), -1) {
		words[w] = true
	}
	for _, name := range allSettings(p) {
		if !words[name] {
			t.Errorf("roost-job(5) does not tell of %s", name)
		}
	}
	known := strings.Join(allSettings(p), " ") + " "
	for _, m := range regexp.MustCompile(`(?m)^\.BI ([a-z_]+) |"\\fR, \\fP" ([a-z_]+)`).
		FindAllStringSubmatch(string(page), -1) {
		if name := m[1] + m[2]; !strings.Contains(known, name+" ") {
			t.Errorf("roost-job(5) tells of %s, which is no setting", name)
		}
	}
}
