package cli

import (
	"errors"
	"strings"
)

// maxTypos is how many slips of the finger still make a name recognizable.
const maxTypos = 2

// nearest returns the name that was most likely meant, or "".
func nearest(name string, names []string) string {
	best, least := "", maxTypos+1
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours between two short words (optimal string alignment, Damerau 1964).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func cureCommand(name string) string {
	var names []string
	for _, c := range commands() {
		if !c.hidden {
			names = append(append(names, c.name), c.aliases...)
		}
	}
	if len(name) <= 32 {
		if n := nearest(name, names); n != "" {
			return "did you mean: roost " + n
		}
	}
	return "see all commands with: roost --help"
}

func cureFlag(name string, names []string, help string) string {
	if len(name) <= 32 {
		if n := nearest(name, names); n != "" {
			return "did you mean " + n + "?"
		}
	}
	return "see all flags with: " + help
}

// cureUsage says what to do about a command line that is wrong.
func cureUsage(cmd *command, err error) string {
	help := "roost " + cmd.name + " --help"
	var unknown *unknownFlag
	if !errors.As(err, &unknown) || !strings.HasPrefix(unknown.name, "--") {
		return "see how it is used with: " + help
	}
	var names []string
	for _, f := range cmd.flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	return cureFlag(unknown.name, names, help)
}
