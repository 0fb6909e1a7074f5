package condor

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// spokenVersion is the version of HTCondor whose commands these are like.
const spokenVersion = "25.0.0"

func versionCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_version", Group: frame.GroupCondor, Summary: "print whose commands these are", RawArgs: true,
		Run:         func(c *frame.Invocation) error { printVersion(c); return nil },
		Description: "Prints the version of HTCondor whose commands these are like, and that of Roost.",
		Examples: []frame.Example{
			{Line: "condor_version", Description: "two lines"},
			{Line: "condor_q -version", Description: "each of these commands answers the same"},
		},
	}
}

func printVersion(c *frame.Invocation) {
	fmt.Fprintf(c.Stdout, "$CondorVersion: %s BuildID: Roost-%s $\n$CondorPlatform: Roost $\n", spokenVersion,
		roost.Version)
}
