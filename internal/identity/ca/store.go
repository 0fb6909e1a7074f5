package ca

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// The buckets of the store.
var (
	tokensBucket = []byte("tokens")       // by digest of the secret: tokenRecord
	issuedBucket = []byte("certificates") // by serial number: certRecord
	// by name, a zero byte and serial number: empty; an index of certificates by name
	namesBucket   = []byte("names")
	peersBucket   = []byte("peers")   // by peerKey: peerRecord
	numbersBucket = []byte("numbers") // "revocations": the number of the newest list
)

const storeFile = "authority.db"

// tokenRecord is the stored record of a token. Instants are in unix nanoseconds: they
// must be valid over a restart of the host, and only this host compares them.
type tokenRecord struct {
	Part    NodePart  `json:"part"`
	Name    string    `json:"name,omitempty"` // of the only node that may use it
	Made    int64     `json:"made"`
	Expires int64     `json:"expires"`
	Used    *tokenUse `json:"used,omitempty"`

	// of a token for pilots, which has no Used: how many may join, how many have, and
	// whose they are
	Uses   uint32 `json:"uses,omitempty"`
	Joined uint32 `json:"joined,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

// tokenUse records the use of a token. With Key and Serial a lost answer can be repeated.
type tokenUse struct {
	At       int64  `json:"at"`
	Node     string `json:"node"`
	FromHost string `json:"from"`
	Key      []byte `json:"key"`
	Serial   []byte `json:"serial"`
}

// certRecord is the record of an issued certificate.
type certRecord struct {
	Name     string   `json:"name"`
	Part     NodePart `json:"part,omitempty"`
	Roles    []string `json:"roles"`
	FromHost string   `json:"from,omitempty"` // the host that requested it
	Joined   int64    `json:"joined"`         // when the node joined
	Made     int64    `json:"made"`
	Expires  int64    `json:"expires"`
	Key      []byte   `json:"key"` // digest of the public key
	DER      []byte   `json:"der"`
	Revoked  int64    `json:"revoked,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Owner    string   `json:"owner,omitempty"` // of a pilot
	Guest    string   `json:"guest,omitempty"` // of a guest: the name of its pool

	validity time.Duration // of the certificate of a pilot or a guest
}

// isValid reports whether the certificate is neither revoked nor expired.
func (i *certRecord) isValid(now time.Time) bool { return i.Revoked == 0 && now.UnixNano() < i.Expires }

// certStore is the durable state of an authority, in a file that is synced before any
// answer.
type certStore struct {
	db      *boltfile.DB
	ca      *pki.Authority
	dir     string
	ownName string // name of the authority's own node, which no other node gets
}

// openStore opens the store and the keys of the authority in dir.
func openStore(dir, self string) (*certStore, error) {
	ca, err := pki.LoadAuthority(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("authority in %s: %w: %w", dir, roost.NoOutput, err)
	}
	db, err := boltfile.Open(filepath.Join(dir, storeFile), fileKind(), nil)
	if err != nil {
		return nil, err
	}
	return &certStore{db: db, ca: ca, dir: dir, ownName: self}, nil
}

func (s *certStore) close() error { return s.db.Close() }

// loadRecord reads a record, and reports whether it exists. An unreadable record is an
// error: treating it as missing would let a used token be used again.
func loadRecord[T any](tx *boltfile.Tx, bucket, key []byte) (*T, bool, error) {
	text := tx.Bucket(bucket).Get(key)
	if text == nil {
		return nil, false, nil
	}
	record := new(T)
	if err := json.Unmarshal(text, record); err != nil {
		return nil, false, fmt.Errorf("%s %x: %w: %w", bucket, key, roost.BadConfig, err)
	}
	return record, true, nil
}

func saveRecord(tx *boltfile.Tx, bucket, key []byte, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put(key, text)
}

// eachRecord calls f for every record of a bucket, in the order of keys.
func eachRecord[T any](tx *boltfile.Tx, bucket []byte, f func(key []byte, record *T) error) error {
	return tx.Bucket(bucket).ForEach(func(key, _ []byte) error {
		record, _, err := loadRecord[T](tx, bucket, key)
		if err != nil {
			return err
		}
		return f(key, record)
	})
}

// eachCert calls f for every stored certificate of a name.
func eachCert(tx *boltfile.Tx, name string, f func(serial []byte, record *certRecord) error) error {
	first := append([]byte(name), 0)
	var serials [][]byte // collected before f is called, which may change the bucket
	for c, key := tx.Bucket(namesBucket).Cursor(), []byte(nil); ; {
		if key == nil {
			key, _ = c.Seek(first)
		} else {
			key, _ = c.Next()
		}
		if !bytes.HasPrefix(key, first) {
			break
		}
		serials = append(serials, bytes.Clone(key[len(first):]))
	}
	for _, serial := range serials {
		record, ok, err := loadRecord[certRecord](tx, issuedBucket, serial)
		if err == nil && !ok {
			err = fmt.Errorf("certificate %x: %w: the names have it and the certificates do not", serial,
				roost.BadConfig)
		}
		if err == nil {
			err = f(serial, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// issueCert signs a certificate and records it. The caller sets the subject in record;
// issueCert sets the rest.
func (s *certStore) issueCert(tx *boltfile.Tx, record certRecord, public ed25519.PublicKey,
	now time.Time) (*certRecord, []byte, error) {
	var leaf *x509.Certificate
	var err error
	switch record.Part {
	case Pilot:
		leaf, err = s.ca.CertifyPilot(public, record.Name, record.Owner, record.validity)
	case guest:
		leaf, err = s.ca.CertifyGuest(public, record.Name, record.Guest, record.validity)
	default:
		leaf, err = s.ca.Certify(public, record.Name, rolesOf(record.Roles), CertValidity)
	}
	if err != nil {
		return nil, nil, err
	}
	record.Made, record.Expires, record.Key, record.DER = now.UnixNano(), leaf.NotAfter.UnixNano(),
		keyDigest(public), leaf.Raw
	if record.Joined == 0 {
		record.Joined = record.Made
	}
	serial := leaf.SerialNumber.Bytes()
	return &record, serial, s.saveCert(tx, serial, &record)
}

// saveCert stores a certificate, indexed by serial number and by name.
func (s *certStore) saveCert(tx *boltfile.Tx, serial []byte, record *certRecord) error {
	entry := append(append([]byte(record.Name), 0), serial...)
	return errors.Join(saveRecord(tx, issuedBucket, serial, record), tx.Bucket(namesBucket).Put(entry, []byte{}))
}

func keyDigest(public ed25519.PublicKey) []byte {
	sum := sha256.Sum256(public)
	return sum[:]
}

// nextCRLNumber returns the number of the next list of revoked certificates. Numbers
// follow the clock if possible, so that they rise even when a store is restored from an
// old copy: nodes refuse an older list.
func nextCRLNumber(tx *boltfile.Tx, now time.Time) (int64, error) {
	b, key := tx.Bucket(numbersBucket), []byte("revocations")
	next := now.UnixMilli()
	if old := b.Get(key); len(old) == 8 {
		next = max(next, int64(binary.BigEndian.Uint64(old))+1)
	}
	return next, b.Put(key, binary.BigEndian.AppendUint64(nil, uint64(next)))
}

// dropExpired removes records that are no longer needed.
func (s *certStore) dropExpired(now time.Time) error {
	return s.db.Update(func(tx *boltfile.Tx) error {
		var tokens, serials, names [][]byte
		err := eachRecord(tx, tokensBucket, func(key []byte, t *tokenRecord) error {
			if now.UnixNano() > t.Expires+int64(tokenRetention) {
				tokens = append(tokens, bytes.Clone(key))
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = eachRecord(tx, issuedBucket, func(serial []byte, i *certRecord) error {
			if now.UnixNano() > i.Expires+int64(certRetention) {
				serials = append(serials, bytes.Clone(serial))
				names = append(names, append(append([]byte(i.Name), 0), serial...))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for bucket, keys := range map[*boltfile.Bucket][][]byte{tx.Bucket(tokensBucket): tokens,
			tx.Bucket(issuedBucket): serials, tx.Bucket(namesBucket): names} {
			for _, key := range keys {
				if err := bucket.Delete(key); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
