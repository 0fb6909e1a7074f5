package idle

import (
	"fmt"
	"os"
	"testing"
)

// TestMain also runs the input agent, for which the source starts this program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "input-agent" {
		if err := RunInputAgent(os.NewFile(3, "guard")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
