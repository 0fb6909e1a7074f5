package nodeaccess

import (
	"os"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

// ReadNodeFile reads the node file: the one of --config, the one of the pool's directory,
// or the host's.
func ReadNodeFile(c *frame.Invocation) (*config.Node, error) {
	if file := c.StringFlag("config"); file != "" {
		return config.Load(file)
	}
	named := c.StringFlag("dir") != "" || c.Getenv("ROOST_DIR") != ""
	if dir, err := config.PoolDir(c.StringFlag("dir"), c.Getenv); err == nil {
		file := filepath.Join(dir, "etc", "node.hcl")
		if _, err := os.Stat(file); err == nil || named {
			return config.Load(file)
		}
	} else if named {
		return nil, err
	}
	return config.Load(config.DefaultFile)
}

// LoadIdentity loads the key of a node; nil where the pool speaks unix sockets only.
func LoadIdentity(n *config.Node) (*rpc.Identity, error) {
	if n.TLS == nil {
		return nil, nil
	}
	return pki.Load(n.TLS)
}

// ConfigFlag is the flag --config, which names a node file.
func ConfigFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "config", Usage: "the node's `FILE`, see roost-node(5)", Value: config.DefaultFile}
}
