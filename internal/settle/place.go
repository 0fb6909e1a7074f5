package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// Place is where a node's files are on a machine: below Root, which is "/" unless somebody tries things out.
type Place struct{ Root string }

// Usual reports whether the node is the machine's own, and not one that is tried out below some directory.
func (p Place) Usual() bool { return p.Root == "" || filepath.Clean(p.Root) == "/" }

func (p Place) at(path string) string { return filepath.Join("/", p.Root, path) }

// NodeFile is the node's file.
func (p Place) NodeFile() string { return p.at("etc/roost/node.hcl") }

// Dir is where the node keeps what it must not forget.
func (p Place) Dir() string { return p.at("var/lib/roost") }

// TLS are the files of the node's identity.
func (p Place) TLS() *config.TLS {
	return &config.TLS{CA: p.at("etc/roost/ca.pem"), Certificate: p.at("etc/roost/node.pem"), Key: p.at("etc/roost/node.key")}
}

// blank is the beginning of a node file. It says where things are only where they are not in the usual places.
func (p Place) blank(name, pool string) *config.Node {
	n := &config.Node{Name: name, Pool: pool, TLS: p.TLS(), Schedd: &config.Schedd{}}
	if !p.Usual() {
		n.Dir = p.Dir()
		n.Schedd.SocketMode = 0o666
		n.Owner.File = p.at("etc/roost/owner.hcl") // whose machine this is says nothing of a node that is tried out
	}
	return n
}

// free makes sure that the machine is no node yet.
func (p Place) free() error {
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

// prepare makes the directories.
func (p Place) prepare() error {
	for dir, mode := range map[string]os.FileMode{filepath.Dir(p.NodeFile()): 0o755, p.Dir(): 0o711} {
		err := os.MkdirAll(dir, mode)
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("directory %s: %w: become root for this (sudo), or try it out below another directory with --root", dir, roost.PermissionDenied)
		}
		if err != nil {
			return fmt.Errorf("directory %s: %w: %w", dir, roost.NoOutput, err)
		}
	}
	return nil
}

// write puts the node file in its place, once it has been read as the daemons will.
func (p Place) write(n *config.Node, remark string) (*config.Node, error) {
	next := p.NodeFile() + ".new"
	text := append([]byte("# "+remark+" It is yours to change; roost-node(5) tells what can stand here.\n\n"), config.Write(n)...)
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
