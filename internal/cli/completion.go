package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/translate"
	"github.com/roost-batch/roost/internal/wire"
)

func completionCommand() *frame.Command {
	return &frame.Command{
		Name: "completion", Group: frame.GroupMore, Summary: "print the script that completes words in a shell",
		Synopsis: "bash|zsh|fish", MinOperands: 1, MaxOperands: 1, OperandName: "a shell: bash, zsh or fish",
		Run: printCompletion,
		Description: "Prints a script for your shell, with which Tab completes commands, flags, ids of jobs, states " +
			"and bands.",
		Examples: []frame.Example{
			{Line: "source <(roost completion bash)", Description: "for this bash; put it into ~/.bashrc for all"},
			{Line: "roost completion fish > ~/.config/fish/completions/roost.fish", Description: "for fish"},
		},
	}
}

func printCompletion(c *frame.Invocation) error {
	script, ok := frame.CompletionScripts()[c.Args[0]]
	if !ok {
		return frame.WithHint(frame.UsageErrorf("there is no completion for %q", c.Args[0]),
			"there is one for bash, zsh and fish")
	}
	fmt.Fprint(c.Stdout, script)
	return nil
}

func wordsCommand() *frame.Command {
	return &frame.Command{
		Name: "words", Group: frame.GroupMore, Summary: "list what may stand next on a command line",
		Synopsis:    "-- WORD…",
		MaxOperands: -1, Hidden: true, FlagsFirst: true, Run: printWords,
		Description: "The completion scripts call this with the words so far, of which the last is the one " +
			"to complete.",
	}
}

func printWords(c *frame.Invocation) error {
	words := c.Args
	if len(words) == 0 {
		words = []string{""}
	}
	if cmd := c.Find(words[0]); cmd != nil && cmd.Program != "" && len(words) > 1 {
		return c.ExecSibling(cmd.Program)
	}
	last := words[len(words)-1]
	for _, s := range suggestions(c, words[:len(words)-1], last) {
		if strings.HasPrefix(s.Word, last) || s.Word == ":files" {
			fmt.Fprintln(c.Stdout, strings.TrimSuffix(s.Word+"\t"+s.Description, "\t"))
		}
	}
	return nil
}

func suggestions(c *frame.Invocation, before []string, last string) []frame.CompletionItem {
	if len(before) == 0 {
		return commandWords(c.All())
	}
	cmd := c.Find(before[0])
	if cmd == nil {
		return nil
	}
	if before[0] == "help" {
		return commandWords(c.All())
	}
	if previous := before[len(before)-1]; strings.HasPrefix(previous, "--") && len(before) > 1 {
		if f := frame.FlagNamed(cmd.Flags, previous[2:]); f != nil && frame.TakesValue(f) {
			if cmd.Name == "translate" && previous == "--from" {
				return dialectWords()
			}
			return valueWords(previous[2:])
		}
	}
	if strings.HasPrefix(last, "-") {
		return flagWords(cmd)
	}
	switch {
	case cmd.Name == "completion":
		return []frame.CompletionItem{{Word: "bash", Description: "shell"}, {Word: "zsh", Description: "shell"},
			{Word: "fish", Description: "shell"}}
	case cmd.Branches != nil && len(before) == 1:
		return frame.SubcommandWords(cmd.Branches())
	case cmd.Name == "sim":
		return []frame.CompletionItem{{Word: ":files", Description: ""}}
	case cmd.Group == frame.GroupAdmin && len(before) == 1 && cmd.MaxOperands < 0 && cmd.MinOperands == 0 ||
		cmd.Name == "cell" && len(before) == 1 || cmd.Name == "shares" && len(before) == 1:
		return frame.AdminVerbs(cmd)
	case cmd.Group == frame.GroupAdmin || cmd.Name == "shares":
		return nil
	case strings.HasPrefix(cmd.Synopsis, "JOB") || strings.HasPrefix(cmd.Synopsis, "[JOB"):
		return jobWords(c)
	case cmd.MaxOperands != 0:
		return []frame.CompletionItem{{Word: ":files", Description: ""}}
	}
	return nil
}

func commandWords(all []*frame.Command) (list []frame.CompletionItem) {
	for _, cmd := range all {
		if !cmd.Hidden {
			list = append(list, frame.CompletionItem{Word: cmd.Name, Description: cmd.Summary})
		}
	}
	return list
}

func flagWords(cmd *frame.Command) (list []frame.CompletionItem) {
	for _, f := range cmd.Flags {
		_, words := frame.FlagUsage(f.(ucli.DocGenerationFlag))
		list = append(list, frame.CompletionItem{Word: "--" + f.Names()[0], Description: words})
	}
	return list
}

// valueWords are the values of a flag, where they are known beforehand.
func valueWords(flag string) (list []frame.CompletionItem) {
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
	case "dir", "config", "stdin", "input", "output", "directory", "ad", "target", "to":
		return []frame.CompletionItem{{Word: ":files", Description: ""}}
	}
	for _, n := range names {
		list = append(list, frame.CompletionItem{Word: n, Description: flag})
	}
	return list
}

func dialectWords() (list []frame.CompletionItem) {
	for _, d := range translate.Dialects() {
		list = append(list, frame.CompletionItem{Word: d, Description: "from"})
	}
	return list
}

// maxJobWords bounds how many jobs are offered.
const maxJobWords = 50

// jobWords offers the user's jobs of all queues of the pool. Those of other schedds and
// of the cell's own queue have the name of their queue. Without a pool there is nothing
// to offer, and nothing to say.
func jobWords(c *frame.Invocation) []frame.CompletionItem {
	list := []frame.CompletionItem{{Word: "last", Description: "your newest job"}}
	found, _, err := c.QueryPool("", &wire.QueryRequest{Selection: &wire.Selection{Mine: true}, History: true,
		Limit: maxJobWords})
	if err != nil || len(found) == 0 {
		return list
	}
	own, err := c.ServerName()
	if err != nil {
		own = "" // every id is complete then
	}
	for _, s := range found {
		number, host, _ := strings.Cut(s.GetId(), ".")
		word := strings.TrimSuffix(number, "[]")
		if host != own {
			word += "." + host
		}
		list = append(list, frame.CompletionItem{Word: word,
			Description: document.PrintableText(s.GetName()) + ", " + document.StateOf(s)})
	}
	return list
}
