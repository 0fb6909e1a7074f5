// Package sealing seals the secrets of users, before they come into the replicated log of
// the negotiators. The keys are in a file of each central manager that only its daemons
// can read, and nowhere else: the log, its snapshots and their copies are of no use
// without it.
//
// The cipher is AES-256-GCM with random nonces. What belongs to a value, its owner, name
// and version, is authenticated with it: a sealed value cannot be put in the place of
// another.
package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// Sizes, and the most keys that a file may have.
const (
	keySize = 32 // bytes
	maxKeys = 100
)

// Key is a key of the cell. Its ID is the beginning of a digest of the rest, so that a
// damaged key is not taken for a whole one.
type Key struct {
	ID   string `json:"id"`
	Made int64  `json:"made"` // unix nanoseconds
	Key  []byte `json:"key"`
}

// KeyStore is the file with the keys of the cell, and a copy of them. Several
// goroutines may use it.
type KeyStore struct {
	path string
	mu   sync.Mutex
	keys []Key // oldest first
}

// Open reads a file of keys; there need not be one.
func Open(path string) (*KeyStore, error) {
	s := &KeyStore{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []Key
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, damagedError(path, err)
	}
	for _, k := range keys {
		if err := k.check(); err != nil {
			return nil, damagedError(path, err)
		}
	}
	s.keys = keys
	return s, nil
}

func damagedError(path string, cause error) error {
	return fmt.Errorf("%s: %w: the keys of secrets are damaged: %w; remove the file where another central manager "+
		"has them, and this one fetches them from there; otherwise restore a copy of it", path, roost.NoInput, cause)
}

func (k Key) check() error {
	if len(k.Key) != keySize || k.ID != keyID(k.Key, k.Made) || k.Made <= 0 {
		return fmt.Errorf("key %.20q: its bytes are not those of that key", k.ID)
	}
	return nil
}

func keyID(key []byte, made int64) string {
	sum := sha256.Sum256(fmt.Appendf(slices.Clone(key), " %d", made))
	return hex.EncodeToString(sum[:8])
}

// Keys lists all keys, oldest first.
func (s *KeyStore) Keys() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

// Current returns the id of the key for new values: the youngest. It is empty if there is
// no key yet.
func (s *KeyStore) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) == 0 {
		return ""
	}
	return s.keys[len(s.keys)-1].ID
}

// Has reports whether there is a key of that id.
func (s *KeyStore) Has(id string) bool {
	return slices.ContainsFunc(s.Keys(), func(k Key) bool { return k.ID == id })
}

// NewKey makes a key that is younger than all, and stores it.
func (s *KeyStore) NewKey(now time.Time) error {
	key := make([]byte, keySize)
	rand.Read(key)
	made := now.UnixNano()
	if all := s.Keys(); len(all) > 0 {
		made = max(made, all[len(all)-1].Made+1)
	}
	return s.Add([]Key{{keyID(key, made), made, key}})
}

// Add stores keys that are not there yet. It returns when they are on the disk.
func (s *KeyStore) Add(keys []Key) error {
	return s.change(func(all []Key) []Key {
		for _, k := range keys {
			if k.check() == nil && !slices.ContainsFunc(all, func(o Key) bool { return o.ID == k.ID }) {
				all = append(all, k)
			}
		}
		return all
	})
}

// Retain drops the keys that nothing is sealed with any more. The youngest stays.
func (s *KeyStore) Retain(used func(id string) bool) error {
	return s.change(func(all []Key) []Key {
		last := len(all) - 1
		var rest []Key
		for i, k := range all {
			if i == last || used(k.ID) {
				rest = append(rest, k)
			}
		}
		return rest
	})
}

// change replaces the keys on disk and then in memory, if they differ.
func (s *KeyStore) change(edit func([]Key) []Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := edit(slices.Clone(s.keys))
	if len(keys) == len(s.keys) {
		return nil
	}
	if len(keys) > maxKeys {
		return fmt.Errorf("%s: %w: %d keys, and %d is the most", s.path, roost.Exhausted, len(keys), maxKeys)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		if a.Made != b.Made {
			return int(min(max(a.Made-b.Made, -1), 1))
		}
		return slices.Compare(a.Key, b.Key)
	})
	text, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(s.path, text, 0o600); err != nil {
		return fmt.Errorf("keys of secrets: %w", err)
	}
	s.keys = keys
	return nil
}

// Seal seals a value with the youngest key, and returns the id of that key. What is in
// about must be the same when the value is opened.
func (s *KeyStore) Seal(value []byte, about string) (id string, sealed []byte, err error) {
	id = s.Current()
	aead, err := s.cipher(id)
	if err != nil {
		return "", nil, err
	}
	return id, aead.Seal(nil, nil, value, []byte(about)), nil
}

// Unseal opens a sealed value. A roost.NotFound means that this central manager does not
// have the key.
func (s *KeyStore) Unseal(id string, sealed []byte, about string) ([]byte, error) {
	aead, err := s.cipher(id)
	if err != nil {
		return nil, err
	}
	value, err := aead.Open(nil, nil, sealed, []byte(about))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it is not what was sealed with key %s", about, roost.Internal, id)
	}
	return value, nil
}

func (s *KeyStore) cipher(id string) (cipher.AEAD, error) {
	for _, k := range s.Keys() {
		if k.ID == id {
			block, err := aes.NewCipher(k.Key)
			if err != nil {
				return nil, err
			}
			return cipher.NewGCMWithRandomNonce(block)
		}
	}
	return nil, fmt.Errorf("key %s of secrets: %w: it is not in %s", id, roost.NotFound, s.path)
}
