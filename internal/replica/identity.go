package replica

import (
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
)

// identityFile is where an identity lies in a replica's directory.
const identityFile = "identity.json"

// identity is who a replica is. Its fields are written out, so they do not change.
type identity struct {
	ID   string // the node's name, a slash, and 16 random hex digits
	Cell string // 16 random hex digits; "" until it belongs to one
}

func newIdentity(name string) identity { return identity{ID: name + "/" + random()} }

// nameOf is the name of the node whose replica has that id.
func nameOf(id string) string { return id[:max(0, strings.LastIndexByte(id, '/'))] }

func random() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// readIdentity reads the identity that is kept in dir. Where there is none it makes one.
func readIdentity(dir, name string) (id identity, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return id, err
	}
	path := filepath.Join(dir, identityFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		id = newIdentity(name)
		return id, id.write(dir)
	}
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(text, &id); err != nil || id.ID == "" {
		return id, fmt.Errorf("%s: %w: it should hold the id of this replica (remove the directory %s to let it join anew, with nothing)", path, roost.BadConfig, dir)
	}
	return id, nil
}

// write keeps the identity in dir, so that after a crash at any moment either the old or the new one is there.
func (id identity) write(dir string) error {
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, identityFile)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// fresh gives a replica that has been somebody, and has lost its log, a new identity: what it has voted for and stored is forgotten, and
// so must be the name under which it did.
func (r *Replica) fresh(store *store) error {
	empty, err := store.empty()
	if err != nil || !empty || r.identity.Load().Cell == "" {
		return err
	}
	id := newIdentity(r.cfg.Name)
	r.log.Warn("the log of this replica is gone: it asks to be taken in anew", "was", r.identity.Load().ID, "is", id.ID)
	return r.become(id)
}

// become changes who this replica is, durably.
func (r *Replica) become(id identity) error {
	if err := id.write(r.cfg.Dir); err != nil {
		return err
	}
	r.identity.Store(&id)
	return nil
}
