package enroll

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/caclient"
)

// Leave revokes the machine's certificate and removes its keys and its node file. The
// node file is renamed to node.hcl.left. The node's directory is left alone. authorityErr
// is nil if the authority has revoked the certificate.
func (p NodePaths) Leave(ctx context.Context) (node *config.Node, authorityErr, err error) {
	n, err := config.Load(p.NodeFile())
	if err != nil {
		return nil, nil, fmt.Errorf("leave: %w", err)
	}
	if n.Authority != nil {
		return nil, nil, fmt.Errorf("leave: %w: this machine has the pool's authority: the pool ends with it. Remove "+
			"%s by hand if that is what you want", roost.Conflict, p.NodeFile())
	}
	if n.AuthorityAt == "" || n.TLS == nil {
		authorityErr = errors.New("no authority is named in the node file")
	} else {
		authorityErr = (&caclient.RemoteAuthority{Addr: n.AuthorityAt, Files: n.TLS}).Leave(ctx)
	}
	if err := os.Rename(p.NodeFile(), p.NodeFile()+".left"); err != nil {
		return n, authorityErr, fmt.Errorf("node file: %w: %w", roost.NoOutput, err)
	}
	files := p.TLS()
	for _, file := range []string{files.Key, files.Certificate} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, authorityErr, fmt.Errorf("%s: %w: %w", file, roost.NoOutput, err)
		}
	}
	return n, authorityErr, nil
}
