package pooldir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
)

// SocketName is the name of the schedd's socket for users' commands, in the run directory
// of a pool.
const SocketName = "schedd.sock"

// GuardSocket is the name of the guard's socket for the machine owner and the startds, in
// the same directory.
const GuardSocket = "guard.sock"

// SystemRunDir is the run directory of a host's own pool.
const SystemRunDir = "/run/roost"

// PoolDir returns the directory of a personal pool as an absolute path. It is dir if that
// is not empty, else $ROOST_DIR, else ${XDG_STATE_HOME:-$HOME/.local/state}/roost, as in
// the XDG base directory specification.
func PoolDir(dir string, getenv func(string) string) (string, error) {
	if dir == "" {
		dir = getenv("ROOST_DIR")
	}
	if dir != "" {
		return filepath.Abs(dir)
	}
	// By the specification relative values are ignored.
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "roost"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "roost"), nil
	}
	return "", fmt.Errorf("pool directory: %w: HOME is not set; name a directory with --dir or ROOST_DIR", roost.Usage)
}

// FindPool finds the schedd for a command and returns its address for rpc.Dial
// ("unix:/path"). With dir or $ROOST_DIR it looks only there; otherwise in the user's
// state directory of PoolDir, then in /run/roost. An error, of kind roost.Unavailable,
// names the places and explains how to start a pool.
//
// It returns even a socket on which no process listens: otherwise a command would go to
// another pool while the schedd of the first restarts.
func FindPool(dir string, getenv func(string) string) (socket string, err error) {
	return searchPool(dir, getenv, hostPaths{SystemRunDir, SystemNodeFile})
}

func searchPool(dir string, getenv func(string) string, host hostPaths) (socket string, err error) {
	named := dir != "" || getenv("ROOST_DIR") != ""
	var looked []string
	if home, err := PoolDir(dir, getenv); err == nil {
		looked = append(looked, filepath.Join(home, "run", SocketName))
	} else if named {
		return "", err
	}
	if !named {
		looked = append(looked, filepath.Join(host.runDir, SocketName))
	}
	for _, path := range looked {
		_, err := os.Stat(path)
		if err == nil {
			return "unix:" + path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return "", fmt.Errorf("pool at %s: %w: it belongs to another user", filepath.Dir(filepath.Dir(path)),
				roost.PermissionDenied)
		}
	}
	return "", &noPoolError{searchedDirs: looked, cure: startAdvice(dir, getenv, host)}
}

// noPoolError is the error of a search without a result.
type noPoolError struct {
	searchedDirs []string
	cure         string
}

func (e *noPoolError) Unwrap() error { return roost.Unavailable }

func (e *noPoolError) Error() string {
	var b strings.Builder
	b.WriteString("no pool is running here: there is no schedd at\n")
	for _, path := range e.searchedDirs {
		fmt.Fprintf(&b, "    %s\n", path)
	}
	return b.String() + e.cure
}
