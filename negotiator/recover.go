package negotiator

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// replicaConfig returns the configuration of a node's replica.
func replicaConfig(node *config.Node, log *slog.Logger) replica.Config {
	return replica.Config{
		Dir: filepath.Join(node.Dir, "negotiator", "replica"), Name: node.Name, Address: node.OwnNegotiator(),
		Peers:           node.Negotiators,
		ElectionTimeout: node.Negotiator.Election, Log: log,
	}
}

// Recover makes a new cell of this node's replica, after the majority of the old one is
// lost for good. It uses [replica.Recover]. The negotiator of the node must not be
// running.
func Recover(node *config.Node, log *slog.Logger) error {
	if node.Negotiator == nil {
		return fmt.Errorf("recover: %w: node %s has no negotiator", roost.NotFound, node.Name)
	}
	return replica.Recover(replicaConfig(node, log), recoveredSnapshot{newLedgerStore(func(uint64) {})})
}

// recoveredSnapshot is the ledger of a lost cell. Its snapshot is the start of the new
// one.
type recoveredSnapshot struct{ *ledgerStore }

func (r recoveredSnapshot) Snapshot() (write func(io.Writer) error, err error) {
	r.view((*ledger.Ledger).Recover)
	return r.ledgerStore.Snapshot()
}

// Repair removes what is damaged from the log of this node's replica: [replica.Repair].
func Repair(node *config.Node, log *slog.Logger, now time.Time, dry bool) (*replica.RepairReport, error) {
	return replica.Repair(replicaConfig(node, log), now, dry)
}
