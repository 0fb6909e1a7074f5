// Package loginfile knows where the files of a user's logins are. Package login reads
// them.
package loginfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config/pooldir"
)

// Dir returns the directory of a user's logins. It is below $XDG_CONFIG_HOME, or
// ~/.config (XDG Base Directory Specification).
func Dir(getenv func(string) string) (string, error) {
	base := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		if base = getenv("HOME"); base == "" {
			return "", fmt.Errorf("logins: %w: $HOME is not set", roost.NoInput)
		}
		base = filepath.Join(base, ".config")
	}
	return filepath.Join(base, "roost", "logins"), nil
}

const entrySuffix = ".json"

// Path returns the file of the login at a node.
func Path(dir, node string) string { return filepath.Join(dir, node+entrySuffix) }

// Nodes lists the nodes at which a user is logged in.
func Nodes(dir string) (nodes []string) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, f := range files {
		if node, ok := strings.CutSuffix(f.Name(), entrySuffix); ok && pooldir.IsValidName(node) {
			nodes = append(nodes, node)
		}
	}
	return slices.Sorted(slices.Values(nodes))
}
