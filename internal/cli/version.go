package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	ucli "github.com/urfave/cli/v2"
)

func versionCommand() *command {
	return &command{
		name: "version", group: groupMore, brief: "print the version", most: 0, do: printVersion,
		about: "Prints the version of this program, and what it was built with.",
		examples: []example{
			{"roost version", "the version"},
			{"roost version --json", "the same, for programs"},
		},
		flags: []ucli.Flag{jsonFlag()},
	}
}

// Version is the version of this program: the module's, with the revision that it was built from where the build knows it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

func printVersion(c *call) error {
	if c.json() {
		return printJSON(c.stdout, document{"version": Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	fmt.Fprintf(c.stdout, "roost %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
