package jobnodes

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestHostAddresses holds that pbs_hostn -v prints addresses.
func TestHostAddresses(t *testing.T) {
	a, stdout, stderr := clitest.NewApp(t, t.TempDir(),
		[]*frame.Command{HostNameCommand()})
	if code := a.Run(t.Context(), []string{"pbs_hostn", "-v", "127.0.0.1"}); code != 0 ||
		!strings.Contains(stdout.String(), "address: 127.0.0.1  name: ") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
}
