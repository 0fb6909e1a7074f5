package importlint

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// loadedPackages lists what a program consists of.
func loadedPackages(t *testing.T, program string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "urfave_cli_no_docs,grpcnotrace",
		"github.com/roost-batch/roost/cmd/"+program)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// TestObjectStorePrograms checks that only the program of the checkpoint server has the
// client of an object store.
func TestObjectStorePrograms(t *testing.T) {
	for program, want := range map[string]bool{"roost-daemon": true, "roost": false, "roost-q": false,
		"roost-starter": false, "roost-node": false, "roost-web": false, "roost-negotiator": false,
		"roost-accountant": false, "roost-sim": false} {
		if got := slices.Contains(loadedPackages(t, program), "github.com/minio/minio-go/v7"); got != want {
			t.Errorf("%s has the client of an object store: %v, want %v", program, got, want)
		}
	}
}

// TestFastProgram checks that the program roost-q does not load what would delay the
// start of every qsub. The other commands are in roost.
func TestFastProgram(t *testing.T) {
	loaded := loadedPackages(t, "roost-q")
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
