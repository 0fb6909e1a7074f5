package ca

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/boltfile"
)

// fileKind returns the description of the store for boltfile.
func fileKind() boltfile.ContentKind {
	return boltfile.ContentKind{
		Description: "store of the authority",
		Buckets: []string{string(tokensBucket), string(issuedBucket), string(namesBucket), string(numbersBucket),
			string(peersBucket)},
		Name: func(d *boltfile.DamageFinding) string {
			switch {
			case d.Bucket == string(issuedBucket) && !d.IsRange:
				return "certificate " + hex.EncodeToString(d.From)
			case d.Bucket == string(tokensBucket) && !d.IsRange:
				return fmt.Sprintf("token %.8x", d.From)
			}
			return d.Bucket
		},
	}
}

// Repair removes damaged records from the store in dir. With dry it only reports what it
// would remove. It returns nil if nothing is damaged. No authority may run.
//
// A record with one flipped bit is corrected, because its checksum tells which bit. A
// certificate whose record has more damage is revoked: it may have been revoked before,
// and the node can join again. A damaged token is removed, so that it cannot be used; if
// the newest transactions may be lost, all tokens are.
//
// self is the name of the authority's own node, whose certificate is in its directory and
// is recorded again when the authority starts.
func Repair(dir, self string, now time.Time, dry bool) (*boltfile.RepairReport, error) {
	path, kind := filepath.Join(dir, storeFile), fileKind()
	r := storeRepair{certificates: map[string][]byte{}, names: map[string]string{}, tokens: map[string][]byte{},
		now: now}
	damage, err := boltfile.InspectFile(path, kind, r.checkToken)
	if err != nil || damage == nil {
		return nil, err
	}
	report := &boltfile.RepairReport{Path: path, Damages: damage.Names()}
	r.checkCerts(damage.Damages, report)
	for serial, name := range r.names {
		if name == self && r.certificates[serial] == nil {
			delete(r.names, serial)
		}
	}
	for _, serial := range slices.Sorted(maps.Keys(r.names)) {
		if r.certificates[serial] == nil {
			report.Actions = append(report.Actions,
				fmt.Sprintf("certificate %x of %s is revoked: if that node is still wanted, let it join again",
					serial, cmp.Or(r.names[serial], "a node whose name is lost, too")))
		}
	}
	report.Actions = append(report.Actions,
		fmt.Sprintf("%d certificates and %d tokens are kept", len(r.certificates), len(r.tokens)))
	if !dry {
		report.DamagedPath, err = boltfile.ReplaceDamaged(path, kind, now, r.writeStore)
	}
	return report, err
}

// storeRepair holds the intact records of a damaged store.
type storeRepair struct {
	certificates map[string][]byte // by serial number
	names        map[string]string // names by serial number
	tokens       map[string][]byte
	number       []byte // of the newest list of revoked certificates
	now          time.Time
}

// checkCerts corrects records with one flipped bit, and finds the certificates whose
// records are damaged.
func (r *storeRepair) checkCerts(damages []boltfile.DamageFinding, report *boltfile.RepairReport) {
	corrected, tokens, unknown := 0, false, false
	for i := range damages {
		d := &damages[i]
		switch {
		case d.Corrected:
			corrected++
			r.checkToken(d.Bucket, d.From, d.Raw)
		case d.Bucket == string(issuedBucket) && !d.IsRange:
			if r.names[string(d.From)] == "" {
				r.names[string(d.From)] = ""
			}
		case d.Bucket == string(tokensBucket):
			tokens = true
		case d.Bucket == "" || d.Bucket == string(issuedBucket):
			unknown = true
		}
	}
	if corrected > 0 {
		report.Actions = append(report.Actions,
			fmt.Sprintf("%d records are put right: one bit of each has flipped, and its checksum tells which",
				corrected))
	}
	if tokens {
		report.Actions = append(report.Actions, "tokens that are damaged are forgotten: nobody can use them")
	}
	if unknown {
		clear(r.tokens)
		report.Actions = append(report.Actions,
			"what was written last may be missing, and it is unknown what that was. All tokens are forgotten, "+
				"because one of them may have been used. Nodes whose revocation is lost are not revoked: see "+
				"roost token list, and revoke them again")
	}
}

func (r *storeRepair) checkToken(bucket string, key, value []byte) {
	value = bytes.Clone(value)
	switch bucket {
	case string(issuedBucket):
		record := new(certRecord)
		if json.Unmarshal(value, record) == nil {
			r.certificates[string(key)], r.names[string(key)] = value, record.Name
		}
	case string(namesBucket):
		if name, serial, ok := bytes.Cut(key, []byte{0}); ok {
			r.names[string(serial)] = string(name)
		}
	case string(tokensBucket):
		r.tokens[string(key)] = value
	case string(numbersBucket):
		r.number = value
	}
}

func (r *storeRepair) writeStore(w *boltfile.ReplacementWriter) error {
	for serial, name := range r.names {
		text := r.certificates[serial]
		if text == nil {
			at := r.now.UnixNano()
			var err error
			if text, err = json.Marshal(&certRecord{
				Name: name, Joined: at, Made: at, Expires: r.now.Add(CertValidity).UnixNano(), Revoked: at,
				Reason: "its record was damaged on disk",
			}); err != nil {
				return err
			}
		}
		w.Put(string(issuedBucket), []byte(serial), text)
		if name != "" {
			w.Put(string(namesBucket), append(append([]byte(name), 0), serial...), nil)
		}
	}
	for key, text := range r.tokens {
		w.Put(string(tokensBucket), []byte(key), text)
	}
	if r.number != nil {
		w.Put(string(numbersBucket), []byte("revocations"), r.number)
	}
	return nil
}
