package pooldir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SystemNodeFile is the node file of a host that belongs to a pool.
const SystemNodeFile = "/etc/roost/node.hcl"

// UpNodeFileHeader begins a node file that roost up has written.
const UpNodeFileHeader = "# Written by roost up at each start: changes made here are lost.\n"

// otherScheddAdvice is for a node of a pool that has no schedd.
const otherScheddAdvice = "use a submit node of the pool; or log in at one: run roost token --user there, " +
	"then here the line that it prints"

// hostPaths are the files of the host's own pool.
type hostPaths struct{ runDir, nodeFile string }

// StartAdvice returns what helps a user whose command reaches no schedd on this machine.
// A machine of no pool can have a pool of its own with roost up. On a node of a pool that
// would start another pool, whose jobs none of the nodes runs.
func StartAdvice(dir string, getenv func(string) string) string {
	return startAdvice(dir, getenv, hostPaths{SystemRunDir, SystemNodeFile})
}

func startAdvice(dir string, getenv func(string) string, host hostPaths) string {
	up := "start one with: roost up"
	if dir != "" {
		up += " --dir " + dir
	}
	named := dir != "" || getenv("ROOST_DIR") != ""
	var files []string
	if home, err := PoolDir(dir, getenv); err == nil {
		files = append(files, filepath.Join(home, "etc", "node.hcl"))
	}
	if !named {
		files = append(files, host.nodeFile)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return "this machine belongs to a pool (" + file + "), and no schedd answers on it: " + otherScheddAdvice
		case err != nil:
		case bytes.HasPrefix(text, []byte(UpNodeFileHeader)):
			return up
		case !hasScheddBlock(string(text)):
			return "this node has no schedd (" + file + "): " + otherScheddAdvice
		case file == host.nodeFile:
			return "this node has a schedd, which does not run: have root start it with: systemctl start roost"
		default:
			return "this node has a schedd, which does not run: start it with: roost master --config " + file
		}
	}
	return up
}

// hasScheddBlock reports whether a node file has a schedd block. Reading the file as a
// whole is left to the daemons: small programs need only this.
func hasScheddBlock(text string) bool {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "schedd")
		if ok && strings.HasPrefix(strings.TrimSpace(rest), "{") {
			return true
		}
	}
	return false
}
