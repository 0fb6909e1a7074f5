package pooldir

import (
	"path/filepath"
	"strings"
)

// PilotsSocket is the name of the socket of a provisioner in its directory.
const PilotsSocket = "control"

// PilotsDir returns the directory of a user's provisioner of pilots for the pool that
// PoolDir returns. It is in the user's state directory, because the pool's own may be of
// somebody else.
func PilotsDir(dir string, getenv func(string) string) (string, error) {
	own, err := PoolDir("", func(name string) string {
		if name == "ROOST_DIR" {
			return ""
		}
		return getenv(name)
	})
	if err != nil {
		return "", err
	}
	pool, err := PoolDir(dir, getenv)
	if err != nil {
		return "", err
	}
	if pool == own {
		return own + "-pilots", nil
	}
	return filepath.Join(own+"-pilots", "pools", strings.ReplaceAll(strings.Trim(pool, "/"), "/", "-")), nil
}
