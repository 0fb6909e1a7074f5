package cli

import (
	"log/slog"
	"os"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

// readNodeFile reads the file of this node: the one that is named, else that of a pool in
// the directory, else that of the host.
func (c *invocation) readNodeFile() (*config.Node, error) {
	if file := c.stringFlag("config"); file != "" {
		return config.Load(file)
	}
	named := c.stringFlag("dir") != "" || c.getenv("ROOST_DIR") != ""
	if dir, err := config.PoolDir(c.stringFlag("dir"), c.getenv); err == nil {
		file := filepath.Join(dir, "etc", "node.hcl")
		if _, err := os.Stat(file); err == nil || named {
			return config.Load(file)
		}
	} else if named {
		return nil, err
	}
	return config.Load("/etc/roost/node.hcl")
}

// loadIdentity loads the key of a node; nil where the pool speaks unix sockets only.
func loadIdentity(n *config.Node) (*rpc.Identity, error) {
	if n.TLS == nil {
		return nil, nil
	}
	return pki.Load(n.TLS)
}

func configFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "config", Usage: "the node's `FILE`, see roost-node(5)", Value: "/etc/roost/node.hcl"}
}

// printWarnings tells people what in a node file they may not have meant.
func printWarnings(n *config.Node) {
	for _, text := range n.Warnings {
		slog.Warn("node file may not mean what it says", "where", text)
	}
}
