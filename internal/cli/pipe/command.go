package pipe

import (
	"github.com/roost-batch/roost/internal/cli/frame"
)

// Command returns roost api: run command lines that a program sends.
func Command() *frame.Command {
	return &frame.Command{
		Name: "api", Group: frame.GroupMore, Summary: "run the command lines that a program sends",
		Run: func(c *frame.Invocation) error { return newServer(c).serve() },
		Description: "Reads requests from standard input and answers on standard output, in JSON, one on each " +
			"line: a request has a command line of roost, and its answers have what the command prints. Requests " +
			"run at the same time. The command is for libraries of other languages, as roost-python(7); it ends " +
			"with its standard input.",
		Examples: []frame.Example{
			{Line: `echo '{"v":1,"id":"1","args":["jobs","--json"]}' | roost api`, Description: "your jobs"},
			{Line: "roost api <requests >answers", Description: "all command lines of a file, at the same time"},
		},
	}
}
