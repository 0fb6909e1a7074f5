package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/translate"
	"github.com/roost-batch/roost/internal/wire"
)

func completionCommand() *command {
	return &command{
		name: "completion", group: groupMore, summary: "print the script that completes words in a shell",
		synopsis: "bash|zsh|fish", minOperands: 1, maxOperands: 1, operandName: "a shell: bash, zsh or fish",
		run: printCompletion,
		description: "Prints a script for your shell, with which Tab completes commands, flags, ids of jobs, states " +
			"and bands.",
		examples: []commandExample{
			{"source <(roost completion bash)", "for this bash; put it into ~/.bashrc for all"},
			{"roost completion fish > ~/.config/fish/completions/roost.fish", "for fish"},
		},
	}
}

func printCompletion(c *invocation) error {
	script, ok := completionScripts()[c.args[0]]
	if !ok {
		return withHint(usageErrorf("there is no completion for %q", c.args[0]), "there is one for bash, zsh and fish")
	}
	fmt.Fprint(c.stdout, script)
	return nil
}

func wordsCommand() *command {
	return &command{
		name: "words", group: groupMore, summary: "list what may stand next on a command line", synopsis: "-- WORD…",
		maxOperands: -1, hidden: true, flagsFirst: true, run: printWords,
		description: "The completion scripts call this with the words so far, of which the last is the one " +
			"to complete.",
	}
}

func printWords(c *invocation) error {
	words := c.args
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	for _, s := range c.suggestions(words[:len(words)-1], last) {
		if strings.HasPrefix(s.word, last) || s.word == ":files" {
			fmt.Fprintln(c.stdout, strings.TrimSuffix(s.word+"\t"+s.description, "\t"))
		}
	}
	return nil
}

func (c *invocation) suggestions(before []string, last string) []completionItem {
	if len(before) == 0 {
		return commandWords(c.all())
	}
	cmd := findCommand(c.all(), before[0])
	if cmd == nil {
		return nil
	}
	if before[0] == "help" {
		return commandWords(c.all())
	}
	if previous := before[len(before)-1]; strings.HasPrefix(previous, "--") && len(before) > 1 {
		if f := flagNamed(cmd.flags, previous[2:]); f != nil && takesValue(f) {
			if cmd.name == "translate" && previous == "--from" {
				return dialectWords()
			}
			return valueWords(previous[2:])
		}
	}
	if strings.HasPrefix(last, "-") {
		return flagWords(cmd)
	}
	switch {
	case cmd.name == "completion":
		return []completionItem{{"bash", "shell"}, {"zsh", "shell"}, {"fish", "shell"}}
	case cmd.branches != nil && len(before) == 1:
		return subcommandWords(cmd.branches())
	case cmd.name == "sim":
		return []completionItem{{":files", ""}}
	case cmd.group == groupAdmin && len(before) == 1 && cmd.maxOperands < 0 && cmd.minOperands == 0 ||
		cmd.name == "cell" && len(before) == 1 || cmd.name == "shares" && len(before) == 1:
		return adminVerbs(cmd)
	case cmd.group == groupAdmin || cmd.name == "shares":
		return nil
	case strings.HasPrefix(cmd.synopsis, "JOB") || strings.HasPrefix(cmd.synopsis, "[JOB"):
		return c.jobWords()
	case cmd.maxOperands != 0:
		return []completionItem{{":files", ""}}
	}
	return nil
}

func commandWords(all []*command) (list []completionItem) {
	for _, cmd := range all {
		if !cmd.hidden {
			list = append(list, completionItem{cmd.name, cmd.summary})
		}
	}
	return list
}

func flagWords(cmd *command) (list []completionItem) {
	for _, f := range cmd.flags {
		_, words := flagUsage(f.(ucli.DocGenerationFlag))
		list = append(list, completionItem{"--" + f.Names()[0], words})
	}
	return list
}

// valueWords are the values of a flag, where they are known beforehand.
func valueWords(flag string) (list []completionItem) {
	var names []string
	switch flag {
	case "state":
		names = append(roost.TaskStateNames(), "failed")
	case "band":
		names = roost.BandNames()
	case "color":
		names = []string{"auto", "always", "never"}
	case "type":
		names = []string{"Machine", "Scheduler", "Negotiator", "Collector", "Job", "any"}
	case "sort":
		names = []string{"cpu", "memory", "gpu", "disk", "io", "time", "id"}
	case "dir", "config", "stdin", "input", "output", "directory", "ad", "target":
		return []completionItem{{":files", ""}}
	}
	for _, n := range names {
		list = append(list, completionItem{n, flag})
	}
	return list
}

func dialectWords() (list []completionItem) {
	for _, d := range translate.Dialects() {
		list = append(list, completionItem{d, "from"})
	}
	return list
}

// maxJobWords bounds how many jobs are offered.
const maxJobWords = 50

// jobWords offers the user's jobs. Without a pool there is nothing to offer, and nothing
// to say.
func (c *invocation) jobWords() []completionItem {
	list := []completionItem{{"last", "your newest job"}}
	found, err := c.queryJobs(&wire.QueryRequest{Selection: &wire.Selection{Mine: true}, History: true,
		Limit: maxJobWords})
	if err != nil {
		return list
	}
	for _, s := range found {
		id, _, _ := strings.Cut(s.GetId(), ".")
		list = append(list, completionItem{strings.TrimSuffix(id, "[]"),
			printableText(s.GetName()) + ", " + stateOf(s)})
	}
	return list
}
