package cli

import (
	"fmt"
	"runtime"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

func versionCommand() *frame.Command {
	return &frame.Command{
		Name: "version", Group: frame.GroupMore, Summary: "print the version", MaxOperands: 0, Run: printVersion,
		Description: "Prints the version of this program, and what it was built with.",
		Examples: []frame.Example{
			{Line: "roost version", Description: "the version"},
			{Line: "roost version --json", Description: "the same, for programs"},
		},
		Flags: []ucli.Flag{frame.JSONFlag()},
	}
}

func printVersion(c *frame.Invocation) error {
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"version": roost.Version, "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	fmt.Fprintf(c.Stdout, "roost %s (%s, %s/%s)\n", roost.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
