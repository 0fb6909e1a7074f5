package accountant

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/confine"
)

// confineFiles gives up what the accountant does not need, when all is open.
func confineFiles(node *config.Node, log *slog.Logger) error {
	missing, err := confine.Apply(fileRights(node))
	for _, what := range missing {
		log.Warn("the kernel lacks " + what)
	}
	return err
}

// fileRights returns the files of the accountant. They are its store, temporary files of
// its database, the certificates of the node, which are read again when they change, and
// the tokens of readers of metrics.
func fileRights(node *config.Node) confine.Rights {
	r := confine.Rights{Write: []string{node.Accountant.Dir, os.TempDir(), "/var/tmp"}}
	if t := node.TLS; t != nil {
		for _, file := range []string{t.CA, t.Certificate, t.Key} {
			r.Read = append(r.Read, filepath.Dir(file))
		}
	}
	if node.Metrics != nil && node.Metrics.TokenFile != "" {
		r.Read = append(r.Read, node.Metrics.TokenFile)
	}
	return r
}
