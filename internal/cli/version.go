package cli

import (
	"fmt"
	"runtime"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pool"
	"github.com/roost-batch/roost/internal/release"
)

func versionCommand() *frame.Command {
	return &frame.Command{
		Name: "version", Group: frame.GroupMore, Summary: "print the version", MaxOperands: 0, Run: printVersion,
		Description: "Prints the version of this program, and what it was built with; with --pool those of the " +
			"daemons of the pool, and what does not work together.",
		Examples: []frame.Example{
			{Line: "roost version", Description: "the version"},
			{Line: "roost version --json", Description: "the same, for programs"},
			{Line: "roost version --pool", Description: "the versions of the daemons of the pool"},
		},
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "pool", Usage: "print the versions of the daemons of the pool, too"},
			frame.JSONFlag()},
	}
}

func printVersion(c *frame.Invocation) error {
	if c.Flag("pool") {
		return pool.PrintVersions(c)
	}
	own := release.Own()
	if c.WantsJSON() {
		doc := frame.JSONDocument{"version": own.Version, "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH, "protocol": own.Protocol}
		if own.Commit != "" {
			doc["commit"] = own.Commit
		}
		return frame.PrintJSON(c.Stdout, doc)
	}
	fmt.Fprintf(c.Stdout, "roost %s (%s, %s/%s)\n", own.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
