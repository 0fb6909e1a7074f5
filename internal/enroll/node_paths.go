package enroll

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// NodePaths has the paths of a node's files on a machine, below Root. Root is "/" except
// in trials and tests.
type NodePaths struct{ Root string }

// IsSystem reports whether the node is the machine's own, and not one below another
// directory.
func (p NodePaths) IsSystem() bool { return p.Root == "" || filepath.Clean(p.Root) == "/" }

func (p NodePaths) resolve(path string) string { return filepath.Join("/", p.Root, path) }

// NodeFile returns the path of the node file.
func (p NodePaths) NodeFile() string { return p.resolve("etc/roost/node.hcl") }

// Dir returns the directory of the node's persistent state.
func (p NodePaths) Dir() string { return p.resolve("var/lib/roost") }

// TLS returns the paths of the node's key and certificates.
func (p NodePaths) TLS() *config.TLSFiles {
	return &config.TLSFiles{CA: p.resolve("etc/roost/ca.pem"), Certificate: p.resolve("etc/roost/node.pem"),
		Key: p.resolve("etc/roost/node.key")}
}

// newNode returns a new configuration. It has paths only where they differ from the
// defaults.
func (p NodePaths) newNode(name, pool string) *config.Node {
	n := &config.Node{Name: name, Pool: pool, TLS: p.TLS(), Schedd: &config.ScheddSettings{}}
	if !p.IsSystem() {
		n.Dir = p.Dir()
		n.Schedd.SocketMode = 0o666
		// the owner of this machine is not the owner of a trial node
		n.Owner.File = p.resolve("etc/roost/owner.hcl")
	}
	return n
}

// checkUnused checks that the machine is no node yet.
func (p NodePaths) checkUnused() error {
	if _, err := os.Lstat(p.NodeFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	pool, cure := "a pool", "roost leave takes it out"
	if n, err := config.Load(p.NodeFile()); err == nil {
		pool = "the pool " + n.Pool + ", as " + n.Name
		if n.Authority != nil { // it cannot leave
			cure = "that pool began here, and roost token lets other machines in"
		}
	}
	return fmt.Errorf("%s: %w: this machine belongs to %s already: %s", p.NodeFile(), roost.Conflict, pool, cure)
}

// makeDirs creates the directories.
func (p NodePaths) makeDirs() error {
	for dir, mode := range map[string]os.FileMode{filepath.Dir(p.NodeFile()): 0o755, p.Dir(): 0o711} {
		err := os.MkdirAll(dir, mode)
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("directory %s: %w: become root for this (sudo), or try it out below another directory "+
				"with --root", dir, roost.PermissionDenied)
		}
		if err != nil {
			return fmt.Errorf("directory %s: %w: %w", dir, roost.NoOutput, err)
		}
	}
	return nil
}

// writeNodeFile writes the node file, after reading it back as the daemons will.
func (p NodePaths) writeNodeFile(n *config.Node, remark string) (*config.Node, error) {
	next := p.NodeFile() + ".new"
	text := append([]byte("# "+remark+" You may change it; roost-node(5) describes what it can contain.\n\n"),
		config.Write(n)...)
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return nil, fmt.Errorf("node file: %w: %w", roost.NoOutput, err)
	}
	defer os.Remove(next)
	if _, err := config.Load(next); err != nil {
		return nil, err
	}
	if err := os.Rename(next, p.NodeFile()); err != nil {
		return nil, fmt.Errorf("node file: %w: %w", roost.NoOutput, err)
	}
	return config.Load(p.NodeFile())
}
