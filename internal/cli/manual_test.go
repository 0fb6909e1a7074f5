package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// documentedFlags reads the flags in the OPTIONS of a manual page. They are bold, begin
// with a dash, and follow a .TP or .It.
func documentedFlags(text string) []string {
	var flags []string
	inside, tag := false, false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, ".SH"):
			inside = strings.Contains(line, "OPTIONS")
		case inside && line == ".TP":
			tag = true
		case tag:
			tag = false
			line = strings.NewReplacer(`\-`, "-", `\fB`, " ", `\fR`, " ", `\fI`, " ", ",", " ", `"`, " ").Replace(line)
			for _, word := range strings.Fields(line) {
				if flagWord.MatchString(word) {
					flags = append(flags, word)
				}
			}
		}
	}
	slices.Sort(flags)
	return flags
}

var flagWord = regexp.MustCompile(`^--?[A-Za-z0-9][a-z0-9-]*$`)

// TestManual holds that every command has a page, that the page names its flags, and that
// it names no others.
func TestManual(t *testing.T) {
	for _, cmd := range allCommands() {
		if cmd.Hidden {
			continue
		}
		found, _ := filepath.Glob(filepath.Join("..", "..", "man", frame.ManualPage(cmd)+".[18]"))
		if len(found) != 1 {
			t.Errorf("%s: there are %d manual pages of that name in section 1 or 8", frame.ManualPage(cmd), len(found))
			continue
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, f := range cmd.Flags {
			for _, n := range f.Names() {
				if len(n) == 1 {
					want = append(want, "-"+n)
				} else {
					want = append(want, "--"+n)
				}
			}
		}
		if strings.HasSuffix(found[0], ".8") { // what all commands have stands in roost(1)
			want = slices.DeleteFunc(want, func(n string) bool {
				return slices.Contains([]string{"--dir", "--color", "--help", "-h"}, n)
			})
		}
		slices.Sort(want)
		if got := documentedFlags(string(text)); !slices.Equal(got, want) {
			t.Errorf("%s:\nnames the flags %v\nthe command has %v", found[0], got, want)
		}
		if strings.HasSuffix(found[0], ".8") {
			continue
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "SEE ALSO"} {
			if !strings.Contains(string(text), ".SH "+section+"\n") &&
				!strings.Contains(string(text), ".SH \""+section+"\"\n") {
				t.Errorf("%s: it has no section %s", found[0], section)
			}
		}
	}
}

// TestHelp holds that every command that people see explains itself with two examples and
// at most a page.
func TestHelp(t *testing.T) {
	for _, cmd := range allCommands() {
		if !cmd.Hidden && (len(cmd.Examples) < 2 || cmd.Summary == "" || cmd.Description == "") {
			t.Errorf("%s: it needs a description and two examples", cmd.Name)
		}
	}
}

// TestCompletionScripts holds that the scripts in etc are those that roost completion
// prints.
func TestCompletionScripts(t *testing.T) {
	for shell, want := range frame.CompletionScripts() {
		file := filepath.Join("..", "..", "etc", "completion", "roost."+shell)
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what roost completion %s prints (%v)", file, shell, err)
		}
	}
}

// TestSettingsManual holds that roost-cell(1) lists the settings of the cell, with their
// defaults, and no others.
func TestSettingsManual(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "man", "roost-cell.1"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range ledger.Settings() {
		value := r.Default
		if value == "" {
			value = `""""`
		}
		want = append(want, r.Name+" = "+value)
	}
	var got []string
	for _, found := range regexp.MustCompile(`(?m)^\.BR ([a-z_]+) " = (.*)"$`).FindAllStringSubmatch(string(text), -1) {
		got = append(got, found[1]+" = "+found[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("roost-cell(1) has\n%v\nand the table has\n%v", got, want)
	}
}

// TestCapabilitiesManual holds that roost-admin(1) names every capability that can be
// given.
func TestCapabilitiesManual(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "man", "roost-admin.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ledger.Capabilities() {
		if !strings.Contains(string(text), "\n.TP\n.B "+c.Name+"\n") {
			t.Errorf("roost-admin(1) does not name %s", c.Name)
		}
	}
}

// TestManualSpaces holds that no sentence follows a macro such as .BR, which prints words
// without blanks.
func TestManualSpaces(t *testing.T) {
	pages, _ := filepath.Glob(filepath.Join("..", "..", "man", "*.[1-8]"))
	if len(pages) == 0 {
		t.Fatal("there are no manual pages")
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if match := joined.FindString(quoted.ReplaceAllString(line, "Q")); match != "" {
				t.Errorf("%s, line %d: %q is printed as one word", filepath.Base(page), i+1, match)
			}
		}
	}
}

// joined is a line of words in two fonts with the end of a sentence in it, after which
// one goes on.
var (
	joined = regexp.MustCompile(`^\.(BR|RB|IR|RI|BI|IB) .*[.;:,)] +\S+ +\S+ +\S+.*`)
	quoted = regexp.MustCompile(`"[^"]*"`)
)
