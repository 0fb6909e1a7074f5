package replica

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/checksum"
)

// identityFile is the name of the file with the identity in a replica's directory.
const identityFile = "identity.json"

// memberIdentity is the identity of a replica. Its fields are stored on disk, so their
// names do not change.
type memberIdentity struct {
	ID   string // the node's name, a slash, and 16 random hex digits
	Cell string // 16 random hex digits; "" until it belongs to a cell
}

// identityText is the form of an identity on disk.
type identityText struct {
	ID   string
	Cell string
	Sum  string `json:",omitempty"` // checksum of the other fields; missing: written by an older release
}

func (id memberIdentity) checksum() string {
	return fmt.Sprintf("%08x", checksum.Of([]byte(id.ID), []byte{0}, []byte(id.Cell)))
}

func newIdentity(name string) memberIdentity { return memberIdentity{ID: name + "/" + randomID()} }

// nodeNameOf returns the node name in a replica's id.
func nodeNameOf(id string) string { return id[:max(0, strings.LastIndexByte(id, '/'))] }

func randomID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// readIdentity reads the identity in dir, and makes a missing one.
func readIdentity(dir, name string) (id memberIdentity, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return id, err
	}
	path := filepath.Join(dir, identityFile)
	id, older, err := loadIdentity(path)
	spare, _, spareErr := loadIdentity(path + secondCopySuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(spareErr, fs.ErrNotExist):
		id = newIdentity(name)
		return id, id.writeTo(dir)
	case err == nil && !older && spareErr == nil: // if they differ, a crash came between the two writes
		return id, nil
	case err == nil:
		return id, id.writeTo(dir)
	case spareErr == nil:
		return spare, spare.writeTo(dir)
	}
	return id, fmt.Errorf("%s: %w: it should hold the id of this replica, and so should %s: both are damaged: %w "+
		"(put one of them back from a copy)",
		path, roost.BadConfig, path+secondCopySuffix, err)
}

// secondCopySuffix ends the name of the second copy of an identity. Without an identity
// the log would belong to no known replica.
const secondCopySuffix = ".copy"

// loadIdentity reads one of the two copies. older reports that it has no checksum.
func loadIdentity(path string) (id memberIdentity, older bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return id, false, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var on identityText
	if err := d.Decode(&on); err != nil {
		return id, false, err
	}
	id = memberIdentity{on.ID, on.Cell}
	if on.ID == "" || on.Sum != "" && on.Sum != id.checksum() {
		return id, false, errDamaged
	}
	return id, on.Sum == "", nil
}

// writeTo stores the identity in dir. After a crash at any instant either the old or the
// new one is there.
func (id memberIdentity) writeTo(dir string) error {
	text, err := json.Marshal(identityText{id.ID, id.Cell, id.checksum()})
	if err != nil {
		return err
	}
	path, text := filepath.Join(dir, identityFile), append(text, '\n')
	if err := atomicfile.WriteDurable(path, text, 0o600); err != nil {
		return err
	}
	return atomicfile.WriteDurable(path+secondCopySuffix, text, 0o600)
}

// renewIdentity gives a new identity to a replica that has lost its log. Its votes and
// entries are lost, so its old id must not be used any more.
//
// A replica that was stopped between its admission and its first entry has lost nothing.
// It stays who it is: the others count its vote, and perhaps need it.
func (r *Replica) renewIdentity(store *diskStore) error {
	empty, err := store.isEmpty()
	if err != nil || !empty || store.hadNoEntry || r.identity.Load().Cell == "" {
		return err
	}
	if aside, _ := filepath.Glob(filepath.Join(r.config.Dir, "log"+damagedSuffix+"*")); len(r.config.Peers) == 1 &&
		len(aside) > 0 {
		return fmt.Errorf("%w: its log was damaged, is set aside as %s, and is not replaced: put it back under "+
			"its name and repair it again: roost doctor --repair; or, to begin with nothing, remove %s",
			roost.BadConfig, aside[len(aside)-1], r.config.Dir)
	}
	id := newIdentity(r.config.Name)
	r.log.Warn("the log of this replica is gone: it asks to be admitted again",
		"was", r.identity.Load().ID, "is", id.ID)
	return r.setIdentity(id)
}

// setIdentity changes the identity of this replica, durably.
func (r *Replica) setIdentity(id memberIdentity) error {
	if err := id.writeTo(r.config.Dir); err != nil {
		return err
	}
	r.identity.Store(&id)
	return nil
}
