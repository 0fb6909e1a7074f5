package replica

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
)

// Recover makes a cell of its own from the replica in cfg.Dir, which must not be running.
// The cell has everything in the replica's log, even entries that a majority may never
// have had. It is for the permanent loss of a majority. The other replicas must not be
// started with their data, because they would be a second cell. The new cell does not
// know them, since both the cell and this replica get new ids; with their directories
// removed they can be added. The cell begins with state's Snapshot after the last entry.
func Recover(cfg Config, state StateMachine) error {
	if err := recoverIn(cfg, state); err != nil {
		return fmt.Errorf("recover %s: %w", cfg.Dir, diskFullHint(cfg.Dir, err))
	}
	return nil
}

func recoverIn(cfg Config, state StateMachine) error {
	if _, err := readIdentity(cfg.Dir, cfg.Name); err != nil {
		return err
	}
	var failed error
	fails := func(err error) { failed = errors.Join(failed, err) }
	store, err := openStore(cfg.Dir, cfg.Log, fails)
	if err != nil {
		return err
	}
	defer store.close()
	if empty, err := store.isEmpty(); err != nil || empty {
		return errors.Join(err, fmt.Errorf("%w: there is nothing in it", roost.NotFound))
	}
	// The id first: if the command is interrupted the replica is out of the old cell, and
	// the command can be repeated.
	id := memberIdentity{ID: newIdentity(cfg.Name).ID, Cell: randomID()}
	if err := id.writeTo(cfg.Dir); err != nil {
		return err
	}
	settings := raft.DefaultConfig()
	settings.LocalID, settings.Logger = raft.ServerID(id.ID), newLogger(cfg.Log)
	addr, transport := raft.NewInmemTransport(raft.ServerAddress(cfg.Address))
	defer transport.Close()
	only := raft.Configuration{Servers: []raft.Server{{ID: settings.LocalID, Address: addr}}}
	if err := raft.RecoverCluster(settings, raftFSM{state, fails}, store, store, store.snapshots, transport,
		only); err != nil {
		return errors.Join(err, failed)
	}
	return failed
}
