package doctor

import (
	"os"
	"testing"

	"github.com/roost-batch/roost/checkpoint/criu"
)

// TestMain makes the test binary an agent where it is started as one, because doctor
// tries checkpoints with it. Otherwise each of those would run all tests, and with them
// roost doctor, for ever.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == criu.AgentName {
		if criu.ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe") != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
