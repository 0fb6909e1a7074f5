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

// replicaConfig says where the replica of a node is, and who the others are.
func replicaConfig(node *config.Node, log *slog.Logger) replica.Config {
	return replica.Config{
		Dir: filepath.Join(node.Dir, "negotiator", "replica"), Name: node.Name, Address: node.OwnNegotiator(),
		Peers:           node.Negotiators,
		ElectionTimeout: node.Negotiator.Election, Log: log,
	}
}

// Recover makes of this node's replica a cell of its own, after the majority of the old
// one is lost for good: [replica.Recover]. The negotiator of the node must not be
// running.
func Recover(node *config.Node, log *slog.Logger) error {
	if node.Negotiator == nil {
		return fmt.Errorf("recover: %w: node %s has no negotiator", roost.NotFound, node.Name)
	}
	return replica.Recover(replicaConfig(node, log), recoveredSnapshot{newLedgerStore(func(uint64) {})})
}

// recoveredSnapshot is the record of a cell that is lost. Its snapshot is what the next
// one begins with.
type recoveredSnapshot struct{ *ledgerStore }

func (r recoveredSnapshot) Snapshot() (write func(io.Writer) error, err error) {
	r.view((*ledger.Ledger).Recover)
	return r.ledgerStore.Snapshot()
}

// Repair takes out of the log of this node's replica what is damaged: [replica.Repair].
func Repair(node *config.Node, log *slog.Logger, now time.Time, dry bool) (*replica.RepairReport, error) {
	return replica.Repair(replicaConfig(node, log), now, dry)
}
