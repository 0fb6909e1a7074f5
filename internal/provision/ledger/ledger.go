// Package ledger is the journal of a provisioner: what it has asked of other batch
// systems, and what it knows of them. A submit is in it, on disk, before it is run. So
// after a crash at any point no allocation is forgotten, none is asked for twice, and
// what allocations may cost is counted.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// FileName is the name of the journal in the directory of a provisioner.
const FileName = "pilots.db"

// recordVersion is the version of records. Later versions only add fields.
const recordVersion = 1

var (
	bucketProviders   = []byte("providers")
	bucketAllocations = []byte("allocations")
)

// Ledger is an open journal. One process at a time has it open.
type Ledger struct{ db *boltfile.DB }

// providerRecord is a record of bucketProviders.
type providerRecord struct {
	Version  int
	Settings provider.Settings // those of a provider that was removed are needed to cancel what it has
	History  plan.ProviderHistory
}

// allocationRecord is a record of bucketAllocations.
type allocationRecord struct {
	Version    int
	Allocation plan.Allocation
}

// Open opens the journal of a directory, which is created if there is none, and returns
// what is in it. The providers have no settings yet. If another process has it open, the
// error is of kind roost.Conflict.
func Open(dir string) (*Ledger, *plan.Provisioning, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("directory of the provisioner: %w: %w", roost.NoOutput, err)
	}
	path := filepath.Join(dir, FileName)
	db, err := boltfile.Open(path, boltfile.ContentKind{Description: "journal of pilots",
		Buckets: []string{string(bucketProviders), string(bucketAllocations)}}, nil)
	if errors.Is(err, roost.Conflict) {
		return nil, nil, fmt.Errorf("%s: %w: another provisioner of yours runs", path, roost.Conflict)
	}
	if err != nil {
		return nil, nil, err
	}
	v := plan.NewProvisioning()
	if err := db.View(func(tx *boltfile.Tx) error { return read(tx, v) }); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	if err := v.Check(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w: %w", path, roost.BadConfig, err), db.Close())
	}
	return &Ledger{db}, v, nil
}

// decode reads a record, and refuses those of later versions.
func decode(what string, key, value []byte, record any, version *int) error {
	if err := json.Unmarshal(value, record); err != nil {
		return fmt.Errorf("%s %s: %w: %w", what, key, roost.BadConfig, err)
	}
	if *version < 1 || *version > recordVersion {
		return fmt.Errorf("%s %s: %w: its record has version %d, and this program reads up to %d: install the newer "+
			"one", what, key, roost.BadConfig, *version, recordVersion)
	}
	return nil
}

func read(tx *boltfile.Tx, v *plan.Provisioning) error {
	err := tx.Bucket(bucketProviders).ForEach(func(key, value []byte) error {
		r := providerRecord{}
		if err := decode("provider", key, value, &r, &r.Version); err != nil {
			return err
		}
		v.Providers = append(v.Providers, &plan.Provider{Settings: r.Settings, History: r.History})
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(bucketAllocations).ForEach(func(key, value []byte) error {
		r := allocationRecord{}
		if err := decode("allocation", key, value, &r, &r.Version); err != nil {
			return err
		}
		v.Allocations[string(key)] = &r.Allocation
		return nil
	})
}

// Write writes what has changed. When it returns nil, that is on disk.
func (l *Ledger) Write(v *plan.Provisioning) error {
	changed := v.TakeChanged()
	if changed.IsEmpty() {
		return nil
	}
	return l.db.Update(func(tx *boltfile.Tx) error {
		for name := range changed.Providers {
			var record any
			if p := v.Provider(name); p != nil {
				record = providerRecord{recordVersion, p.Settings, p.History}
			}
			if err := put(tx.Bucket(bucketProviders), name, record); err != nil {
				return err
			}
		}
		for key := range changed.Allocations {
			var record any
			if a := v.Allocations[key]; a != nil {
				record = allocationRecord{recordVersion, *a}
			}
			if err := put(tx.Bucket(bucketAllocations), key, record); err != nil {
				return err
			}
		}
		return nil
	})
}

// put writes a record, or deletes it if it is nil.
func put(b *boltfile.Bucket, key string, record any) error {
	if record == nil {
		return b.Delete([]byte(key))
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), text)
}

// Close closes the journal.
func (l *Ledger) Close() error { return l.db.Close() }
