package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestExportScript follows scripts of an environment.
func TestExportScript(t *testing.T) {
	for text, want := range map[string]string{
		"export A=1":                                  "A=1",
		"export A=1 B='two words'  # why":             `A=1 B=two words`,
		"A=1; export A":                               "A=1",
		"A=1":                                         "",
		"A=1\nB=2\nexport B A":                        "A=1 B=2",
		`export A="${A:-"a b"}"`:                      "A=a b",
		`export A="${A:-}"`:                           "A=",
		`export A=${A:-x}y`:                           "A=xy",
		`export PATH=/opt/bin:$PATH`:                  "PATH=/opt/bin:/bin",
		`export PATH="/opt/bin:${PATH}"`:              "PATH=/opt/bin:/bin",
		`export L=/x:$LD_LIBRARY_PATH`:                "L=/x:",
		`export A="q\"u\\o\$te\n"`:                    `A=q"u\o$te\n`,
		`export A=a\ b`:                               "A=a b",
		`export A='$B'`:                               "A=$B",
		"export A=$HOME/x":                            "!",
		"export A=$(date)":                            "!",
		"export A=`date`":                             "!",
		"export A=\"$(date)\" B=1":                    "!",
		"source /etc/profile":                         "!",
		"export A=1 && echo x":                        "!",
		"export A='open":                              "!",
		`export A="open`:                              "!",
		"export A=${B":                                "!",
		"export A=${B:-c":                             "!",
		"export A=${B#c}":                             "!",
		"export 1A=2":                                 "!",
		"export -n A":                                 "!",
		"if true; then\n  export A=1\nfi\nexport B=2": "! B=2",
		"if true; then export A=1; fi\nexport B=2":    "! B=2",
		"f() {\nexport A=1\n}\nexport B=2":            "! B=2",
		"for i in a; do\nexport A=1\ndone; export B":  "!",
	} {
		e := &exportScript{variables: map[string]string{"PATH": "/bin"}, exported: map[string]bool{}}
		var got []string
		followed := true
		for line := range strings.Lines(text) {
			followed = e.run(strings.TrimRight(line, "\n")) && followed
		}
		if !followed {
			got = append(got, "!")
		}
		for _, name := range slices.Sorted(maps.Keys(e.exported)) {
			got = append(got, fmt.Sprintf("%s=%s", name, e.variables[name]))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: got %q, want %q", text, text, want)
		}
	}
}
