package cellqueue

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/replica"
)

// Recover makes the queue of this node's member alone, after the majority of the members
// is lost for good. It uses [replica.Recover]. The member must not be running.
func Recover(node *config.Node, log *slog.Logger) error {
	if node.CellQueue == nil {
		return fmt.Errorf("recover: %w: node %s has no member of the cell's queue", roost.NotFound, node.Name)
	}
	return recoverMember(memberConfig(node, nil, log))
}

func recoverMember(c Config) error {
	m, _, err := openFiles(c)
	if err != nil {
		return err
	}
	if _, found := m.gap(); found {
		c.Log.Warn("the history lacks jobs that have ended, and nobody is left who could have them")
	}
	var failure error
	m.onError = func(err error) { failure = errors.Join(failure, err) }
	err = errors.Join(replica.Recover(c.Replica, m), failure, m.close(), m.history.Close())
	if err != nil {
		return err
	}
	// The snapshot and the log that were read again begin before the newest ended job.
	if err = os.Remove(m.gapPath()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
