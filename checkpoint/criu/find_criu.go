package criu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/roost-batch/roost"
)

// PrivateProgram is where scripts/criu.sh installs a CRIU for Roost.
const PrivateProgram = "/usr/local/lib/roost/criu/bin/criu"

// Find returns the path of the CRIU to use. It is the configured one if there is a
// setting, else PrivateProgram, else the one in PATH. If there is none the error is
// roost.NotFound. The program is not tested; see Check.
func Find(configured string) (string, error) {
	candidates := []string{PrivateProgram, "criu", "/usr/sbin/criu"}
	if configured != "" {
		candidates = []string{configured}
	}
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err == nil {
			return path, nil
		}
	}
	if configured != "" {
		return "", fmt.Errorf("criu: %w: %s is no program", roost.NotFound, configured)
	}
	return "", fmt.Errorf("criu: %w: it is neither at %s nor in PATH (scripts/criu.sh installs it)", roost.NotFound,
		PrivateProgram)
}

// checkRootOwned refuses a program that users other than root could change, because root
// runs it.
func checkRootOwned(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("criu: %w: %w", roost.NotFound, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("criu: %w: others may write %s", roost.PermissionDenied, path)
	}
	return nil
}
