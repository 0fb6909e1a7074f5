package importlint

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestFastProgram checks that the program roost-q does not load what would delay the
// start of every qsub. The other commands are in roost.
func TestFastProgram(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "urfave_cli_no_docs,grpcnotrace",
		"github.com/roost-batch/roost/cmd/roost-q")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	loaded := strings.Fields(string(out))
	if !slices.Contains(loaded, "github.com/urfave/cli/v2") {
		t.Errorf("go list names %d packages, and not that of the flags", len(loaded))
	}
	for _, heavy := range []string{"google.golang.org/grpc", "github.com/hashicorp/hcl/v2", "net", "net/http",
		"crypto/tls", "github.com/vbauerster/mpb/v8", "github.com/roost-batch/roost/internal/wire"} {
		if slices.Contains(loaded, heavy) {
			t.Errorf("cmd/roost-q loads %s: go mod why -m and go list -deps tell through which package", heavy)
		}
	}
}
