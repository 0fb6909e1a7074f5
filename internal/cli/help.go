package cli

import (
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// printOverview prints all commands by group and what to try first.
func (a *App) printOverview(w io.Writer) {
	fmt.Fprintf(w, "Roost runs your work on the machines of a pool.\n\n")
	fmt.Fprintf(w, "%s roost COMMAND [flags] [arguments]\n", a.out.colourText(bold, "Usage:"))
	for _, group := range commandGroups() {
		fmt.Fprintf(w, "\n%s\n", a.out.colourText(bold, group))
		for _, c := range a.all() {
			if c.group == group && !c.hidden {
				fmt.Fprintf(w, "  %-11s %s\n", c.name, c.summary)
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n", a.out.colourText(bold, "Try first"))
	for _, e := range []commandExample{
		{"roost up", "start a pool on this machine (leave it running)"},
		{"roost run -- echo hello", "run a command in it"},
		{"roost submit job.hcl", "submit a job file, then: roost wait last"},
	} {
		fmt.Fprintf(w, "  %-25s %s\n", e.line, e.description)
	}
	fmt.Fprintf(w, "\nroost COMMAND --help tells more about each; man roost tells the rest.\n")
}

// printHelp prints one page about a command.
func (a *App) printHelp(w io.Writer, cmd *command) {
	name := "roost " + cmd.name
	if cmd.group == groupPBS {
		name = cmd.name
	}
	line := name
	if len(cmd.flags) > 0 {
		line += " [flags]"
	}
	if cmd.synopsis != "" {
		line += " " + cmd.synopsis
	}
	fmt.Fprintf(w, "%s: %s\n\n%s %s\n\n%s\n", name, cmd.summary, a.out.colourText(bold, "Usage:"), line,
		wrapText(cmd.description, 78))
	if len(cmd.examples) > 0 {
		fmt.Fprintf(w, "\n%s\n", a.out.colourText(bold, "Examples"))
		for _, e := range cmd.examples {
			fmt.Fprintf(w, "  %s\n      %s\n", e.line, e.description)
		}
	}
	fmt.Fprintf(w, "\n%s\n", a.out.colourText(bold, "Flags"))
	for _, f := range cmd.flags {
		fmt.Fprintf(w, "  %s\n", flagLine(f))
	}
	fmt.Fprintf(w, "\nThe whole manual page: man %s\n", manualPage(cmd))
}

// manualPage is the name of the manual page of a command.
func manualPage(cmd *command) string {
	if cmd.group == groupPBS {
		return cmd.name
	}
	return "roost-" + cmd.name
}

// flagLine is a flag in the help: its names, its value, what it does.
func flagLine(f ucli.Flag) string {
	doc := f.(ucli.DocGenerationFlag)
	value, words := flagUsage(doc)
	var names []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			names = append([]string{"-" + n}, names...)
		} else {
			names = append(names, "--"+n)
		}
	}
	left := strings.Join(names, ", ")
	if doc.TakesValue() {
		left += " " + value
	}
	const column = 24
	lines := strings.Split(wrapText(words, 78-column-2), "\n")
	text := strings.Join(lines, "\n"+strings.Repeat(" ", column+2))
	if len(left) >= column {
		return left + "\n" + strings.Repeat(" ", column+2) + text
	}
	return fmt.Sprintf("%-*s%s", column, left, text)
}

// flagUsage splits the usage of a flag into the name of its value, which stands in
// backquotes, and the words.
func flagUsage(doc ucli.DocGenerationFlag) (value, words string) {
	words = doc.GetUsage()
	if before, rest, ok := strings.Cut(words, "`"); ok {
		if v, after, ok := strings.Cut(rest, "`"); ok {
			return v, before + v + after
		}
	}
	return "VALUE", words
}

// wrapText breaks text into lines of at most width characters. Empty lines and lines that
// begin with a blank stay as they are.
func wrapText(text string, width int) string {
	var out []string
	for _, paragraph := range strings.Split(text, "\n") {
		if paragraph == "" || paragraph[0] == ' ' {
			out = append(out, paragraph)
			continue
		}
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
				out = append(out, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
