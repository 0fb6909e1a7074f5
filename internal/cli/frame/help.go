package frame

import (
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// printOverview prints all commands by group and what to try first.
func (a *App) printOverview(w io.Writer) {
	fmt.Fprintf(w, "Roost runs your work on the machines of a pool.\n\n")
	fmt.Fprintf(w, "%s roost COMMAND [flags] [arguments]\n", a.OutScreen.ColourText(Bold, "Usage:"))
	for _, group := range commandGroups() {
		fmt.Fprintf(w, "\n%s\n", a.OutScreen.ColourText(Bold, group))
		for _, c := range a.All() {
			if c.Group == group && !c.Hidden {
				fmt.Fprintf(w, "  %-11s %s\n", c.Name, c.Summary)
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n", a.OutScreen.ColourText(Bold, "Try first"))
	for _, e := range []Example{
		{"roost up", "start a pool on this machine (leave it running)"},
		{"roost run -- echo hello", "run a command in it"},
		{"roost submit job.hcl", "submit a job file, then: roost wait last"},
	} {
		fmt.Fprintf(w, "  %-25s %s\n", e.Line, e.Description)
	}
	fmt.Fprintf(w, "\nroost COMMAND --help tells more about each; man roost tells the rest.\n")
}

// PrintHelp prints one page about a command.
func (a *App) PrintHelp(w io.Writer, cmd *Command) {
	name := "roost " + cmd.Name
	if cmd.IsLink() {
		name = ManualPage(cmd)
	}
	line := name
	if len(cmd.Flags) > 0 {
		line += " [flags]"
	}
	if cmd.Synopsis != "" {
		line += " " + cmd.Synopsis
	}
	fmt.Fprintf(w, "%s: %s\n\n%s %s\n\n%s\n", name, cmd.Summary, a.OutScreen.ColourText(Bold, "Usage:"), line,
		WrapText(cmd.Description, 78))
	if len(cmd.Examples) > 0 {
		fmt.Fprintf(w, "\n%s\n", a.OutScreen.ColourText(Bold, "Examples"))
		for _, e := range cmd.Examples {
			fmt.Fprintf(w, "  %s\n      %s\n", e.Line, e.Description)
		}
	}
	fmt.Fprintf(w, "\n%s\n", a.OutScreen.ColourText(Bold, "Flags"))
	for _, f := range cmd.Flags {
		fmt.Fprintf(w, "  %s\n", flagLine(f))
	}
	fmt.Fprintf(w, "\nThe whole manual page: man %s\n", ManualPage(cmd))
}

// ManualPage is the name of the manual page of a command.
func ManualPage(cmd *Command) string {
	if cmd.IsLink() {
		return strings.TrimPrefix(cmd.Name, SlurmPrefix)
	}
	return "roost-" + cmd.Name
}

// flagLine is a flag in the help: its names, its value, what it does.
func flagLine(f ucli.Flag) string {
	doc := f.(ucli.DocGenerationFlag)
	value, words := FlagUsage(doc)
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
	lines := strings.Split(WrapText(words, 78-column-2), "\n")
	text := strings.Join(lines, "\n"+strings.Repeat(" ", column+2))
	if len(left) >= column {
		return left + "\n" + strings.Repeat(" ", column+2) + text
	}
	return fmt.Sprintf("%-*s%s", column, left, text)
}

// FlagUsage splits the usage of a flag into the name of its value, in backquotes, and the
// words.
func FlagUsage(doc ucli.DocGenerationFlag) (value, words string) {
	words = doc.GetUsage()
	if before, rest, ok := strings.Cut(words, "`"); ok {
		if v, after, ok := strings.Cut(rest, "`"); ok {
			return v, before + v + after
		}
	}
	return "VALUE", words
}

// WrapText breaks text into lines of at most width characters. Empty lines and lines that
// begin with a blank stay as they are.
func WrapText(text string, width int) string {
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
