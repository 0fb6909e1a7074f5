package cli

import (
	"fmt"
	"runtime"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
)

func versionCommand() *command {
	return &command{
		name: "version", group: groupMore, summary: "print the version", maxOperands: 0, run: printVersion,
		description: "Prints the version of this program, and what it was built with.",
		examples: []commandExample{
			{"roost version", "the version"},
			{"roost version --json", "the same, for programs"},
		},
		flags: []ucli.Flag{jsonFlag()},
	}
}

func printVersion(c *invocation) error {
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{"version": roost.Version, "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	fmt.Fprintf(c.stdout, "roost %s (%s, %s/%s)\n", roost.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
