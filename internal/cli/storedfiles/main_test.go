package storedfiles

import (
	"net"
	"os"
	"testing"

	"github.com/roost-batch/roost/internal/userfiles"
)

// TestMain is the agent that writes a user's files, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == userfiles.AgentCommand {
		conn, err := net.FileConn(os.NewFile(3, "agent"))
		if err != nil || userfiles.ServeAgent(conn) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
